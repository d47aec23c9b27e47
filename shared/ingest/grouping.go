package ingest

import (
	"tideline/protocol/event"
	"tideline/shared/ingest/groups"
)

// grouping gives the blocks of a history the groups of their ops: see package
// groups. It hears the history twice: once to count, and once to pass it on.
type grouping struct {
	strs *event.Strings
	live map[place]holding
	of   map[event.AllocatorID]*holders
	sink event.Sink // nil while it counts
	e    event.Event
}

type place struct {
	allocator event.AllocatorID
	address   uint64
}

type holding struct {
	op   event.StringID
	size int64
}

// holders are the ops of an allocator.
type holders struct {
	number    map[event.StringID]int
	ops       []event.StringID
	now, most []int64 // bytes
	names     []string
	group     map[event.StringID]event.Category
}

func newGrouping(strs *event.Strings) *grouping {
	return &grouping{strs: strs, live: map[place]holding{}, of: map[event.AllocatorID]*holders{}}
}

// Emit implements event.Sink.
func (g *grouping) Emit(e *event.Event) {
	if g.sink == nil {
		g.count(e)
		return
	}
	h := g.of[e.Allocator]
	if h == nil || e.Kind != event.Alloc && e.Kind != event.AllocatorFacts {
		g.sink.Emit(e)
		return
	}
	g.e = *e
	switch {
	case e.Kind == event.AllocatorFacts && len(h.names) > 0:
		f, _ := event.ParseFields(g.strs.At(e.Text)) // our own: they can be read
		groups.Name(&f, h.names)
		g.e.Text = g.strs.ID(f.Encode())
	case e.Kind == event.Alloc && e.Category == event.Unknown:
		g.e.Category = h.group[e.Op]
	}
	g.sink.Emit(&g.e)
}

func (g *grouping) count(e *event.Event) {
	at := place{e.Allocator, e.Address}
	switch e.Kind {
	case event.Alloc:
		g.end(at)
		g.live[at] = holding{e.Op, e.Size}
		g.take(at.allocator, e.Op, e.Size)
	case event.Free:
		g.end(at)
	default:
	}
}

func (g *grouping) end(at place) {
	if b, ok := g.live[at]; ok {
		delete(g.live, at)
		g.take(at.allocator, b.op, -b.size)
	}
}

func (g *grouping) take(a event.AllocatorID, op event.StringID, size int64) {
	if op == 0 {
		return // nobody is named
	}
	h := g.of[a]
	if h == nil {
		h = &holders{number: map[event.StringID]int{}}
		g.of[a] = h
	}
	k, ok := h.number[op]
	if !ok {
		k = len(h.ops)
		h.number[op] = k
		h.ops, h.now, h.most = append(h.ops, op), append(h.now, 0), append(h.most, 0)
	}
	h.now[k] += size
	h.most[k] = max(h.most[k], h.now[k])
}

// pass forms the groups of what was counted, and passes on what comes from now.
func (g *grouping) pass(sink event.Sink) {
	for _, h := range g.of {
		h.group = map[event.StringID]event.Category{}
		for i, k := range groups.Largest(h.most, h.most) {
			h.names = append(h.names, g.strs.At(h.ops[k]))
			h.group[h.ops[k]] = groups.Category(i)
		}
	}
	g.live, g.sink = nil, sink
}
