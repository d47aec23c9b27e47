package remedy

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
)

// History replays a recorded history of one allocator. What served it is known
// by its kind alone: of its settings, those are taken under which the replay
// fails as recorded.
func History(x *contest.Trace, o Options) Outcome {
	t := history{x: x, work: o.work()}
	if x.Allocs == 0 {
		return t.out
	}
	if t.s = sequenceOf(x); x.OutOfMem > 0 && x.Limit > 0 && t.baseline() {
		s := played{sequence: t.s}
		if x.Held {
			s.assumes = heldFirst
		}
		t.try(&t.out, s, played{}, t.candidates(), x.Limit)
	} else {
		t.peaks()
	}
	t.out.order()
	return t.out
}

// heldFirst is what a history takes for granted that begins in the middle.
const heldFirst = "what was live when the recording began is asked for first, without the idle parts between"

// whole says what was replayed.
func (t *history) whole() string {
	if t.x.Held {
		return "The recording was replayed from what was live when it began"
	}
	return "The whole history was replayed"
}

// history is the work on one recorded history.
type history struct {
	x *contest.Trace
	s *sequence
	*work
	out Outcome
	own candidate // as recorded
}

// sequenceOf takes a trace over, up to its last failure if it has one.
func sequenceOf(x *contest.Trace) *sequence {
	s := newSequence(x.Len())
	s.slots = int32(x.Slots)
	x.Each(func(c *contest.Call) {
		y := call{bytes: c.Bytes, slot: c.Slot, stream: uint32(c.Stream), stays: c.Parameter}
		switch c.Kind {
		case contest.Allocate:
			if c.Bytes <= 0 {
				return
			}
			if c.Fails {
				y.what = refused
				s.fails++
			}
		case contest.Free:
			y.what = drop
		case contest.EndStep:
			y.what = stepEnd
		case contest.GiveBack:
			y.what = empty
		}
		s.streams = max(s.streams, y.stream+1)
		s.calls = append(s.calls, y)
	})
	s.cut()
	return s
}

// kindsOf are the ways in which an allocator of that kind may have been set.
func kindsOf(kind string) []candidate {
	var list []candidate
	switch kind {
	case "bfc":
		list = []candidate{
			ofKind("TF_FORCE_GPU_ALLOW_GROWTH=true", "bfc", kinds.Setting{Name: "growth", Value: "true"}),
			ofKind("TF_FORCE_GPU_ALLOW_GROWTH=false", "bfc", kinds.Setting{Name: "growth", Value: "false"}),
		}
	case "torch":
		list = []candidate{
			ofKind("the defaults of PyTorch", "torch"),
			ofKind("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "torch", kinds.Setting{Name: "expandable_segments", Value: "true"}),
		}
		for _, mb := range []string{"512", "256", "128", "64", "32", "20"} {
			list = append(list, ofKind("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:"+mb, "torch", kinds.Setting{Name: "max_split_size_mb", Value: mb}))
		}
	case "ort":
		list = []candidate{
			ofKind("arena_extend_strategy=kNextPowerOfTwo", "ort"),
			ofKind("arena_extend_strategy=kSameAsRequested", "ort", kinds.Setting{Name: "arena_extend_strategy", Value: "same_as_requested"}),
		}
	default:
		return nil
	}
	for i := range list {
		list[i].own = true
	}
	return list
}

// baseline finds the settings that fail as recorded; of several, those that
// held as much of the driver come first.
func (t *history) baseline() bool {
	for _, exact := range []bool{true, false} {
		for _, c := range kindsOf(t.x.Kind) {
			m, err := c.make(t.x.Limit)
			if err != nil {
				continue
			}
			r := t.play(t.s, m, t.x.Limit)
			same := t.x.Original != nil && r.peak == t.x.Original.PeakReserved
			if r.asRecorded(t.s) && (same || !exact) {
				t.own = c
				t.out.say(fmt.Sprintf("%s: under %s the request fails as recorded.", t.whole(), c.setting))
				t.least()
				return true
			}
		}
	}
	if !t.stopped {
		t.out.say(t.whole() + ", but under no setting of its allocator does it fail as recorded, so no setting can be said to serve.")
	}
	return false
}

func (t *history) least() {
	const granule = 512 // a multiple of every allocator's
	c := t.s.last()
	if n, known := largest(c.bytes, granule, func(bytes int64) (bool, bool) {
		return t.replaced(t.s, bytes, func() (machine, error) { return t.own.make(t.x.Limit) })
	}); known {
		t.out.least(c.bytes, n)
	}
	var live int64
	size := make([]int64, t.s.slots)
	for i := range t.s.calls {
		switch x := &t.s.calls[i]; x.what {
		case ask:
			size[x.slot] = x.bytes
			live += x.bytes
		case drop:
			live -= size[x.slot]
		default:
		}
	}
	t.out.Short = max(0, live+c.bytes-t.x.Limit)
}

func (t *history) candidates() (list []candidate) {
	for _, c := range kindsOf(t.x.Kind) {
		if c.setting != t.own.setting {
			list = append(list, c)
		}
	}
	return append(list, others(t.x.Kind)...)
}

// peaks tells what the history takes of a device without end, failed requests
// served.
func (t *history) peaks() {
	calls := make([]call, 0, len(t.s.calls)+t.s.fails)
	for _, c := range t.s.calls {
		served := c.what == refused
		if served {
			c.what = ask
		}
		if calls = append(calls, c); served {
			calls = append(calls, call{what: drop, slot: c.slot})
		}
	}
	t.s.calls = calls
	t.s.fails = 0
	var o Outcome
	t.try(&o, played{sequence: t.s}, played{}, append(kindsOf(t.x.Kind), others(t.x.Kind)...), 0)
	if len(o.Trials) == 0 {
		return
	}
	t.out.Peaks = o.Trials
	switch {
	case t.x.OutOfMem == 0:
		t.out.say("No request failed.")
	case t.x.Limit == 0:
		t.out.say("What the device had is not told, so no setting can be said to have served; what all requests together would have taken is.")
	}
	t.out.say(fmt.Sprintf("%s of requests were live at once at the most; replayed on a device without end, allocators take what is listed.", event.FormatBytes(t.x.Floor)))
}
