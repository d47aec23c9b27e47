// Package peaks holds docs/peaks.md: what every model of the zoo needs at its
// peak in each mode of execution, by category, and which tensors make the
// difference, for which reason. The page is made of modelled runs;
//
//	go test ./shared/zoo/peaks -update
//
// writes it anew.
package peaks

import (
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/launch"
)

// The virtual card of docs/peaks.md, and how many steps show its peaks: the
// first makes the optimizer's slots at its end, and what a step leaves behind
// is there from the second on.
const (
	peakCard  = "v100-16g"
	largeCard = "b200-180g" // sixteen times over, for what does not fit
	peakSteps = 3
)

var (
	peakModes   = []api.Mode{api.Eager, api.Graph, api.Planned}
	peakBatches = []int{1, 8, 32, 64}
)

// recorded is a run: what happened to the card's memory, in order.
type recorded struct {
	fits    bool  // on the card
	limit   int64 // of its pool
	planned bool
	table   *event.Strings
	log     []event.Event
}

// measure runs a model's training on the card or, where that is too small, on
// one that pages to the host and so has no end.
func measure(t *testing.T, model string, batch int, mode api.Mode) *recorded {
	t.Helper()
	w := api.Workload{
		Model: model, Train: &api.Train{Optimizer: "adam"}, Batch: []int{batch}, Steps: peakSteps, Mode: mode,
		Devices: []api.Device{{Preset: peakCard}},
	}
	r, reason := run(t, w)
	r.fits = reason == event.EndDone
	limit := r.limit
	if reason == event.EndOutOfMemory {
		w.Devices[0] = api.Device{Preset: largeCard, Unified: true, Fraction: 16}
		r, reason = run(t, w)
		r.limit = limit
	}
	if reason != event.EndDone {
		t.Fatalf("%s at batch %d, %s: ended with %s", model, batch, mode, reason)
	}
	return r
}

func run(t *testing.T, w api.Workload) (*recorded, event.EndReason) {
	t.Helper()
	r := &recorded{planned: w.Mode == api.Planned, table: new(event.Strings)}
	res, err := launch.Run(w, launch.Options{Strings: r.table, Sink: event.SinkFunc(func(e *event.Event) {
		if onCard(e) {
			r.log = append(r.log, *e)
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	r.limit = res.Devices[1].Limit
	return r, res.Reason
}

// onCard says whether an event concerns the card's memory.
func onCard(e *event.Event) bool {
	if e.Device != 1 {
		return false
	}
	switch e.Kind {
	case event.AllocatorFacts, event.Alloc, event.Free, event.Forward:
		return true
	default:
		return false
	}
}

// block is a tensor's memory. Bytes.
type block struct {
	name            string
	category        event.Category
	size, requested int64 // taken and asked for
}

// moment is what the card holds after an event.
type moment struct {
	bytes int64  // in use of the pool
	op    string // that asked for memory
	held  []block
	past  map[string]fate // of each tensor that the step has made so far
}

// fate is what has become of a tensor made in the step.
type fate struct {
	live    bool
	takenBy string // the tensor that lies where it lay; "" when nobody took it over
}

// categories sums up requested bytes; rounded is what the pool's chunks and
// the arena hold beyond that.
func (m *moment) categories() (sum [event.NumCategories]int64, rounded int64) {
	rounded = m.bytes
	for _, b := range m.held {
		sum[b.category] += b.requested
		rounded -= b.requested
	}
	return sum, rounded
}

// reading follows the memory of a card through its events.
type reading struct {
	table      *event.Strings
	blocks     []block
	at         map[place]int // index in blocks
	pool, live int64         // live counts tensors alone, without rounding
	pooled     event.AllocatorID
}

type place struct {
	allocator event.AllocatorID
	address   uint64
}

func (r *recorded) read() *reading { return &reading{table: r.table, at: map[place]int{}} }

// arena is the name of the block around a planned step's tensors.
const arena = "planned arena"

func (r *reading) take(e *event.Event) {
	key := place{e.Allocator, e.Address}
	switch e.Kind {
	case event.AllocatorFacts:
		if facts, err := event.ParseFields(r.table.At(e.Text)); err == nil && facts.Text("kind") == "bfc" {
			r.pooled = e.Allocator
		}
	case event.Alloc:
		b := block{r.table.At(e.Tensor), e.Category, e.Size, e.Requested}
		r.at[key] = len(r.blocks)
		r.blocks = append(r.blocks, b)
		r.count(e.Allocator, &b, 1)
	case event.Forward:
		b := &r.blocks[r.at[key]]
		b.name, b.category = r.table.At(e.Tensor), e.Category
	case event.Free:
		b := &r.blocks[r.at[key]]
		r.count(e.Allocator, b, -1)
		*b = block{}
		delete(r.at, key)
	default:
	}
}

// count adds a block. What lies in an arena is in use of the pool as part of
// the arena; the arena itself is no tensor.
func (r *reading) count(in event.AllocatorID, b *block, sign int64) {
	if in == r.pooled {
		r.pool += sign * b.size
	}
	if b.name != arena {
		r.live += sign * b.requested
	}
}

// peak is the moment at which most of the pool is in use, and live the most
// that tensors came to at any time. An arena is in use from the start of a step
// to its end: there it is the moment at which tensors come to most, for which
// the arena has its size.
func (r *recorded) peak() (m *moment, live int64) {
	s := r.read()
	best, bytes := 0, int64(0)
	for i := range r.log {
		s.take(&r.log[i])
		if r.planned && s.live > live || !r.planned && s.pool > bytes {
			best = i
		}
		bytes, live = max(bytes, s.pool), max(live, s.live)
	}
	m = r.moment(best)
	m.bytes = bytes
	return m, live
}

// during is the moment of a step at which most of the pool is in use on behalf
// of an op; nil when the op asks for nothing.
func (r *recorded) during(op string, step int32) *moment {
	s := r.read()
	best, bytes := -1, int64(0)
	for i := range r.log {
		e := &r.log[i]
		s.take(e)
		if e.Kind != event.Free && e.Step == step && r.table.At(e.Op) == op && s.pool > bytes {
			best, bytes = i, s.pool
		}
	}
	if best < 0 {
		return nil
	}
	return r.moment(best)
}

// moment reads the log up to and with an event.
func (r *recorded) moment(last int) *moment {
	s := r.read()
	m := &moment{op: r.table.At(r.log[last].Op), past: map[string]fate{}}
	for i := range r.log[:last+1] {
		e := &r.log[i]
		before := ""
		if k, ok := s.at[place{e.Allocator, e.Address}]; ok {
			before = s.blocks[k].name
		}
		s.take(e)
		if e.Step != r.log[last].Step {
			continue
		}
		name := r.table.At(e.Tensor)
		switch e.Kind {
		case event.Alloc:
			m.past[name] = fate{live: true}
		case event.Forward:
			m.past[before] = fate{takenBy: name}
			m.past[name] = fate{live: true}
		case event.Free:
			m.past[before] = fate{}
		default:
		}
	}
	m.bytes = s.pool
	for _, b := range s.blocks {
		if b.name != "" && b.name != arena {
			m.held = append(m.held, b)
		}
	}
	return m
}
