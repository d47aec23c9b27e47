package remedy

import (
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/ort"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis/reading"
)

// onnx is the work on an arena of ONNX Runtime. Its log has the requests that
// made it grow, and not those that found room inside.
type onnx struct {
	*work
	out   Outcome
	o     ort.Options
	s     *sequence
	limit int64 // 0 when there is none
}

const growers = "the requests that made the arena grow are all there were, and all stay live"

// ORT replays an arena's growth, as the facts of its reading tell it, and the
// refused request if there is one.
func ORT(r *reading.Reading, o Options) Outcome {
	t := onnx{work: o.work()}
	if !t.read(&r.Facts) {
		return t.out
	}
	if n := number(&r.Facts, "requested_rounded_bytes"); n > 0 && n < 1<<50 {
		t.s.add(call{what: refused, bytes: n})
		t.failure()
	} else if n < 0 {
		t.peaks()
	}
	t.out.order()
	return t.out
}

// number is a fact that is a whole number; -1 where it is none.
func number(f *reading.Facts, name string) int64 {
	if v, ok := f.Get(name); ok && v.Kind == reading.IntKind {
		return v.Int
	} else if ok && v.Kind == reading.UintKind {
		return math.MaxInt64
	}
	return -1
}

func (t *onnx) read(f *reading.Facts) bool {
	list, _ := f.Get("extensions")
	t.s = newSequence(len(list.List) + 2)
	for i := range list.List {
		n := number(&list.List[i].Object, "requested")
		if n <= 0 {
			return false
		}
		t.s.add(call{what: ask, bytes: n})
	}
	t.s.begins = len(t.s.calls)
	positive := func(name string) int64 {
		if n := number(f, name); n > 0 {
			return n
		}
		return 0
	}
	t.o = ort.Options{
		InitialChunk: positive("initial_chunk_size_bytes"), MaxDead: positive("max_dead_bytes_per_chunk"),
		GrowthChunk: positive("initial_growth_chunk_size_bytes"), MaxExtend: positive("max_power_of_two_extend_bytes"),
	}
	if number(f, "arena_extend_strategy") == 1 {
		t.o.Strategy = ort.SameAsRequested
	}
	if n := positive("memory_limit"); n < math.MaxInt64 {
		t.limit = n
	}
	return len(t.s.calls) > 0
}

func (t *onnx) machine(change func(*ort.Options), limit int64) (machine, error) {
	o := t.o
	o.MaxMemory = limit
	if change != nil {
		change(&o)
	}
	a, err := ort.New(torch.NewDevice(alloc.NewCard(0), 0), o)
	if err != nil {
		return nil, fmt.Errorf("replay an arena: %w", err)
	}
	return plain{a}, nil
}

func (t *onnx) candidates() []candidate {
	own := func(setting string, change func(*ort.Options)) candidate {
		return candidate{setting: setting, kind: "ort", own: true, make: func(limit int64) (machine, error) { return t.machine(change, limit) }}
	}
	var list []candidate
	if t.o.Strategy == ort.NextPowerOfTwo {
		list = append(list, own("arena_extend_strategy=kSameAsRequested", func(o *ort.Options) { o.Strategy = ort.SameAsRequested }))
	} else {
		list = append(list, own("arena_extend_strategy=kNextPowerOfTwo", func(o *ort.Options) { o.Strategy = ort.NextPowerOfTwo }))
	}
	list = append(list, own("initial_chunk_size_bytes=16777216", func(o *ort.Options) { o.InitialChunk = 16 << 20 }))
	return list
}

func (t *onnx) failure() {
	if t.limit == 0 {
		t.out.say("Nothing was replayed: the device refused, and the text does not say what it had.")
		return
	}
	m, err := t.machine(nil, t.limit)
	if err != nil {
		return
	}
	if r := t.play(t.s, m, t.limit); !r.asRecorded(t.s) {
		t.out.say("The requests that made the arena grow, replayed under the recorded settings, do not fail as recorded: what filled it is not in the text, so no setting can be said to serve.")
		return
	}
	t.out.say("The requests that made the arena grow were replayed; under the recorded settings the last one fails as recorded.")
	if n, known := largest(t.s.last().bytes, ort.Granule, func(bytes int64) (bool, bool) {
		return t.replaced(t.s, bytes, func() (machine, error) { return t.machine(nil, t.limit) })
	}); known {
		t.out.least(t.s.last().bytes, n)
	}
	var live int64
	for i := range t.s.calls {
		live += (t.s.calls[i].bytes + ort.Granule - 1) / ort.Granule * ort.Granule
	}
	t.out.Short = max(0, live-t.limit)
	t.try(&t.out, played{sequence: t.s, assumes: growers}, played{}, append(t.candidates(), others("ort")...), t.limit)
}

func (t *onnx) peaks() {
	list := append([]candidate{{
		setting: asRecorded, kind: "ort", own: true,
		make: func(limit int64) (machine, error) { return t.machine(nil, limit) },
	}}, t.candidates()...)
	list = append(list, others("ort")...)
	var o Outcome
	t.try(&o, played{sequence: t.s, assumes: growers}, played{}, list, t.limit)
	if len(o.Trials) == 0 {
		return
	}
	t.out.Peaks = o.Trials
	t.out.say(fmt.Sprintf("No request failed. Replayed, the requests that made the arena grow took %s of the driver under the recorded settings.",
		event.FormatBytes(o.Trials[0].Peak)))
}
