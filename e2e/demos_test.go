package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestDemosDoNotFightForACard: two that are started at once both end well, and
// the one about sharing starts both of its runs, of which the second fails: after
// a wait that the overview leaves out.
func TestDemosDoNotFightForACard(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1440, 900)
	p.open(a.url)
	p.do("start two demos", chromedp.Evaluate[chromedp.Void](`for (const d of ["stall", "demo"]) document.querySelector('#demos [data-demo="' + d + '"]').click()`))
	p.wait("both runs", `tideline.agentRuns?.length === 2 && !tideline.live`)
	p.settled()
	states := func() string {
		return eval[string](p, `tideline.agentRuns.map((r) => r.name + " " + r.state).join(", ")`)
	}
	p.wait("both to end", `(tideline.listRuns(), tideline.agentRuns.every((r) => r.state !== "running"))`)
	if got := states(); strings.Count(got, " done") != 2 {
		t.Errorf("the demos ended as %s", got)
	}
	p.click(`#demos [data-demo="two-runs"]`)
	p.wait("the second to fail", `(tideline.listRuns(), tideline.agentRuns.length === 4 && tideline.agentRuns[3].state !== "running")`)
	p.settled()
	if got := states(); !strings.HasSuffix(strings.Replace(got, "running", "done", 1), "two-runs done, two-runs out of memory") {
		t.Errorf("the runs ended as %s", got)
	}
	if state := p.text("#run-state"); state != "out of memory" {
		t.Errorf("the page shows the run that ended as %q", state)
	}
	// The overview has the run's own time, not the ten seconds of waiting.
	if width := eval[float64](p, `parseFloat(document.querySelector("#brush").style.width)`); width < 60 {
		t.Errorf("the first view has %.1f %% of the overview", width)
	}
	if !eval[bool](p, `[0, 0.3, 0.92, 0.97, 1].every((at) => Math.abs(tideline.lanes.overviewShare(tideline.lanes.overviewTime(at)) - at) < 0.01)`) {
		t.Error("a place on the overview is another one than its time's")
	}
	p.screenshot("two-runs")
	p.quiet()
}
