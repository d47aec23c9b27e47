package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/timeline"
	"tideline/shared/golden"
)

// open loads the agent's page and waits for the module.
func (p *page) open(url string) {
	p.t.Helper()
	p.do("open the page", chromedp.Navigate(url))
	p.wait("the module", `document.documentElement.hasAttribute("data-ready")`)
	p.listen()
	p.idle()
}

// settled waits until nothing comes in and nothing is pending.
func (p *page) settled() {
	p.t.Helper()
	p.wait("the run to end", `document.documentElement.dataset.live !== "true" && document.documentElement.dataset.idle === "true"`)
}

func (p *page) click(css string) {
	p.t.Helper()
	p.do("click "+css, chromedp.Click(chromedp.CSS(css)))
}

func (p *page) text(css string) string {
	p.t.Helper()
	return eval[string](p, `(document.querySelector(`+quoted(css)+`)||{textContent:"MISSING"}).textContent.trim().replace(/\s+/g," ")`)
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func (p *page) choose(css string) {
	p.t.Helper()
	p.do("choose "+css, chromedp.Evaluate[chromedp.Void](`document.querySelector(`+quoted(css)+`).click()`))
	p.idle()
}

// upload gives files to the page's picker.
func (p *page) upload(files ...string) {
	p.t.Helper()
	for i := range files {
		abs, err := filepath.Abs(files[i])
		if err != nil {
			p.t.Fatal(err)
		}
		files[i] = abs
	}
	p.do("upload", chromedp.SetUploadFiles(chromedp.CSS("#file"), files))
}

// save presses Save and returns the file.
func (p *page) save() []byte {
	p.t.Helper()
	dir := p.t.TempDir()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	if _, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir,
	}); err != nil {
		p.t.Fatalf("allow downloads: %v", err)
	}
	p.click("#save")
	for {
		done, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			p.t.Fatal(err)
		}
		if len(done) == 1 && !strings.HasSuffix(done[0], ".crdownload") {
			if b, err := os.ReadFile(done[0]); err == nil && len(b) > 0 {
				return b
			}
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("nothing was saved: %v", done)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// hashOf is what a file's run did to memory, and the workload it was made by.
func hashOf(t *testing.T, file []byte) (hash uint64, settings event.Fields, events int) {
	t.Helper()
	s, err := timeline.NewStream(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("open the saved file: %v", err)
	}
	h := eventhash.New(s.Strings())
	err = s.Replay(event.SinkFunc(func(e *event.Event) {
		h.Emit(e)
		events++
		if e.Kind == event.Settings {
			var err error
			if settings, err = event.ParseFields(s.Strings().At(e.Text)); err != nil {
				t.Errorf("the file's settings: %v", err)
			}
		}
	}))
	if err != nil {
		t.Fatalf("read the saved file: %v", err)
	}
	if s.Damage() != nil {
		t.Fatalf("the saved file is damaged: %v", s.Damage())
	}
	return h.Sum64(), settings, events
}

// TestTheWholeWay does what the README's first minute does: run the demo on
// the agent and watch it live, change a setting, rerun it in the page,
// compare, save, and open the file again.
func TestTheWholeWay(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1440, 900)
	p.open(a.url)
	p.screenshot("1-start")

	p.click("#demos button:first-of-type")
	p.wait("a live run", `document.documentElement.dataset.live === "true"`)
	p.wait("its first step", `/[1-9]/.test(document.querySelector("#fact-step dd").textContent)`)
	p.screenshot("2-live")
	p.settled()
	if state := p.text("#run-state"); state != "done" {
		t.Fatalf("the demo ended as %q", state)
	}
	if acc := p.text("#fact-accuracy dd"); !strings.Contains(acc, "%") {
		t.Errorf("the run on the agent computes, yet its accuracy is %q", acc)
	}
	agentPeak := p.text("#fact-peak dd")
	p.pictured("3-done")
	live := p.save()

	// The same in the browser: rerun without a change, event for event.
	p.choose(`input[name="mode"][value="eager"]`)
	p.click("#rerun")
	p.settled()
	p.choose(`input[name="mode"][value="graph"]`)
	p.click("#rerun")
	p.settled()
	if peak := p.text("#fact-peak dd"); peak != agentPeak {
		t.Errorf("peak of the rerun %s, of the agent's run %s", peak, agentPeak)
	}
	liveHash, _, _ := hashOf(t, live)
	again, _, _ := hashOf(t, p.save())
	t.Logf("agent with arithmetic %016x, browser %016x", liveHash, again)
	if liveHash != again {
		t.Errorf("the browser's rerun differs from the agent's run")
	}

	// Growth against the whole card: what is reserved differs, what is in use does not.
	p.choose(`input[name="memory"][value="whole"]`)
	p.click("#rerun")
	p.settled()
	p.choose(`input[name="memory"][value="growth"]`)
	p.click("#rerun")
	p.settled()
	p.do("compare", chromedp.KeyEvent("7"))
	p.idle()
	compare := p.text("#pane")
	if !strings.Contains(compare, "Reserved") || !strings.Contains(compare, "growth") {
		t.Errorf("the comparison says %q", compare)
	}
	p.pictured("4-compare")

	// Saved, and opened again by a page that never saw the run.
	saved := p.save()
	file := filepath.Join(t.TempDir(), "again.tideline")
	if err := os.WriteFile(file, saved, 0o644); err != nil {
		t.Fatal(err)
	}
	peak := p.text("#fact-peak dd")
	p.open(strings.SplitN(a.url, "?", 2)[0])
	p.upload(file)
	p.wait("the file", `document.querySelector("#run-picker").selectedOptions[0]?.textContent.includes("again")`)
	p.settled()
	if got := p.text("#fact-peak dd"); got != peak {
		t.Errorf("peak %s after reopening, %s before", got, peak)
	}
	p.pictured("5-reopened")
	p.quiet()
}

// TestOpenARealLog opens an out-of-memory log from a public report.
func TestOpenARealLog(t *testing.T) {
	log := filepath.Join(golden.Cases(t), "05-tf-bfc-2023-cifar-fragmented", "input.log")
	a := startAgent(t)
	p := openPage(t, 1440, 900)
	p.open(a.url)
	p.upload(log)
	p.wait("the verdict", `document.querySelector("#run-picker").selectedOptions[0]?.textContent.includes("input")`)
	p.settled()
	if pane := p.text("#pane"); !strings.Contains(pane, "Fragmented") || !strings.Contains(pane, "532.88 MiB") || !strings.Contains(pane, "What to do") {
		t.Errorf("of a fragmented pool with a largest hole of 558,759,936 bytes the page says %q", pane)
	}
	p.do("the out-of-memory tab", chromedp.KeyEvent("4"))
	p.wait("the failure", `document.querySelector("#pane").textContent.includes("Out of memory: fragmented")`)
	if p.text("#axis") != "" || p.text("#tab-note") != "failure 1 of 1" {
		t.Errorf("times %q, note %q: want no times that the log does not tell", p.text("#axis"), p.text("#tab-note"))
	}
	p.pictured("log")
	p.quiet()
}

// TestKeyboardAlone runs, reruns and looks around without a mouse.
func TestKeyboardAlone(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(a.url)
	p.do("reach the first demo", chromedp.Evaluate[chromedp.Void](`document.querySelector("#demos button").focus()`), chromedp.KeyEvent("\r"))
	p.wait("a run", `document.documentElement.dataset.live === "true"`)
	p.settled()
	p.do("leave the button", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`))
	before := p.text("#span")
	spanIs := `document.querySelector("#span").textContent.trim().replace(/\s+/g, " ") === ` + quoted(before)
	for _, key := range []string{"w", "w", "d"} {
		p.do("zoom and pan", chromedp.KeyEvent(key))
	}
	p.wait("another span than "+before, "!("+spanIs+")")
	p.do("fit", chromedp.KeyEvent("f"))
	p.wait("the span "+before+" again", spanIs)
	p.do("show everything", chromedp.KeyEvent("f"))
	p.wait("the tracing before the first op too", `document.querySelector("#span").textContent.startsWith("0 ")`)
	// A switch that has the focus leaves letters to the page.
	p.do("focus a switch", chromedp.Evaluate[chromedp.Void](`document.querySelector('input[name="mode"]:checked').focus()`))
	p.do("the peak", chromedp.KeyEvent("p"))
	p.idle()
	if now, peak := p.text(".lane-now"), p.text("#fact-peak dd"); !strings.HasPrefix(now, peak) {
		t.Errorf("at the peak of %s the memory lane says %q", peak, now)
	}
	for _, tab := range []string{"1", "2", "3"} {
		p.do("a tab", chromedp.KeyEvent(tab))
		p.idle()
		if pane, peak := p.text("#pane"), p.text("#fact-peak dd"); !strings.Contains(pane, peak) {
			t.Errorf("at the peak of %s tab %s says %q", peak, tab, pane)
		}
	}
	p.do("help", chromedp.KeyEvent("?"))
	p.wait("the help", `document.querySelector("#help-dialog").open`)
	p.screenshot("help")
	p.do("close it", chromedp.KeyEvent("\x1b"))
	p.wait("no help", `!document.querySelector("#help-dialog").open`)
	p.do("the table twin", chromedp.KeyEvent("8"))
	p.idle()
	if rows := eval[int](p, `document.querySelectorAll("#pane tr").length`); rows < 2 {
		t.Errorf("the lane's table has %d rows", rows)
	}
	p.quiet()
}

// TestScreenshots renews the pictures of the docs when asked to, and keeps
// every look (wide and narrow, light and dark) as an artefact.
func TestScreenshots(t *testing.T) {
	a := startAgent(t)
	for _, look := range []struct {
		name          string
		width, height int
		dark          bool
	}{
		{"page-light", 1440, 900, false},
		{"page-dark", 1440, 900, true},
		{"page-phone", 390, 844, false},
	} {
		t.Run(look.name, func(t *testing.T) {
			p := openPage(t, look.width, look.height)
			if look.dark {
				p.dark()
			}
			p.open(a.url)
			p.click("#start-demos button:first-of-type")
			p.wait("a run", `document.documentElement.dataset.live === "true"`)
			p.settled()
			png := p.pictured("look")
			if wider := eval[bool](p, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wider {
				t.Errorf("the page is wider than its window of %d pixels", look.width)
			}
			if dir := os.Getenv("TIDELINE_SCREENSHOTS"); dir != "" {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, look.name+".png"), png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p.quiet()
		})
	}
}
