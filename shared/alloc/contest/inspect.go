package contest

import (
	"cmp"
	"slices"
	"sort"

	"tideline/protocol/event"
	"tideline/shared/alloc"
)

// Holding is what an allocator held at an instant, and what of it could be
// used. Bytes unless said otherwise; docs/allocators.md defines the measures.
type Holding struct {
	Call     int64 // number of the call before which this is, from 1
	Reserved int64
	InUse    int64
	// NeverUsed is reserved and was in no block up to now: what growth took
	// beyond what exact growth would have.
	NeverUsed int64
	// Pinned is idle in regions that cannot go back because of blocks in use;
	// PinnedBySmall is the part of it in regions of which the blocks are less
	// than a tenth.
	Pinned, PinnedBySmall int64
	// Pins are the regions with most idle bytes for each byte in use, at most
	// MostPins.
	Pins []Pin

	// For is a size, and Usable how many requests of it would be served at once
	// from what is held, without growth: tried on the allocator itself, on the
	// stream of the call. MostUsable is where the count ends.
	For    int64
	Usable int
}

// The bounds of a Holding.
const (
	MostPins   = 3
	MostUsable = 1 << 16
)

// Pin is a region and the blocks that keep it: without all of them it could go
// back to the driver.
type Pin struct {
	Address uint64
	Size    int64 // of the region
	Idle    int64 // in it
	Live    int64 // in use
	Blocks  int   // in use
}

// Inspection is an allocator at two instants of a replay.
type Inspection struct {
	Peak *Holding // at the peak of the bytes in use; Usable is for the largest request
	// Failure is before the first failed request, and Usable for its size; nil
	// where none failed.
	Failure *Holding
}

// Inspect looks at an allocator at its peak and at its first failure. r is what
// Run made of the same entry under the same options. Each instant costs another
// replay up to there.
func (t *Trace) Inspect(e Entry, o Options, r *Result) Inspection {
	var x Inspection
	if r.Err != nil {
		return x
	}
	if r.PeakCall > 0 {
		x.Peak = t.holding(e, o, r.PeakCall, t.Largest())
	}
	if r.FirstFailed > 0 {
		x.Failure = t.holding(e, o, int64(r.FirstFailed)-1, r.FirstBytes)
	}
	return x
}

// Largest is the largest request that the original served, in bytes.
func (t *Trace) Largest() int64 {
	n := int64(0)
	t.Each(func(c *Call) {
		if c.Kind == Allocate && !c.Fails {
			n = max(n, c.Bytes)
		}
	})
	return n
}

// holding replays calls and looks at what is held then.
func (t *Trace) holding(e Entry, o Options, calls, size int64) *Holding {
	o.Sink, o.Strings, o.UntilFailure = nil, nil, false
	x := t.start(e, o)
	if x.res.Err != nil {
		return nil
	}
	defer x.a.Close()
	x.hold = &holder{}
	var next *Call
	t.replay(x, o, func(c *Call) bool {
		next = c
		return x.now == calls
	})
	if x.now != calls {
		return nil // it was stopped
	}
	h := &Holding{Call: calls + 1, Reserved: x.a.Stats().Pool, InUse: x.inUse, For: size}
	h.NeverUsed = max(0, h.Reserved-x.hold.bytes())
	h.pins(x.a.ChunkMap())
	if t.Streams > 1 && next != nil {
		x.a.UseStream(next.Stream)
	}
	h.Usable = x.usable(size)
	return h
}

// usable counts how many requests are served without a word to the driver.
// What it asked for is not given back: the replay ends here.
func (x *run) usable(size int64) int {
	if size <= 0 {
		return 0
	}
	calls := x.res.DriverCalls
	for n := range MostUsable {
		if _, ok := x.a.Allocate(alloc.Request{Bytes: size, NoRetry: true}); !ok || x.res.DriverCalls != calls {
			return n
		}
	}
	return MostUsable
}

func (h *Holding) pins(m event.ChunkMap) {
	for i := range m {
		p := Pin{Address: m[i].Address, Size: m[i].Size}
		for _, c := range m[i].Chunks {
			if c.InUse {
				p.Live += c.Size
				p.Blocks++
			} else {
				p.Idle += c.Size
			}
		}
		if p.Live == 0 || p.Idle == 0 {
			continue
		}
		h.Pinned += p.Idle
		if p.Live < p.Size/10 {
			h.PinnedBySmall += p.Idle
		}
		h.Pins = append(h.Pins, p)
	}
	sort.Slice(h.Pins, func(i, j int) bool {
		a, b := &h.Pins[i], &h.Pins[j]
		if x, y := float64(a.Idle)/float64(a.Live), float64(b.Idle)/float64(b.Live); x != y {
			return x > y
		}
		return a.Address < b.Address
	})
	if len(h.Pins) > MostPins {
		h.Pins = slices.Clone(h.Pins[:MostPins])
	}
}

// holder knows which bytes of the regions held were ever in a block.
//
// Invariant: spans ascend, are not empty and do not touch.
type holder struct{ spans []span }

type span struct{ from, to uint64 }

// touch adds a block.
func (h *holder) touch(addr uint64, size int64) {
	s := span{addr, addr + uint64(size)}
	i, _ := slices.BinarySearchFunc(h.spans, s.from, func(x span, at uint64) int { return cmp.Compare(x.to, at) })
	j := i
	for j < len(h.spans) && h.spans[j].from <= s.to {
		s.from, s.to = min(s.from, h.spans[j].from), max(s.to, h.spans[j].to)
		j++
	}
	if i == j { // not slices.Replace, which is compiled anew for each type: 9 KB of the browser's module
		h.spans = append(h.spans, span{})
		copy(h.spans[i+1:], h.spans[i:])
	} else {
		h.spans = append(h.spans[:i+1], h.spans[j:]...)
	}
	h.spans[i] = s
}

// drop forgets what went back to the driver.
func (h *holder) drop(addr uint64, size int64) {
	end := addr + uint64(size)
	var kept []span
	for _, s := range h.spans {
		if s.to <= addr || s.from >= end {
			kept = append(kept, s)
			continue
		}
		if s.from < addr {
			kept = append(kept, span{s.from, addr})
		}
		if s.to > end {
			kept = append(kept, span{end, s.to})
		}
	}
	h.spans = kept
}

func (h *holder) bytes() int64 {
	n := uint64(0)
	for _, s := range h.spans {
		n += s.to - s.from
	}
	return int64(n)
}
