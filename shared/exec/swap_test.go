package exec_test

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// swapped is a chain of products on the way to whose end one tensor goes to
// the host and back.
func swapped(b *program.Builder) {
	m := program.Shape{512, 512} // 1 MiB
	x := b.Op(program.OpMatMul, program.Attrs{}, b.Input("x", program.Float32, m), b.Const("w", program.Float32, m, 1))
	out := b.Op(program.OpSwapOut, program.Attrs{}, x)
	y := x
	for range 40 {
		y = b.Op(program.OpMatMul, program.Attrs{}, y, b.Const("w", program.Float32, m, 1))
	}
	in := b.Op(program.OpSwapIn, program.Attrs{}, out)
	b.Fetch("y", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpAdd, program.Attrs{}, y, in)))
}

func TestSwapFreesItsSourceAndComesBackInTime(t *testing.T) {
	for _, m := range []exec.Mode{exec.Graph, exec.Planned} {
		b := newBenchWith(t, 256*mib, func(c *exec.Config) { c.Mode = m })
		p := b.compile(swapped)
		b.step(p)
		b.events = b.events[:0]
		b.step(p)
		var out, in, outEnd, inEnd, freed, reader int64
		ops := 0
		var source uint64
		for _, e := range b.events {
			name := b.strings.At(e.Tensor)
			switch {
			case e.Kind == event.Alloc && name == "MatMul" && e.Device == gpu:
				source = e.Address
			case e.Kind == event.Free && e.Address == source && e.Device == gpu && freed == 0:
				freed = e.Time
			case e.Kind == event.TransferBegin && event.TransferCause(e.Cause) == event.CauseSwap && e.Stream == event.StreamD2H:
				out = e.Time
				if e.Flags&event.Pinned == 0 {
					t.Errorf("%s: the swap goes to pageable memory", m)
				}
			case e.Kind == event.TransferBegin && event.TransferCause(e.Cause) == event.CauseSwap && e.Stream == event.StreamH2D:
				in = e.Time
			case e.Kind == event.TransferEnd && event.TransferCause(e.Cause) == event.CauseSwap && out > 0 && outEnd == 0:
				outEnd = e.Time
			case e.Kind == event.TransferEnd && event.TransferCause(e.Cause) == event.CauseSwap && in > 0:
				inEnd = e.Time
			case e.Kind == event.OpBegin && e.Device == gpu:
				if in == 0 && out > 0 {
					ops++
				}
				if b.strings.At(e.Op) == "AddV2" {
					reader = e.Time
				}
			default:
			}
		}
		if out == 0 || in == 0 || in < outEnd {
			t.Fatalf("%s: swapped out at %d to %d, in from %d", m, out, outEnd, in)
		}
		if freed < outEnd || freed > in {
			t.Errorf("%s: the source was freed at %d, not between the end of its copy at %d and the way back at %d", m, freed, outEnd, in)
		}
		if ops < 20 {
			t.Errorf("%s: the way back began %d ops after the way out, too early to have won anything", m, ops)
		}
		if inEnd > reader {
			t.Errorf("%s: it came back at %d, its reader began at %d", m, inEnd, reader)
		}
		if got := b.live(gpu); got != 0 {
			t.Errorf("%s: %d buffers outlive the step", m, got)
		}
	}
}

func TestOffloadingOverAnInfinitelyFastLinkCostsNoTime(t *testing.T) {
	work := func(swap bool) func(*program.Builder) {
		return func(b *program.Builder) {
			m := program.Shape{2048, 2048}
			w := b.Const("w", program.Float32, m, 1)
			x := b.Op(program.OpMatMul, program.Attrs{}, b.Input("x", program.Float32, m), w)
			y, kept := x, x
			if swap {
				kept = b.Op(program.OpSwapOut, program.Attrs{}, x)
			}
			for range 20 {
				y = b.Op(program.OpMatMul, program.Attrs{}, y, w)
			}
			if swap {
				kept = b.Op(program.OpSwapIn, program.Attrs{}, kept)
			}
			b.Fetch("y", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpAdd, program.Attrs{}, y, kept)))
		}
	}
	run := func(swap bool) (nanos, peak int64) {
		b := newBenchWith(t, 512*mib, func(c *exec.Config) {
			m := &c.Devices[gpu].Model
			m.H2D, m.D2H, m.CopyLatency = 0, 0, 0 // a rate of 0 costs no time
		})
		p := b.compile(work(swap))
		b.step(p)
		from := b.rt.Now()
		b.step(p)
		return b.rt.Now() - from, b.rt.Stats(gpu).PeakInUse
	}
	with, _ := run(true)
	without, _ := run(false)
	if with != without {
		t.Errorf("a step takes %d ns with a tensor offloaded, %d without", with, without)
	}
}
