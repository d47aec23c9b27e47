package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWhatWouldHelpIsRunAndTakenOver: the tab says what stands out in the run
// on screen, reruns it with what may help, and a click runs the page's own
// workload with that.
func TestWhatWouldHelpIsRunAndTakenOver(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leak.tideline")
	// It exits with 3: the workload runs out of memory.
	if out, err := exec.Command(agentBinary, "run", "-q", "--modelled", "-o", file, filepath.Join("..", "examples", "leak.yaml")).CombinedOutput(); err == nil {
		t.Fatalf("the leak ends well:\n%s", out)
	}
	a := startAgent(t, file)
	p := openPage(t, 1400, 900)
	p.open(a.url)
	p.wait("the file's failure", `document.querySelector("#tab-oom .badge")?.textContent === "1"`)
	p.click("#tab-findings")
	p.wait("the leak by its name", `[...document.querySelectorAll("#pane h3")].some(h => h.textContent.startsWith("A leak"))`)
	p.wait("the remedy", `[...document.querySelectorAll("#pane section.advice button")].some(b => b.textContent === "keep=")`)
	p.wait("the end of the search", `!document.querySelector("#pane [role=status]")`)
	p.screenshot("told")
	p.do("take the remedy over", chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#pane section.advice button")].find(b => b.textContent === "keep=").click()`))
	p.wait("a run without a failure", `document.querySelector("#tab-oom .badge").hidden`)
}
