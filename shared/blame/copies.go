package blame

import (
	"slices"
	"sort"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

type stretch struct{ from, to int64 }

// traffic is the copies between host and device, and the steps.
type traffic struct {
	open        map[uint64]event.Event // copies, by id
	busy        []stretch
	step        int64
	inStep      bool
	steps       []stretch
	first, last int64
	begun       bool
	out         reading.Copies
	longest     event.StringID
	arrays      []repeated // copies to the device of arrays of the host
}

func (t *traffic) add(e *event.Event) {
	switch e.Kind {
	case event.TransferBegin:
		if e.Stream == event.StreamH2D || e.Stream == event.StreamD2H {
			t.open[e.ID] = *e
		}
	case event.TransferEnd:
		b, ok := t.open[e.ID]
		if !ok {
			break
		}
		delete(t.open, e.ID)
		t.copied(&b, e.Time)
	case event.StepBegin:
		t.step, t.inStep = e.Time, true
	case event.StepEnd:
		if t.inStep && e.Time > t.step {
			t.steps = append(t.steps, stretch{t.step, e.Time})
		}
		t.inStep = false
	case event.OpBegin, event.OpEnd:
	default:
		return
	}
	if !t.begun {
		t.begun, t.first = true, e.Time
	}
	t.last = max(t.last, e.Time)
}

func (t *traffic) copied(b *event.Event, end int64) {
	t.busy = append(t.busy, stretch{b.Time, end})
	c := &t.out
	c.Count++
	c.Bytes += b.Size
	if b.Stream == event.StreamH2D && b.Size >= leastInput {
		t.again(b)
	}
	if d := end - b.Time; d > c.LongestTime || c.Count == 1 {
		c.LongestTime, c.LongestBytes, c.ToDevice, c.Pinned = d, b.Size, b.Stream == event.StreamH2D, b.Flags&event.Pinned != 0
		t.longest = b.Op
	}
}

// again counts a copy to the device.
func (t *traffic) again(b *event.Event) {
	for i := range t.arrays {
		if x := &t.arrays[i]; x.op == b.Op && x.size == b.Size {
			x.times++
			return
		}
	}
	if len(t.arrays) < maxRepeated {
		t.arrays = append(t.arrays, repeated{b.Op, b.Size, 1})
	}
}

// sum is what copies take of the time: of the steps, else of all between the
// first and the last event. nil where there are none.
func (t *traffic) sum(strs *event.Strings, first, last int64) *reading.Copies {
	if t.out.Count == 0 {
		return nil
	}
	c := t.out
	c.Longest = strs.At(t.longest)
	within := joined(t.steps)
	c.Steps = int64(len(t.steps))
	if c.Steps == 0 {
		within = []stretch{{min(first, t.first), max(last, t.last)}}
	}
	for _, s := range within {
		c.Of += s.to - s.from
	}
	k := 0
	for _, b := range joined(t.busy) {
		for k < len(within) && within[k].to <= b.from {
			k++
		}
		for i := k; i < len(within) && within[i].from < b.to; i++ {
			c.Busy += min(b.to, within[i].to) - max(b.from, within[i].from)
		}
	}
	if c.Of == 0 {
		return nil
	}
	return &c
}

// joined are stretches in order, those that touch as one.
func joined(list []stretch) (out []stretch) {
	list = slices.Clone(list)
	sort.Slice(list, func(i, j int) bool { return list[i].from < list[j].from })
	for _, s := range list {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}
