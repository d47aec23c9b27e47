package pipeline

import (
	"math"

	"tideline/protocol/event"
)

// log holds events whose times are known and orders them until they are told.
// It is a binary heap by time and then by the order of arrival.
type log struct {
	sink  event.Sink
	names map[string]event.StringID
	heap  []entry
	seq   uint64
	ids   uint64
	ev    event.Event

	buffered, limit int64 // of the prefetch buffer, as told
}

type entry struct {
	e     event.Event
	seq   uint64
	delta int64 // of the prefetch buffer; its size is filled in when told
}

func (l *log) open(sink event.Sink, strings *event.Strings, limit int) {
	if sink == nil {
		return
	}
	l.sink = sink
	l.names = make(map[string]event.StringID, 5)
	for _, s := range []string{StageSource, StageMap, StageShuffle, StageBatch, StagePrefetch} {
		l.names[s] = strings.ID(s)
	}
	l.limit = int64(limit)
}

// stage records the work of a stage on one element; work that takes no time
// is none.
func (l *log) stage(begin, end int64, stage string, worker event.StreamID, bytes int64) {
	if l.sink == nil || begin == end {
		return
	}
	l.ids++
	e := event.Event{Kind: event.StageBegin, Time: begin, Op: l.names[stage], ID: l.ids, Stream: worker, Size: bytes, Step: event.NoStep, Flags: event.Modelled}
	l.push(entry{e: e})
	e.Kind, e.Time = event.StageEnd, end
	l.push(entry{e: e})
}

// change records that the prefetch buffer got or lost a batch, and its limit
// from then on (0: as before). Its size is counted when the event is told,
// because what happens before may be decided later.
func (l *log) change(at int64, delta, limit int) {
	if l.sink == nil {
		return
	}
	e := event.Event{Kind: event.QueueDepth, Time: at, Op: l.names[StagePrefetch], Requested: int64(limit), Step: event.NoStep}
	l.push(entry{e: e, delta: int64(delta)})
}

// set records a buffer's size.
func (l *log) set(at int64, stage string, size, limit int) {
	if l.sink == nil {
		return
	}
	l.push(entry{e: event.Event{Kind: event.QueueDepth, Time: at, Op: l.names[stage], Size: int64(size), Requested: int64(limit), Step: event.NoStep}})
}

func (l *log) earliest() int64 {
	if len(l.heap) == 0 {
		return math.MaxInt64
	}
	return l.heap[0].e.Time
}

func (l *log) tell(until int64) {
	for l.earliest() <= until {
		x := l.pop()
		l.ev = x.e
		if x.delta != 0 {
			l.buffered += x.delta
			l.limit = max(l.limit, x.e.Requested)
			l.ev.Size, l.ev.Requested = l.buffered, l.limit
		}
		l.sink.Emit(&l.ev)
	}
}

func (l *log) less(i, j int) bool {
	a, b := &l.heap[i], &l.heap[j]
	if a.e.Time != b.e.Time {
		return a.e.Time < b.e.Time
	}
	return a.seq < b.seq
}

func (l *log) push(x entry) {
	l.seq++
	x.seq = l.seq
	l.heap = append(l.heap, x)
	for i := len(l.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !l.less(i, up) {
			return
		}
		l.heap[i], l.heap[up] = l.heap[up], l.heap[i]
		i = up
	}
}

func (l *log) pop() entry {
	x := l.heap[0]
	last := len(l.heap) - 1
	l.heap[0] = l.heap[last]
	l.heap = l.heap[:last]
	for i := 0; ; {
		c := 2*i + 1
		if c >= last {
			return x
		}
		if c+1 < last && l.less(c+1, c) {
			c++
		}
		if !l.less(c, i) {
			return x
		}
		l.heap[i], l.heap[c] = l.heap[c], l.heap[i]
		i = c
	}
}
