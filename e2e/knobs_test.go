package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tideline/protocol/event"
)

// fill gives a control a value as a hand would.
func (p *page) fill(css, value string) {
	p.t.Helper()
	p.do("fill "+css, chromedp.Evaluate[chromedp.Void](`(() => { const c = document.querySelector(`+quoted(css)+`); c.value = `+quoted(value)+`;
		c.dispatchEvent(new Event("input", {bubbles: true})); c.dispatchEvent(new Event("change", {bubbles: true})); })()`))
	p.idle()
}

// TestEveryKnobReachesTheRun changes what lies folded away, plans the memory
// ahead, and finds all of it in the settings of the rerun.
func TestEveryKnobReachesTheRun(t *testing.T) {
	a := startAgent(t)
	for _, dark := range []bool{false, true} {
		name := map[bool]string{false: "light", true: "dark"}[dark]
		t.Run(name, func(t *testing.T) {
			p := openPage(t, 1440, 1000)
			if dark {
				p.dark()
			}
			p.open(a.url)
			p.click("#demos button:first-of-type")
			p.wait("a live run", `document.documentElement.dataset.live === "true"`)
			p.settled()
			p.do("unfold", chromedp.Evaluate[chromedp.Void](`document.querySelectorAll(".more").forEach((d) => d.open = true)`))
			p.screenshot("1-knobs-open")
			p.do("below", chromedp.Evaluate[chromedp.Void](`document.querySelector(".knob-scroll").scrollTop = 760`))
			p.screenshot("2-knobs-below")
			p.do("the end", chromedp.Evaluate[chromedp.Void](`document.querySelector(".knob-scroll").scrollTop = 1e6`))
			p.screenshot("3-knobs-end")

			p.choose(`input[name="mode"][value="planned"]`)
			p.fill(`[name="train.optimizer"]`, "momentum")
			p.fill(`[name="train.clip"]`, "1.5")
			p.fill(`[name="train.microbatches"]`, "2")
			p.fill(`[name="input.ram_budget"]`, "1 GiB")
			p.fill(`[name="env"]`, "TF_GPU_HOST_MEM_LIMIT_IN_MB=4096")
			if said := p.text("#changes"); !strings.Contains(said, "mode graph → planned") || !strings.Contains(said, "clip norm none → 1.5") {
				t.Errorf("of the changes the form says %q", said)
			}
			p.click("#rerun")
			p.settled()
			if problem := p.text("#problem"); problem != "" {
				t.Fatalf("the form says %q", problem)
			}
			p.screenshot("4-planned")
			lanes := eval[[]string](p, `[...document.querySelectorAll(".lane-title, .lane h3")].map((e) => e.textContent)`)
			t.Logf("lanes: %q", lanes)
			_, settings, _ := hashOf(t, p.save())
			for _, want := range []event.Field{
				{Key: "mode", Value: "planned"},
				{Key: "train.optimizer", Value: "momentum"},
				{Key: "train.clip", Value: "1.5"},
				{Key: "train.microbatches", Value: "2"},
				{Key: "input.ram_budget", Value: "1GiB"},
				{Key: "env", Value: "TF_GPU_HOST_MEM_LIMIT_IN_MB=4096"},
			} {
				if got, _ := settings.Get(want.Key); got != want.Value {
					t.Errorf("the rerun had %s=%q, want %q", want.Key, got, want.Value)
				}
			}

			// What a model has no use for is not offered.
			p.fill(`[name="model"]`, "bert-2layer")
			if eval[bool](p, `document.querySelector('[name="sequence"]').closest(".when[hidden]") !== null || document.querySelector('[name="image"]').closest(".when[hidden]") === null`) {
				t.Error("a model that reads tokens is offered an image side, or no number of tokens")
			}
			p.choose(`input[name="mode"][value="eager"]`)
			if eval[bool](p, `document.querySelector('[name="copy_policy"]').closest(".when[hidden]") !== null`) {
				t.Error("eager execution is offered no copy policy")
			}
			p.quiet()
		})
	}
}
