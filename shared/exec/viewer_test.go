package exec_test

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/store"
)

// A viewer sees the pool with the arena as a block, and beside it the arena
// with the tensors as blocks: nothing of the stream is refused, and the tensors'
// categories add up to what lies in the arena.
func TestAViewerUnderstandsPlannedMode(t *testing.T) {
	b := newBenchWith(t, 512*mib, func(c *exec.Config) { c.Mode = exec.Planned })
	p := b.model("lenet5", 64)
	for range 3 {
		b.step(p)
	}
	tl := store.New(b.strings)
	tl.Append(b.events)
	if n := tl.Skipped(); n != 0 {
		t.Errorf("the store skipped %d of %d events", n, len(b.events))
	}
	found := false
	for _, pool := range tl.Pools() {
		if pool.Name != "GPU_0_planned" {
			continue
		}
		found = true
		if pool.Facts.Text("kind") != "planned" || pool.Facts.Text("within") != "GPU_0_bfc" {
			t.Errorf("facts %v", pool.Facts)
		}
		if got := len(pool.Regions()); got != 1 {
			t.Errorf("%d regions, want one that comes again with each step", got)
		}
		for _, c := range []event.Category{event.Activation, event.Gradient, event.Temporary} {
			if !pool.Held(c) {
				t.Errorf("the arena never held a %s", c)
			}
		}
		if size := p.Arenas()[0].Size; pool.LayoutSize() < size || pool.LayoutSize() > size+size/8+1024 {
			t.Errorf("a layout of %d bytes for an arena of %d: each step should take the place of the one before", pool.LayoutSize(), size)
		}
	}
	if !found {
		t.Error("no pool for the arena")
	}
}
