// Package random makes the traces that the speed of a caching allocator is
// measured on: a stream of allocations and frees, sizes log-uniform, victims at
// random, a fixed number of blocks alive. It says nothing of what real programs
// do; it is the kind of trace that other allocators' figures are published for.
package random

import (
	"fmt"
	"math"
	"math/rand/v2"

	"tideline/shared/alloc/torch"
)

// Shape is what a trace is like. The zero value of a field means what the
// published figure of 2.9 million operations a second was measured with, as
// far as that is known.
type Shape struct {
	Ops     int   // 0 means a million
	Live    int   // blocks alive at a time; 0 means 4000
	Least   int64 // smallest request in bytes; 0 means 256
	Most    int64 // largest; 0 means 64 MiB
	Streams int   // 0 means 1
	Seed    uint64
}

// Op allocates Bytes into a slot, or frees what is there where Bytes is 0.
type Op struct {
	Slot   int32
	Stream uint8
	Bytes  int64
}

// Trace is a sequence of operations over so many slots. After the last one it
// can begin anew: what is still alive then is freed when its slot is filled.
type Trace struct {
	Ops   []Op
	Slots int
}

func (s Shape) complete() (Shape, error) {
	or := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	or(&s.Ops, 1_000_000)
	or(&s.Live, 4000)
	or(&s.Streams, 1)
	if s.Least == 0 {
		s.Least = 256
	}
	if s.Most == 0 {
		s.Most = 64 << 20
	}
	if s.Ops < 0 || s.Live < 0 || s.Least < 0 || s.Most < s.Least || s.Streams < 0 || s.Streams > math.MaxUint8 || s.Live > math.MaxInt32 {
		return s, fmt.Errorf("random trace of %+v: counts must be positive, Least at most Most, and at most 255 streams", s)
	}
	return s, nil
}

// Make draws a trace. Equal shapes give equal traces.
func Make(s Shape) (Trace, error) {
	s, err := s.complete()
	if err != nil {
		return Trace{}, err
	}
	rnd := rand.New(rand.NewPCG(s.Seed, 20261130))
	ops := make([]Op, 0, s.Ops)
	free := make([]int32, s.Live)
	for i := range free {
		free[i] = int32(s.Live - 1 - i)
	}
	used := make([]int32, 0, s.Live)
	span := math.Log(float64(s.Most) / float64(s.Least))
	for len(ops) < s.Ops {
		// Fill up to nearly all slots first, then allocate and free by turns at
		// random.
		if len(free) == 0 || len(used) > s.Live*49/50 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(used))
			slot := used[i]
			used[i] = used[len(used)-1]
			used = used[:len(used)-1]
			free = append(free, slot)
			ops = append(ops, Op{Slot: slot})
			continue
		}
		slot := free[len(free)-1]
		free = free[:len(free)-1]
		used = append(used, slot)
		bytes := int64(float64(s.Least) * math.Exp(rnd.Float64()*span))
		ops = append(ops, Op{slot, uint8(rnd.IntN(s.Streams)), max(1, bytes)})
	}
	return Trace{ops, s.Live}, nil
}

// Player plays a trace on an allocator, as often as wanted.
type Player struct {
	trace Trace
	a     *torch.Allocator
	addrs []uint64
	at    int
}

// NewPlayer begins at the trace's first operation.
func NewPlayer(t Trace, a *torch.Allocator) *Player {
	return &Player{trace: t, a: a, addrs: make([]uint64, t.Slots)}
}

// Play does the next n operations, from the first again after the last.
func (p *Player) Play(n int) error {
	for range n {
		op := &p.trace.Ops[p.at]
		if p.at++; p.at == len(p.trace.Ops) {
			p.at = 0
		}
		if addr := p.addrs[op.Slot]; addr != 0 {
			if err := p.a.Free(addr); err != nil {
				return err
			}
			p.addrs[op.Slot] = 0
		}
		if op.Bytes == 0 {
			continue
		}
		b, ok := p.a.AllocateOn(torch.Request{Bytes: op.Bytes, Stream: torch.Stream(op.Stream)})
		if !ok {
			return p.a.Failure()
		}
		p.addrs[op.Slot] = b.Address
	}
	return nil
}
