package store

import (
	"math/rand/v2"
	"slices"

	"tideline/protocol/event"
)

// random makes a run of n events with everything in it: two pools, one with
// regions that come and go, forwards, lost frees, ops that overlap, transfers.
// Many events share a time.
func random(seed uint64, n int) []event.Event {
	r := rand.New(rand.NewPCG(seed, 7))
	g := &generator{r: r, free: map[uint64]int64{}}
	for len(g.out) < n {
		if r.IntN(3) > 0 {
			g.at += int64(r.IntN(50))
		}
		if r.IntN(400) == 0 {
			g.at += 1 << 33 // a long pause: columns of time must widen
		}
		g.step()
	}
	return g.out
}

type generator struct {
	r     *rand.Rand
	out   []event.Event
	at    int64
	live  []event.Event // Alloc or Forward
	base  []event.Event // RegionAdd
	next  uint64
	free  map[uint64]int64
	ids   uint64
	open  []event.Event
	steps int32
}

func (g *generator) emit(e event.Event) {
	e.Time = g.at
	g.out = append(g.out, e)
}

func (g *generator) step() {
	switch k := g.r.IntN(20); {
	case len(g.base) == 0 || k == 0 && g.r.IntN(20) == 0:
		g.next += uint64(1+g.r.IntN(3)) << 30
		e := event.Event{Kind: event.RegionAdd, Address: g.next, Size: 1 << (20 + g.r.IntN(5))}
		g.base = append(g.base, e)
		g.emit(e)
	case k < 8:
		g.alloc()
	case k < 14 && len(g.live) > 0:
		i := g.r.IntN(len(g.live))
		if g.r.IntN(3) > 0 {
			i = len(g.live) - 1
		}
		e := g.live[i]
		if e.Kind == event.Alloc && g.r.IntN(10) == 0 {
			g.live[i].Category, g.live[i].Op = 5, 77
			g.emit(event.Event{Kind: event.Forward, Device: e.Device, Address: e.Address, Size: e.Size, Requested: e.Requested, Category: 5, Op: 77, Tensor: 78, Step: g.steps})
			return
		}
		g.live = append(g.live[:i], g.live[i+1:]...)
		g.emit(event.Event{Kind: event.Free, Device: e.Device, Address: e.Address, Size: e.Size})
	case k < 17:
		g.ids++
		e := event.Event{Kind: event.OpBegin, ID: g.ids, Stream: event.StreamID(g.r.IntN(2)), Op: event.StringID(g.r.IntN(9)), Category: event.Category(g.r.IntN(5))}
		if g.r.IntN(3) == 0 {
			e = event.Event{Kind: event.TransferBegin, ID: g.ids, Peer: 1, Size: int64(g.r.IntN(1 << 20)), Cause: uint8(g.r.IntN(8))}
		}
		g.open = append(g.open, e)
		g.emit(e)
	case k < 19 && len(g.open) > 0:
		i := g.r.IntN(len(g.open))
		e := g.open[i]
		g.open = append(g.open[:i], g.open[i+1:]...)
		e.Kind++
		g.emit(e)
	default:
		g.emit(event.Event{Kind: event.QueueDepth, Op: 3, Size: int64(g.r.IntN(9)), Requested: 8})
	}
}

// alloc puts a block into a place that no live block overlaps.
func (g *generator) alloc() {
	size := int64(1+g.r.IntN(200)) << 8
	e := event.Event{Kind: event.Alloc, Size: size, Requested: size - int64(g.r.IntN(256)), Category: event.Category(g.r.IntN(event.NumCategories)), Op: event.StringID(g.r.IntN(50)), Tensor: event.StringID(g.r.IntN(500)), Step: g.steps}
	if g.r.IntN(8) == 0 {
		e.Device, e.Allocator = 1, 0
	}
	for range 20 {
		b := g.base[g.r.IntN(len(g.base))]
		e.Address = b.Address + uint64(g.r.Int64N(b.Size-size))&^255
		if e.Device == 1 {
			e.Address += 1 << 40
		}
		if !slices.ContainsFunc(g.live, func(o event.Event) bool {
			return o.Device == e.Device && o.Address < e.Address+uint64(e.Size) && e.Address < o.Address+uint64(o.Size)
		}) {
			g.live = append(g.live, e)
			g.emit(e)
			return
		}
	}
}

// brute is the truth: lists, walked from end to end.
type brute struct {
	points []bpoint
	blocks []bblock
}

type bpoint struct {
	at    int64
	inUse int64
	cat   Categories
	waste int64
}

type bblock struct {
	e            event.Event
	birth, death int // counts of points; death 0: alive
}

func newBrute(events []event.Event, d event.DeviceID) *brute {
	b := &brute{}
	var now bpoint
	live := map[uint64]int{}
	end := func(a uint64) event.Event {
		i := live[a]
		delete(live, a)
		b.blocks[i].death = len(b.points) + 1
		e := b.blocks[i].e
		now.inUse -= e.Size
		now.cat[e.Category] -= e.Size
		now.waste -= e.Size - e.Requested
		return e
	}
	for _, e := range events {
		if e.Device != d {
			continue
		}
		now.at = e.Time
		switch e.Kind {
		case event.Free:
			end(e.Address)
		case event.Forward:
			end(e.Address)
			fallthrough
		case event.Alloc:
			live[e.Address] = len(b.blocks)
			b.blocks = append(b.blocks, bblock{e: e, birth: len(b.points)})
			now.inUse += e.Size
			now.cat[e.Category] += e.Size
			now.waste += e.Size - e.Requested
		default:
			continue
		}
		b.points = append(b.points, now)
	}
	return b
}

// upTo is the number of points at time t or before.
func (b *brute) upTo(t int64) int {
	n := 0
	for n < len(b.points) && b.points[n].at <= t {
		n++
	}
	return n
}

func (b *brute) state(n int) bpoint {
	if n == 0 {
		return bpoint{}
	}
	return b.points[n-1]
}

// bucket walks [t0,t1): the value before it counts.
func (b *brute) bucket(t0, t1 int64) (lo, hi int64, top bpoint, n int) {
	a := b.upTo(t0 - 1)
	top = b.state(a)
	top.at = t0
	lo, hi = top.inUse, top.inUse
	for ; a < len(b.points) && b.points[a].at < t1; a++ {
		p := b.points[a]
		lo = min(lo, p.inUse)
		if p.inUse > hi {
			hi, top = p.inUse, p
		}
		n++
	}
	return lo, hi, top, n
}

func (b *brute) liveAt(n int) []int32 {
	var out []int32
	for i, x := range b.blocks {
		if x.birth < n && (x.death == 0 || x.death > n) {
			out = append(out, int32(i))
		}
	}
	return out
}
