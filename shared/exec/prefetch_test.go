package exec_test

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

func summed(b *program.Builder) {
	b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, oneMiB))))
}

func TestTheCallerHoldsItsBatchForTheWholeCall(t *testing.T) {
	for _, m := range allModes {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
		p := b.compile(summed)
		b.step(p)
		if got := b.live(0); got != 1 {
			t.Errorf("%s: %d buffers live on the host after the call, want the batch, until the loop has the next", m, got)
		}
		b.step(p)
		if got := b.live(0); got != 1 {
			t.Errorf("%s: %d buffers live on the host after the second call, want 1", m, got)
		}
	}
}

func TestPrefetchToDeviceHoldsItsBufferOneInCopyAndOneInUse(t *testing.T) {
	for _, m := range allModes {
		for _, k := range []int{1, 2, 4} {
			b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode, c.PrefetchToDevice = m, k })
			p := b.compile(summed)
			for range 5 {
				b.step(p)
			}
			inputs, most, sent := 0, 0, 0
			at := map[uint64]bool{}
			for _, e := range b.events {
				switch {
				case e.Device == gpu && e.Kind == event.Alloc && e.Category == event.Input:
					inputs++
					at[e.Address] = true
				case e.Device == gpu && (e.Kind == event.Free || e.Kind == event.Forward) && at[e.Address]:
					inputs--
					delete(at, e.Address)
				case e.Kind == event.TransferBegin && e.Peer == gpu:
					sent++
					if e.Flags&event.Pinned == 0 {
						t.Errorf("%s, %d: a batch is sent from pageable memory", m, k)
					}
				default:
				}
				most = max(most, inputs)
			}
			if most != k+2 {
				t.Errorf("%s, buffer of %d: at most %d batches on the device, want %d: the buffer, one in copy, one in use", m, k, most, k+2)
			}
			if inputs < k+1 {
				t.Errorf("%s, buffer of %d: %d batches wait after the last step, want %d", m, k, inputs, k+1)
			}
		}
	}
}

// ending feeds so many batches and then has none.
type ending struct {
	now
	left int
}

var errEnd = errors.New("end of the data")

func (e *ending) Next(t int64) (exec.Batch, error) {
	if e.left == 0 {
		return exec.Batch{}, errEnd
	}
	e.left--
	return e.now.Next(t)
}

func TestAnEndOfTheDataThatWasSeenAheadIsToldInItsTurn(t *testing.T) {
	b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.PrefetchToDevice = 2 })
	p, f := b.compile(summed), &ending{left: 3}
	for step := range int32(4) {
		if _, err := b.rt.Step(p, step, f); (err != nil) != (step == 3) || err != nil && !errors.Is(err, errEnd) {
			t.Fatalf("step %d of 3 batches: %v", step, err)
		}
	}
}

// turns feeds batches for two plans in turn, and says for which.
type turns struct {
	now
	plans []*exec.Plan
	given int
}

func (f *turns) Next(t int64) (exec.Batch, error) {
	b, err := f.now.Next(t)
	b.Plan = f.plans[f.given%len(f.plans)]
	f.given++
	return b, err
}

// With batches of several shapes on the way to the device each step gets its
// own, and one that asks with another plan fails without taking anything.
func TestBatchesOfSeveralShapesAreSentAhead(t *testing.T) {
	for _, m := range allModes {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode, c.PrefetchToDevice = m, 2 })
		small := b.compile(func(b *program.Builder) {
			b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, program.Shape{1000}))))
		})
		f := &turns{plans: []*exec.Plan{b.compile(summed), small}}
		for step := range int32(9) {
			if _, err := b.rt.Step(f.plans[step%2], step, f); err != nil {
				t.Fatalf("%s, step %d: %v", m, step, err)
			}
		}
		if f.given != 9+3 {
			t.Errorf("%s: 9 steps took %d batches, want as many and the 3 that wait", m, f.given)
		}
		if _, err := b.rt.Step(f.plans[0], 9, f); err == nil || !strings.Contains(err.Error(), "the feed must say") {
			t.Errorf("%s: %v", m, err)
		}
		if _, err := b.rt.Step(f.plans[1], 9, f); err != nil {
			t.Errorf("%s: after a step with the wrong plan: %v", m, err)
		}
	}
}
