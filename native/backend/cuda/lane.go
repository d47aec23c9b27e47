//go:build cuda

package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"gorgonia.org/cu"

	"tideline/native/backend/cuda/lower"
	"tideline/protocol/event"
	"tideline/shared/exec"
)

const streams = 4

// lane is a logical device: four streams of a card, and the events of the work
// on them. Its fields belong to the card's goroutine unless said otherwise.
type lane struct {
	d       *gpu
	b       *Backend
	streams [streams]cu.Stream
	made    int // of streams
	pool    []cu.Event
	all     []cu.Event // every event made, to be destroyed
	pending [streams][]*ticket
	last    [streams]int64 // end of the last resolved work: a stream runs in order
	posted  uint64
	anchor  anchor
	blas    *blas

	// Of the run's goroutine.
	latest [streams]*ticket
}

// anchor ties the card's clock to the run's.
type anchor struct {
	event cu.Event
	host  int64
}

// ticket is a piece of work on a stream. The end that the executor got for it
// is a promise, unique in the run: who waits for that time waits for the work.
type ticket struct {
	lane   *lane
	stream event.StreamID
	end    int64 // promised
	issued int64
	name   string

	begun, ended cu.Event // of the card's goroutine
	recorded     atomic.Bool
	done         atomic.Bool
	span         exec.Span // measured; good once done

	// What a copy touches on accelerators; the zero Ref is nothing.
	from, to exec.Ref
}

// order is what the run's goroutine hands to a card's.
type order struct {
	call func() // alone: anything else

	t     *ticket
	waits []*ticket
	cmds  []lower.Command
	move  transfer
}

// transfer is a copy. Addresses are the driver's.
type transfer struct {
	kind     moveKind
	dst, src uint64
	host     unsafe.Pointer
	bytes    int64
	peer     *lane // destination, for a copy to another card
}

type moveKind uint8

const (
	noMove moveKind = iota
	up
	down
	across
	inside
)

// perform gives an order to the driver, on the card's goroutine.
func (o *order) perform() {
	if o.call != nil {
		o.call()
		return
	}
	t := o.t
	l := t.lane
	if err := l.perform(o); err != nil {
		l.b.fail(err)
		t.span = exec.Span{Begin: t.issued, End: t.issued}
		t.done.Store(true)
	}
	t.recorded.Store(true)
	l.b.reuse(o)
	if l.posted++; l.posted%pollEvery == 0 {
		l.resolve()
	}
}

// pollEvery is after how much work the card's goroutine looks which of it is
// done, so that events come back for reuse while the host runs ahead.
const pollEvery = 64

func (l *lane) perform(o *order) error {
	t := o.t
	if broken := l.d.broken.Load(); broken != nil {
		return *broken
	}
	s := l.streams[t.stream]
	if err := l.await(o, s); err != nil {
		return err
	}
	begun, err := l.event()
	if err != nil {
		return err
	}
	ended, err := l.event()
	if err != nil {
		return err
	}
	if err := begun.Record(s); err != nil {
		return l.d.fail("begin "+t.name, err)
	}
	for i := range o.cmds {
		if err := l.command(&o.cmds[i], s); err != nil {
			return l.d.fail(t.name, err)
		}
	}
	if err := l.transfer(&o.move, s); err != nil {
		return l.d.fail(t.name, err)
	}
	if err := ended.Record(s); err != nil {
		return l.d.fail("end "+t.name, err)
	}
	t.begun, t.ended = begun, ended
	l.pending[t.stream] = append(l.pending[t.stream], t)
	return nil
}

// await lets the stream wait for other work. What another card's goroutine is
// still to record was ordered before this, so it gets there.
func (l *lane) await(o *order, s cu.Stream) error {
	for _, w := range o.waits {
		for !w.recorded.Load() {
			runtime.Gosched()
		}
		if w.done.Load() {
			continue
		}
		if err := s.Wait(w.ended, 0); err != nil {
			return l.d.fail("let "+o.t.name+" wait for "+w.name, err)
		}
	}
	return nil
}

func (l *lane) command(c *lower.Command, s cu.Stream) error {
	switch c.Kind {
	case lower.Product:
		if l.blas != nil {
			return l.blas.product(&c.Gemm)
		}
		return l.launch(c, s)
	case lower.Launch:
		return l.launch(c, s)
	case lower.Fill32:
		return cu.MemsetD32Async(cu.DevicePtr(c.Dst), uint(c.Value), c.Count, s)
	case lower.Fill8:
		return cu.MemsetD8Async(cu.DevicePtr(c.Dst), byte(c.Value), c.Count, s)
	case lower.Move:
		return cu.MemcpyDtoDAsync(cu.DevicePtr(c.Dst), cu.DevicePtr(c.Src), c.Count, s)
	}
	return fmt.Errorf("command %d is unknown", c.Kind)
}

func (l *lane) launch(c *lower.Command, s cu.Stream) error {
	var params [lower.MaxArgs]unsafe.Pointer
	for i := range c.NArgs {
		params[i] = unsafe.Pointer(&c.Args[i])
	}
	return l.d.functions[c.Kernel].Launch(
		int(c.Grid[0]), int(c.Grid[1]), 1, int(c.Block[0]), int(c.Block[1]), 1, 0, s, params[:c.NArgs])
}

func (l *lane) transfer(m *transfer, s cu.Stream) error {
	switch m.kind {
	case up:
		return cu.MemcpyHtoDAsync(cu.DevicePtr(m.dst), m.host, m.bytes, s)
	case down:
		return cu.MemcpyDtoHAsync(m.host, cu.DevicePtr(m.src), m.bytes, s)
	case inside:
		return cu.MemcpyDtoDAsync(cu.DevicePtr(m.dst), cu.DevicePtr(m.src), m.bytes, s)
	case across:
		return cu.MemcpyPeerAsync(cu.DevicePtr(m.dst), m.peer.d.ctx, cu.DevicePtr(m.src), l.d.ctx, m.bytes, s)
	default:
		return nil
	}
}

// event takes one from the pool.
func (l *lane) event() (cu.Event, error) {
	if n := len(l.pool); n > 0 {
		e := l.pool[n-1]
		l.pool = l.pool[:n-1]
		return e, nil
	}
	e, err := cu.MakeEvent(cu.DefaultEvent)
	if err != nil {
		return e, l.d.fail("make an event", err)
	}
	l.all = append(l.all, e)
	return e, nil
}

// open makes the streams, on the card's goroutine.
func (l *lane) open(now func() int64) error {
	for i := range l.streams {
		s, err := cu.MakeStream(cu.NonBlocking)
		if err != nil {
			return l.d.fail("make a stream", err)
		}
		l.streams[i] = s
		l.made++
	}
	var err error
	if l.blas, err = openBLAS(l.streams[event.StreamCompute]); err != nil {
		return err
	}
	return l.setAnchor(now)
}

// setAnchor reads both clocks at one moment. Elapsed times are single precision
// milliseconds, so the anchor must not lie too far back.
func (l *lane) setAnchor(now func() int64) error {
	e, err := l.event()
	if err != nil {
		return err
	}
	if err := e.Record(l.streams[event.StreamCompute]); err != nil {
		return l.d.fail("read the card's clock", err)
	}
	if err := e.Synchronize(); err != nil {
		return l.d.fail("read the card's clock", err)
	}
	if old := l.anchor.event; old != (cu.Event{}) {
		l.pool = append(l.pool, old)
	}
	l.anchor = anchor{e, now()}
	return nil
}

// anchorAge is after how many nanoseconds the clocks are compared again.
const anchorAge = 500_000_000

// wait lets the card's goroutine, and with it the caller, wait for a ticket.
func (l *lane) wait(t *ticket) {
	err := l.d.do(func() error {
		if t.done.Load() {
			return nil
		}
		if err := t.ended.Synchronize(); err != nil {
			return l.d.fail("wait for "+t.name+" or work before it", err)
		}
		l.resolve()
		return nil
	})
	l.after(err)
}

// idle waits for all streams.
func (l *lane) idle(now func() int64) {
	err := l.d.do(func() error {
		if broken := l.d.broken.Load(); broken != nil {
			return *broken
		}
		for _, s := range l.streams {
			if err := s.Synchronize(); err != nil {
				return l.d.fail("wait for "+l.unfinished(), err)
			}
		}
		l.resolve()
		if now()-l.anchor.host > anchorAge {
			return l.setAnchor(now)
		}
		return nil
	})
	l.after(err)
}

// unfinished names the work that a wait is for.
func (l *lane) unfinished() string {
	for _, list := range l.pending {
		if len(list) > 0 {
			return list[0].name + " or work after it"
		}
	}
	return "the card"
}

// after takes the outcome of a wait: with an error nothing more will come, so
// what is pending counts as over.
func (l *lane) after(err error) {
	if err == nil {
		return
	}
	l.b.fail(err)
	_ = l.d.do(func() error { // answers nothing
		for s, list := range l.pending {
			for _, t := range list {
				t.span = exec.Span{Begin: t.issued, End: t.issued}
				t.done.Store(true)
			}
			l.pending[s] = nil
		}
		return nil
	})
}

// resolve gives the work that is done its times.
func (l *lane) resolve() {
	seen := l.b.clock.Now()
	for s := range l.pending {
		list := l.pending[s]
		n := 0
		for n < len(list) && l.measure(list[n], seen) {
			n++
		}
		if n > 0 {
			l.pending[s] = append(list[:0], list[n:]...)
		}
	}
}

// measure reads a ticket's events, if they have passed. No work can begin
// before it was ordered or end after it was seen to be done; the events may say
// otherwise by the tick of their clock.
func (l *lane) measure(t *ticket, seen int64) bool {
	if t.ended.Query() != nil {
		return false
	}
	begin, ok1 := l.time(t.begun)
	end, ok2 := l.time(t.ended)
	if !ok1 || !ok2 {
		begin, end = t.issued, seen
	}
	begin = min(max(begin, t.issued, l.last[t.stream]), max(seen, t.issued))
	end = min(max(end, begin), max(seen, begin))
	l.last[t.stream] = end
	t.span = exec.Span{Begin: begin, End: end}
	l.pool = append(l.pool, t.begun, t.ended)
	t.done.Store(true)
	return true
}

// time is an event's on the run's clock.
func (l *lane) time(e cu.Event) (int64, bool) {
	ms, err := l.anchor.event.Elapsed(e)
	return l.anchor.host + int64(ms*1e6), err == nil
}

// close gives the streams and events back, on the card's goroutine. With a
// broken context the driver refuses; they go with it.
func (l *lane) close() {
	_ = l.d.do(func() error {
		l.blas.close()
		for i := range l.made {
			_ = l.streams[i].Synchronize()
		}
		for i := range l.all {
			_ = cu.DestroyEvent(&l.all[i])
		}
		for i := range l.made {
			_ = l.streams[i].Destroy()
		}
		l.all, l.pool, l.made = nil, nil, 0
		return nil
	})
}
