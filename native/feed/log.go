package feed

import (
	"math"
	"sync"

	"tideline/protocol/event"
	"tideline/shared/pipeline"
)

// log gathers the events of all goroutines. The clock is read under the lock,
// so they lie in the order of their times.
type log struct {
	sink  event.Sink
	clock func() int64
	names []event.StringID // by stage

	mu      sync.Mutex
	pending []event.Event
	ids     uint64

	telling []event.Event // of the goroutine that calls tell
}

func (l *log) open(o *Options, names []string) {
	if o.Sink == nil {
		return
	}
	l.sink, l.clock = o.Sink, o.Clock
	l.names = make([]event.StringID, len(names))
	for i, s := range names {
		switch o.Dataset.Stages[i].Op {
		case pipeline.OpRepeat, pipeline.OpTake, pipeline.OpSkip, pipeline.OpShard: // have nothing to tell
		default:
			l.names[i] = o.Strings.ID(s)
		}
	}
}

func (l *log) begin(stage, worker int, bytes int64) (id uint64) {
	if l.sink == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids++
	l.push(event.Event{Kind: event.StageBegin, Op: l.names[stage], ID: l.ids, Stream: event.StreamID(worker), Size: bytes})
	return l.ids
}

func (l *log) end(stage, worker int, bytes int64, id uint64) {
	if l.sink == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(event.Event{Kind: event.StageEnd, Op: l.names[stage], ID: id, Stream: event.StreamID(worker), Size: bytes})
}

func (l *log) depth(stage int, size, limit int) {
	if l.sink == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.push(event.Event{Kind: event.QueueDepth, Op: l.names[stage], Size: int64(size), Requested: int64(limit)})
}

func (l *log) push(e event.Event) {
	e.Time, e.Step = l.clock(), event.NoStep
	l.pending = append(l.pending, e)
}

func (l *log) earliest() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return math.MaxInt64
	}
	return l.pending[0].Time
}

// tell copies what is due and tells it outside of the lock, so that a slow
// sink does not hold up the stages.
func (l *log) tell(until int64) {
	if l.sink == nil {
		return
	}
	l.mu.Lock()
	n := 0
	for n < len(l.pending) && l.pending[n].Time <= until {
		n++
	}
	l.telling = append(l.telling[:0], l.pending[:n]...)
	l.pending = l.pending[:copy(l.pending, l.pending[n:])]
	l.mu.Unlock()
	for i := range l.telling {
		l.sink.Emit(&l.telling[i])
	}
}
