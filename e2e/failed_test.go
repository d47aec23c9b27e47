package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWhatAFailedRunShows: the first view leaves out the wait for memory and
// tells of it, a link's tab holds, a model of another kind takes its own source,
// and a run that fails before its first allocation says why.
func TestWhatAFailedRunShows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a-run-of-a-rather-long-name-that-does-not-fit-into-the-bar.tideline")
	// It exits with 3: the workload runs out of memory.
	if out, err := exec.Command(agentBinary, "run", "-q", "--modelled", "-o", file, filepath.Join("..", "examples", "oom-batch.yaml")).CombinedOutput(); err == nil {
		t.Fatalf("the batch fits:\n%s", out)
	}
	a := startAgent(t, file)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.wait("the failure in words", `document.querySelector("#span .ahead")?.textContent.includes("out of memory at")`)
	p.wait("the wait in the bar", `document.querySelector("#fact-elapsed").textContent.includes("waiting for memory")`)
	p.wait("a view without the wait", `tideline.view.t1 < 0.2 * tideline.span.t1`)
	p.idle()
	p.screenshot("first")
	p.wait("the last button inside the window", `document.querySelector("#help").getBoundingClientRect().right <= innerWidth`)

	p.do("open a link to the peak", chromedp.Evaluate[chromedp.Void](`(() => { globalThis.before = true; location.hash = "#run=" + tideline.runId + "&tab=peak"; location.reload(); })()`))
	p.wait("the link's run", `!globalThis.before && globalThis.tideline?.current?.ooms === 1 && !tideline.live`)
	p.idle()
	p.wait("the link's tab", `tideline.details.tab === "peak"`)

	model := func(name string) {
		p.do("choose "+name, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(
			`(() => { const m = document.querySelector("#k-model"); m.value = %q; m.dispatchEvent(new Event("input", {bubbles: true})); })()`, name)))
	}
	source := `tideline.knobs.collect().get("input.source") `
	model("gpt2")
	p.wait("no digits for GPT-2", source+`=== undefined`)
	model("mlp")
	p.wait("no image side for an MLP", `!document.querySelector("[name=image]").checkVisibility()`)
	model("lenet5")
	p.wait("digits for LeNet-5 again", source+`=== "digits"`)

	p.fill("#k-held", "256 MiB")
	p.click("#run-agent")
	p.wait("why the run failed", `document.querySelector(".lanes-message")?.checkVisibility() && document.querySelector(".lanes-message").textContent.includes("driver context")`)
	p.idle()
	p.wait("the failed run's settings", `document.querySelector("#k-held").value === "256 MiB" && tideline.current.settings`)
	p.screenshot("before-the-first-step")

	p.upload(filepath.Join("..", "shared", "ingest", "testdata", "smi-29-smi.txt"))
	p.wait("what the table says", `tideline.told?.readings[0]?.kind && document.querySelector("#pane").textContent.includes("nvidia-smi")`)
}
