package exec

import (
	"errors"
	"fmt"
	"math"

	"tideline/protocol/event"
)

// Feed is the input pipeline as a step sees it. Next's times never decrease.
type Feed interface {
	// Next asks at time now for the next batch.
	Next(now int64) (Batch, error)
	// Pending is the time of the earliest event that the feed has not told
	// yet, math.MaxInt64 when there is none. Advance tells what happened up to
	// and including a time, to the sink that Runtime.FeedSink gave.
	Pending() int64
	Advance(until int64)
}

// Batch is one batch of a Feed.
type Batch struct {
	Ready int64          // when it is there; the host waits until then
	Stage event.StringID // the part of the pipeline to blame for a wait
	// Plan is what the batch is for, where batches are sent ahead to a device and
	// not all of one shape; nil: for the plan of the step that asks.
	Plan *Plan
	// Input writes the content for input i of the program into its tensor; nil
	// where there is no content.
	Input func(i int, dst []byte) error
}

// FeedSink is where a Feed tells its events, which then take their place in
// the run's order.
func (r *Runtime) FeedSink() event.Sink { return event.SinkFunc(r.out.tell) }

// HoldHost takes host memory that the feed holds for as long as the run lasts.
// False means that there was none, which ends the run.
func (r *Runtime) HoldHost(what string, bytes int64) bool {
	id := r.strings.ID(what)
	_, ok := r.allocate(&request{bytes: bytes, op: id, tensor: id, space: r.hostSpace, category: event.Input})
	return ok
}

// Metric is a number that a step fetched.
type Metric struct {
	Name  string
	Value float64
}

func errNoInput(p *Plan, n *node, x *tensor) error {
	return fmt.Errorf("op %s reads %s before it is made: the program is not in order", p.p.Nodes[n.src].Name, p.p.Values[x.value].Name)
}

// Step runs the plan once on the feed's next batch and returns what was
// fetched, nothing on a Backend that computes nothing. Its errors are
// ErrOutOfMemory, after which OOM tells more, ErrStopped, or what broke;
// everything of the step has been freed then, and variables stay.
func (r *Runtime) Step(p *Plan, step int32, f Feed) ([]Metric, error) {
	if !r.cfg.Async && (errors.Is(r.failed, ErrOutOfMemory) || errors.Is(r.failed, ErrConflictingDevices)) {
		r.failed = nil // a smaller step may fit, another one copy nothing
	}
	if r.failed != nil {
		return nil, r.failed
	}
	r.step = step
	r.keptBefore = len(r.kept)
	r.out.follow(f)
	r.tellStep(event.StepBegin, p)
	metrics, err := r.steps(p, f)
	if err != nil {
		r.abandon(p)
		return nil, err
	}
	r.stepOver()
	r.tellKept()
	r.tellStep(event.StepEnd, p)
	r.step = event.NoStep
	return metrics, nil
}

// settler is an allocator that does something when the host has waited for the
// device, and at the end of a step.
type settler interface {
	Synchronize()
	EndStep()
}

// stepOver tells the allocators that a step is over, whose results the host has
// waited for.
func (r *Runtime) stepOver() {
	for i := range r.spaces {
		if m, ok := r.spaces[i].memory.(settler); ok {
			m.Synchronize()
			m.EndStep()
		}
	}
}

// ClearError forgets a failure, so that an asynchronous executor runs again.
func (r *Runtime) ClearError() { r.failed = nil }

func (r *Runtime) steps(p *Plan, f Feed) ([]Metric, error) {
	if !p.traced && !r.trace(p) {
		return nil, r.failed
	}
	if p.eager {
		clear(p.buf)
	}
	if err := r.nextBatch(p, f); err != nil {
		return nil, err
	}
	var err error
	switch {
	case p.eager:
		err = r.eagerStep(p, r.batch)
	case r.takeArenas(p):
		err = r.graphStep(p, r.batch)
	default:
		err = r.failed
	}
	if err != nil {
		return nil, err
	}
	m, err := r.fetches(p)
	r.giveArenas(p)
	return m, err
}

// Trace time of a concrete function in nanoseconds; assumed.
const (
	traceBase    = 5_000_000
	tracePerNode = 200_000
)

// trace makes what the plan needs before its first step.
func (r *Runtime) trace(p *Plan) bool {
	if p.eager {
		p.traced = r.makeVariables(p, false)
		return p.traced
	}
	r.Annotate(fmt.Sprintf("tracing: concrete function %s for batch %d", p.p.Name, p.p.Batch))
	r.backend.Spend(traceBase + tracePerNode*int64(len(p.nodes)))
	p.traced = r.makeVariables(p, false) && r.makeVariables(p, true) && r.makeConstants(p) && r.layOut(p)
	return p.traced
}

// nextBatch waits for the pipeline and makes the batch's host tensors. An
// eager program holds the last batch until it has this one.
func (r *Runtime) nextBatch(p *Plan, f Feed) error {
	if r.cfg.PrefetchToDevice > 0 && !p.atOnce && len(r.cfg.Devices) > int(firstAccelerator) {
		return r.nextAhead(p, f)
	}
	now := r.backend.Now()
	b, err := f.Next(now)
	if err != nil {
		return fmt.Errorf("input of step %d: %w", r.step+1, err)
	}
	r.out.feedAt = f.Pending()
	if b.Ready > now {
		r.stall(now, b)
	}
	r.batch = r.batch[:0]
	for i, t := range p.inputs {
		x := &p.tensors[t]
		id, ok := r.allocate(&request{
			bytes: x.bytes, op: r.names.batch, tensor: x.name, value: &p.p.Values[x.value], space: r.hostSpace, category: event.Input,
		})
		if !ok {
			return r.failed
		}
		r.batch = append(r.batch, id)
		if dst := r.backend.Bytes(r.ref(id)); dst != nil && b.Input != nil {
			if err := b.Input(i, dst); err != nil {
				return fmt.Errorf("input of step %d: %w", r.step+1, err)
			}
		}
	}
	r.dropHeld()
	return nil
}

// stall tells the wait for a batch. The device that idles is the first
// accelerator, or the host where there is none.
func (r *Runtime) stall(asked int64, b Batch) {
	r.stallID++
	dev := event.DeviceID(min(1, len(r.cfg.Devices)-1))
	r.ev = event.Event{Kind: event.StallBegin, Device: dev, ID: r.stallID, Op: b.Stage, Step: r.step}
	r.out.at(asked, &r.ev) // a real pipeline has made the host wait already
	r.backend.WaitUntil(b.Ready)
	r.ev = event.Event{Kind: event.StallEnd, Device: dev, ID: r.stallID, Op: b.Stage, Step: r.step}
	r.out.host(&r.ev)
}

// fetches lets the host read what the step returns: it waits for the device,
// and with that for everything that was ordered before.
func (r *Runtime) fetches(p *Plan) ([]Metric, error) {
	r.metrics = r.metrics[:0]
	for i := range p.fetches {
		x := &p.fetches[i]
		var b bufferID
		if p.eager {
			b = p.buf[x.tensor]
		} else {
			s := p.nodes[x.node].firstSlot
			b, p.slot[s] = p.slot[s], 0
		}
		ok := r.fetch(p, x, b)
		if !p.eager {
			r.drop(b)
		}
		if !ok {
			return nil, r.failed
		}
	}
	r.sync()
	if p.eager {
		for _, t := range p.atEnd {
			r.letGo(p, t)
		}
		r.holdBatch(p)
	} else {
		for _, b := range r.batch {
			if b != 0 {
				r.held = append(r.held, b)
			}
		}
	}
	r.batch = r.batch[:0]
	return r.metrics, r.failed
}

func (r *Runtime) fetch(p *Plan, x *fetch, b bufferID) bool {
	t := &p.tensors[x.tensor]
	host := b
	if !r.cfg.Devices[r.spaces[b.of(r)].device].IsHost() {
		q := request{
			bytes: t.bytes, op: x.id, tensor: t.name, value: &p.p.Values[t.value], space: r.hostSpace, category: event.Output,
		}
		if !p.eager && r.pinnedSpace != noSpace {
			q.space = r.pinnedSpace
		}
		var ok bool
		if host, ok = r.copied(b, &q, event.CauseFetch); !ok {
			return false
		}
		r.seen(host)
		r.backend.Spend(wakeUp)
		defer r.drop(host)
	}
	if t.elements == 1 {
		if n, ok := number(t.dtype, r.backend.Bytes(r.ref(host))); ok {
			r.tellMetric(x, n)
		}
	}
	return true
}

func (id bufferID) of(r *Runtime) spaceID { return r.buffers[id].space }

func (r *Runtime) tellMetric(x *fetch, v float64) {
	r.metrics = append(r.metrics, Metric{x.name, v})
	r.ev = event.Event{Kind: event.Metric, Op: x.id, Step: r.step, Size: int64(math.Float64bits(v))}
	r.out.host(&r.ev)
}

// holdBatch keeps an eager step's batch, with its mirrors, until the loop has
// got the next one.
func (r *Runtime) holdBatch(p *Plan) {
	for t := range p.tensors {
		x := &p.tensors[t]
		mirror := x.kind == copied && p.tensors[x.from].kind == inputTensor
		if (x.kind == inputTensor || mirror) && p.buf[t] != 0 {
			r.held = append(r.held, p.buf[t])
			p.buf[t] = 0
		}
	}
}

func (r *Runtime) dropHeld() {
	r.dropAll(r.held)
	r.held = r.held[:0]
}

// abandon frees everything of a step that did not end well.
func (r *Runtime) abandon(p *Plan) {
	r.sync()
	for i, b := range p.slot {
		p.slot[i] = 0
		if b != 0 && !p.eager {
			r.drop(b)
		}
	}
	if p.eager {
		r.abandonEager(p)
	} else {
		r.dropAll(r.batch)
		r.unkeep(r.keptBefore) // the call returned nothing to keep
		for _, t := range p.sentTo {
			if t != noTensor {
				r.letGo(p, t)
			}
		}
	}
	r.giveArenas(p)
	r.batch = r.batch[:0]
	r.dropHeld()
}

func (r *Runtime) abandonEager(p *Plan) {
	for t := range p.tensors {
		x := &p.tensors[t]
		b := p.buf[t]
		p.buf[t] = 0
		owned := x.kind == constant && len(p.p.Values[x.value].Shape) == 0
		if b != 0 && !owned {
			r.drop(b)
		}
		if x.kind == inputTensor {
			for i := range r.batch {
				if r.batch[i] == b {
					r.batch[i] = 0
				}
			}
		}
	}
	r.dropAll(r.batch)
}

func (r *Runtime) tellStep(k event.Kind, p *Plan) {
	r.ev = event.Event{Kind: k, Step: r.step, Size: int64(p.p.Batch)}
	r.out.host(&r.ev)
}
