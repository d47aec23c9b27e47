package exec_test

import (
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// only is e with the fields that its kind uses, and no others.
func only(e *event.Event) event.Event {
	w := event.Event{Kind: e.Kind, Time: e.Time, Step: e.Step, Device: e.Device}
	switch e.Kind {
	case event.RegionAdd:
		w.Allocator, w.Address, w.Size, w.Requested = e.Allocator, e.Address, e.Size, e.Requested
	case event.Alloc, event.Forward:
		w.Allocator, w.Address, w.Size, w.Requested = e.Allocator, e.Address, e.Size, e.Requested
		w.Tensor, w.Op, w.Category = e.Tensor, e.Op, e.Category
	case event.Free, event.RegionRemove:
		w.Allocator, w.Address, w.Size = e.Allocator, e.Address, e.Size
	case event.TransferBegin, event.TransferEnd:
		w.Peer, w.Size, w.ID, w.Stream, w.Cause, w.Flags = e.Peer, e.Size, e.ID, e.Stream, e.Cause, e.Flags
		w.Op, w.Tensor = e.Op, e.Tensor
	case event.OpBegin, event.OpEnd:
		w.Stream, w.Op, w.ID, w.Category, w.Flags = e.Stream, e.Op, e.ID, e.Category, e.Flags
	case event.StepBegin, event.StepEnd:
		w.Size = e.Size
	case event.AllocatorFacts:
		w.Allocator, w.Size, w.Text = e.Allocator, e.Size, e.Text
	case event.Placement:
		w.Op, w.Text = e.Op, e.Text
	case event.Annotation, event.Log:
		w.Text, w.Flags = e.Text, e.Flags
	default:
	}
	return w
}

// All events that are told at once are written into one record, and a stream's
// into the slots of a ring: nothing of what was there before may be told.
func TestEventsHoldOnlyWhatTheirKindUses(t *testing.T) {
	seen := map[event.Kind]int{}
	for seed := range uint64(30) {
		for _, m := range []exec.Mode{exec.Eager, exec.Graph, exec.Planned} {
			b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
			p := b.compile(func(pb *program.Builder) { random(pb, rand.New(rand.NewPCG(seed, 2))) })
			for range 3 {
				b.step(p)
			}
			for i := range b.events {
				e := &b.events[i]
				seen[e.Kind]++
				if w := only(e); *e != w {
					t.Fatalf("seed %d, %s, event %d: %s is %+v, of which %+v is its own", seed, m, i, e.Kind, *e, w)
				}
			}
		}
	}
	for _, k := range []event.Kind{event.Alloc, event.Free, event.Forward, event.TransferEnd, event.OpEnd, event.RegionRemove} {
		if seen[k] == 0 {
			t.Errorf("no %s was told", k)
		}
	}
}
