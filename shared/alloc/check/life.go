package check

import (
	"fmt"

	"tideline/shared/alloc"
	"tideline/shared/alloc/stream"
)

// Draw is where a random life gets its choices from.
type Draw interface {
	// Draw returns a number from 0 to n-1.
	Draw(n int) int
	// More reports whether the life goes on.
	More() bool
}

// Seeded draws steps choices' worth of a life from a seed.
func Seeded(seed uint64, steps int) Draw { return &seeded{seed*0x9e3779b97f4a7c15 + 1, steps} }

type seeded struct {
	x    uint64
	left int
}

func (s *seeded) Draw(n int) int {
	s.x += 0x9e3779b97f4a7c15
	z := s.x
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) >> 1 % uint64(n))
}

func (s *seeded) More() bool { s.left--; return s.left >= 0 }

// Fuzzed draws from the bytes of a fuzzer until they run out.
func Fuzzed(b []byte) Draw { return &fuzzed{b} }

type fuzzed struct{ b []byte }

func (f *fuzzed) Draw(n int) int {
	x := uint64(0)
	for i := 0; i < 4 && n>>(8*i) > 0 && len(f.b) > 0; i++ {
		x = x<<8 | uint64(f.b[0])
		f.b = f.b[1:]
	}
	return int(x % uint64(n))
}

func (f *fuzzed) More() bool { return len(f.b) > 0 }

// checker is an allocator that can verify itself.
type checker interface{ Check() error }

// Life leads an allocator through a random life under the judge's eyes and
// returns what was wrong, with the number of the step.
func Life(d Draw, s Subject) error {
	w, err := NewWatch(s)
	if err != nil {
		return err
	}
	streams := 1
	if s.Order != nil {
		streams = 1 + d.Draw(4)
	}
	for step := 0; d.More(); step++ {
		w.step(d, streams)
		if c, ok := w.A.(checker); ok && w.Err() == nil {
			w.err = c.Check()
		}
		if err := w.Err(); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	w.Close()
	if err := w.Err(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

func (w *Watch) step(d Draw, streams int) {
	if streams > 1 {
		w.On(stream.ID(d.Draw(streams)))
	}
	switch k := d.Draw(24); {
	case k < 12:
		r := alloc.Request{Bytes: int64(d.Draw(1 << (1 + d.Draw(25)))), NoRetry: true}
		if d.Draw(4) == 0 {
			r.Alignment = 1 << d.Draw(17)
		}
		if _, ok := w.Allocate(r); ok && r.Bytes == 0 {
			w.wrong("a request of 0 bytes got a block")
		}
	case k < 19 && len(w.Live) > 0:
		w.Free(d.Draw(len(w.Live)))
	case k == 20:
		w.nonsense(d)
	case k == 21 && w.s.Order != nil && streams > 1:
		w.progress(d, streams)
	case k == 22 && w.s.Extra != nil:
		w.s.Extra(w, d)
	case k == 23:
		w.Look()
	}
}

// nonsense asks for what must be refused without a change.
func (w *Watch) nonsense(d Draw) {
	before := w.A.Stats()
	if err := w.A.Free(0); err != nil {
		w.wrong("address 0 stands for no block, but freeing it says %v", err)
	}
	addr := uint64(d.Draw(1<<20))*8 + 8
	if len(w.Live) > 0 {
		addr += w.Live[d.Draw(len(w.Live))].Address
	}
	for _, b := range w.Live {
		if b.Address == addr {
			return
		}
	}
	if err := w.A.Free(addr); err == nil {
		w.wrong("%x was taken back, but no block in use begins there", addr)
	}
	if w.A.Stats() != before {
		w.wrong("a refused free changed the statistics from %+v to %+v", before, w.A.Stats())
	}
}

func (w *Watch) progress(d Draw, streams int) {
	s, on := stream.ID(d.Draw(streams)), stream.ID(d.Draw(streams))
	switch d.Draw(3) {
	case 0:
		w.s.Order.Wait(s, on)
	case 1:
		w.s.Order.Finish(s)
	default:
		w.s.Order.Mark(s) // more work is given
	}
}
