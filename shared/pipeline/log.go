package pipeline

import (
	"math"

	"tideline/protocol/event"
)

// log holds events whose times are known and orders them until they are told:
// a binary heap by time and then by the order of arrival, of small nodes that
// point to the events.
type log struct {
	sink    event.Sink
	names   []event.StringID // by stage
	heap    []node
	entries []entry
	free    []int32 // slots of entries
	seq     uint64
	ids     uint64
	ev      event.Event

	buffered, limits []int64 // of prefetch buffers by stage, as told
}

type node struct {
	time int64
	seq  uint64
	slot int32
}

type entry struct {
	e     event.Event
	delta int64 // of a prefetch buffer; its size is filled in when told
	stage int
}

func (l *log) open(sink event.Sink, strings *event.Strings, d Dataset, names []string) {
	l.buffered, l.limits = make([]int64, len(names)), make([]int64, len(names))
	if sink == nil {
		return
	}
	l.sink = sink
	l.names = make([]event.StringID, len(names))
	for i, s := range names {
		switch d.Stages[i].Op {
		case OpRepeat, OpTake, OpSkip, OpShard: // have nothing to tell
		default:
			l.names[i] = strings.ID(s)
		}
	}
}

// stage records the work of a stage on one element; work that takes no time
// is none.
func (l *log) stage(begin, end int64, stage int, worker event.StreamID, bytes int64) {
	if l.sink == nil || begin == end {
		return
	}
	l.ids++
	e := event.Event{Kind: event.StageBegin, Time: begin, Op: l.names[stage], ID: l.ids, Stream: worker, Size: bytes, Step: event.NoStep, Flags: event.Modelled}
	l.push(entry{e: e})
	e.Kind, e.Time = event.StageEnd, end
	l.push(entry{e: e})
}

// change records that a prefetch buffer got or lost an element, and its limit
// from then on (0: as before). Its size is counted when the event is told,
// because what happens before may be decided later.
func (l *log) change(at int64, stage, delta, limit int) {
	if l.sink == nil {
		return
	}
	e := event.Event{Kind: event.QueueDepth, Time: at, Op: l.names[stage], Requested: int64(limit), Step: event.NoStep}
	l.push(entry{e: e, delta: int64(delta), stage: stage})
}

// set records a buffer's size.
func (l *log) set(at int64, stage, size, limit int) {
	if l.sink == nil {
		return
	}
	l.push(entry{e: event.Event{Kind: event.QueueDepth, Time: at, Op: l.names[stage], Size: int64(size), Requested: int64(limit), Step: event.NoStep}})
}

func (l *log) earliest() int64 {
	if len(l.heap) == 0 {
		return math.MaxInt64
	}
	return l.heap[0].time
}

func (l *log) tell(until int64) {
	for l.earliest() <= until {
		slot := l.pop()
		l.free = append(l.free, slot)
		x := &l.entries[slot]
		if x.delta != 0 {
			l.buffered[x.stage] += x.delta
			l.limits[x.stage] = max(l.limits[x.stage], x.e.Requested)
			x.e.Size, x.e.Requested = l.buffered[x.stage], l.limits[x.stage]
		}
		l.ev = x.e // the sink may ask for more, which moves the entries
		l.sink.Emit(&l.ev)
	}
}

func (n node) before(o node) bool {
	return n.time < o.time || n.time == o.time && n.seq < o.seq
}

func (l *log) push(x entry) {
	var slot int32
	if n := len(l.free); n > 0 {
		slot = l.free[n-1]
		l.free = l.free[:n-1]
		l.entries[slot] = x
	} else {
		slot = int32(len(l.entries))
		l.entries = append(l.entries, x)
	}
	l.seq++
	at := node{x.e.Time, l.seq, slot}
	l.heap = append(l.heap, at)
	i := len(l.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !at.before(l.heap[up]) {
			break
		}
		l.heap[i] = l.heap[up]
		i = up
	}
	l.heap[i] = at
}

// pop takes the earliest entry's slot off the heap.
func (l *log) pop() int32 {
	top := l.heap[0].slot
	last := len(l.heap) - 1
	at := l.heap[last]
	l.heap = l.heap[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= last {
			break
		}
		if c+1 < last && l.heap[c+1].before(l.heap[c]) {
			c++
		}
		if !l.heap[c].before(at) {
			break
		}
		l.heap[i] = l.heap[c]
		i = c
	}
	l.heap[i] = at
	return top
}
