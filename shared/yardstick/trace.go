package yardstick

import (
	"fmt"
	"slices"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/torch/random"
	"tideline/shared/launch"
)

// Op allocates Bytes into a slot, or frees what is there where Bytes is 0.
type Op struct {
	Slot  int32
	Bytes int64
	Align int64 // 0 means the default
}

// Trace is a sequence of operations on an allocator.
type Trace struct {
	Name  string
	Ops   []Op
	Slots int
}

// natural reports whether no request asks for more than the alignment that
// every block of BFC has.
func (t *Trace) natural() bool {
	return !slices.ContainsFunc(t.Ops, func(o Op) bool { return o.Align > bfc.MinAllocation })
}

// stretch is how many operations are timed as one, see Stopwatch: a fraction
// of a millisecond, which a busy machine leaves alone most of the time.
const stretch = 4000

// stretches calls f for all operations, and lap after each stretch of them.
func stretches(ops int, lap func(), f func(from, to int) error) error {
	for from := 0; from < ops; from += stretch {
		if err := f(from, min(ops, from+stretch)); err != nil {
			return err
		}
		lap()
	}
	return nil
}

// Play does the operations, with addrs (one per slot, all 0) as its memory. A
// request that fails leaves its slot empty.
func (t *Trace) Play(a alloc.Allocator, addrs []uint64) error {
	return t.play(a, addrs, 0, len(t.Ops))
}

// laps is Play, stretch by stretch.
func (t *Trace) laps(a alloc.Allocator, addrs []uint64, lap func()) error {
	return stretches(len(t.Ops), lap, func(from, to int) error { return t.play(a, addrs, from, to) })
}

func (t *Trace) play(a alloc.Allocator, addrs []uint64, from, to int) error {
	ops := t.Ops[from:to]
	for i := range ops {
		op := &ops[i]
		if op.Bytes == 0 {
			if err := a.Free(addrs[op.Slot]); err != nil {
				return fmt.Errorf("%s, operation %d: %w", t.Name, from+i, err)
			}
			continue
		}
		b, _ := a.Allocate(alloc.Request{Bytes: op.Bytes, Alignment: op.Align})
		addrs[op.Slot] = b.Address
	}
	return nil
}

// workloads are the kinds of traces that allocators of deep learning meet: one
// step over and over, tensors that outlive their use, shapes that change.
func workloads() []struct {
	name string
	w    api.Workload
} {
	gpu := []api.Device{{Preset: "t4-16g"}}
	return []struct {
		name string
		w    api.Workload
	}{
		{"dnn", api.Workload{Model: "resnet50", Mode: api.Graph, Train: &api.Train{}, Batch: []int{32}, Steps: 60, Devices: gpu}},
		{"eager", api.Workload{Model: "resnet18", Mode: api.Eager, Train: &api.Train{}, Batch: []int{32, 24, 16}, Steps: 90, Devices: gpu}},
		{"nlp", api.Workload{Model: "bert-base", Mode: api.Graph, Train: &api.Train{}, Batch: []int{8}, Sequence: []int{128, 96, 112, 64}, Steps: 40, Devices: gpu}},
	}
}

// Record is what a modelled run asks of its card's pool.
func Record(name string, w api.Workload) (*Trace, error) {
	t := &Trace{Name: name}
	strings := new(event.Strings)
	slots := map[uint64]int32{}
	var spare []int32
	pool := event.AllocatorID(0)
	_, err := launch.Run(w, launch.Options{Strings: strings, Sink: event.SinkFunc(func(e *event.Event) {
		switch {
		case e.Kind == event.AllocatorFacts:
			if f, err := event.ParseFields(strings.At(e.Text)); err == nil && f.Text("name") == "GPU_0_bfc" {
				pool = e.Allocator
			}
		case e.Allocator != pool || e.Device != 1:
		case e.Kind == event.Alloc:
			slot := int32(t.Slots)
			if n := len(spare); n > 0 {
				slot, spare = spare[n-1], spare[:n-1]
			} else {
				t.Slots++
			}
			slots[e.Address] = slot
			t.Ops = append(t.Ops, Op{Slot: slot, Bytes: e.Requested})
		case e.Kind == event.Free:
			t.Ops = append(t.Ops, Op{Slot: slots[e.Address]})
			spare = append(spare, slots[e.Address])
			delete(slots, e.Address)
		}
	})})
	if err != nil {
		return nil, fmt.Errorf("record trace %s: %w", name, err)
	}
	return t, nil
}

// Random is the random trace of package random.
func Random(s random.Shape) (*Trace, error) {
	r, err := random.Make(s)
	if err != nil {
		return nil, err
	}
	t := &Trace{Name: "random", Slots: r.Slots, Ops: make([]Op, len(r.Ops))}
	for i, op := range r.Ops {
		t.Ops[i] = Op{Slot: op.Slot, Bytes: op.Bytes}
	}
	return t, nil
}
