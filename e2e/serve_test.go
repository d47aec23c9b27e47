package e2e

import (
	"strings"
	"testing"
)

// TestServesWhatPeopleHave: a foreign file on the command line opens as one that
// is dropped on the page does, with what it means beside the picture.
func TestServesWhatPeopleHave(t *testing.T) {
	a := startAgent(t, caseFile(t, "24-torch-snapshot-2025-small-model", "snapshot.pickle"), caseFile(t, "05-tf-bfc-2023-cifar-fragmented", "input.log"))
	p := openPage(t, 1440, 900)
	p.open(a.url)
	p.wait("the snapshot to be read", `tideline.told && tideline.current && !tideline.live`)
	p.settled()
	if pane := p.text("#pane"); !strings.Contains(pane, "PyTorch memory snapshot") {
		t.Errorf("the pane says %q", pane)
	}
	p.pictured("snapshot")
	eval[bool](p, `(tideline.told = null, tideline.pick("agent:f2"), true)`)
	p.wait("the log to be read", `tideline.told && tideline.current && !tideline.live`)
	p.settled()
	if pane := p.text("#pane"); !strings.Contains(pane, "the largest hole is 532.88 MiB") {
		t.Errorf("the pane says %q", pane)
	}
	p.pictured("log")
	p.quiet()
}
