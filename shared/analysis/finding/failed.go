package finding

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/store"
)

// Failed says in a user's terms why the run ran out of memory: the model, the
// batch, the type of its numbers, a leak, holes, or a limit. It is about the
// last request that failed for good.
func Failed(tl *store.Timeline, leaks []Finding) (Finding, bool) {
	ooms := tl.OOMs()
	for i := len(ooms) - 1; i >= 0; i-- {
		o := &ooms[i]
		if o.Retryable || o.Pool < 0 || o.Pool >= len(tl.Pools()) || tl.Pools()[o.Pool].Allocs() == 0 {
			continue
		}
		return failed(tl, o, leaks), true
	}
	return Finding{}, false
}

func failed(tl *store.Timeline, o *store.OOM, leaks []Finding) Finding {
	p := tl.Pools()[o.Pool]
	c := compose(tl, p, o.Moment, p.In(o.Moment))
	f := Finding{
		ID: OutOfMemory, Severity: Serious, Device: short(tl, p.Device), Culprit: orUnnamed(tl.Text(o.Op)),
		Holders: c.Holders[:min(len(c.Holders), 12)],
	}
	m := analysis.Measure(p.ChunkMapIn(o.Moment))
	f.put("requested_bytes", o.Requested, Bytes)
	f.put("in_use_bytes", c.InUse, Bytes)
	f.put("limit_bytes", p.Limit, Bytes)
	f.put("largest_hole_bytes", m.LargestFree, Bytes)
	f.put("fixed_bytes", c.Fixed(), Bytes)
	f.put("scales_with_batch_bytes", c.Scales(), Bytes)
	switch {
	case o.Cause == event.OOMFragmented:
		f.Kind, f.Title = "fragmentation", "Out of memory: enough is free, but in pieces"
		f.say(size(p.Limit-c.InUse) + " of the limit were not in use and " + size(o.Requested) + " were asked for, but the largest hole was " + size(m.LargestFree) + ".")
		f.remedies(tl, p, 0)
	case o.Cause == event.OOMOtherProcess || o.Cause == event.OOMLimitTooLow:
		f.Kind, f.Title = "limit", "Out of memory: the process got too little of the card"
		f.say("The device could have held this request without its limit, or without what others hold.")
	case o.Cause != event.OOMFull && o.Cause != event.OOMRequestExceedsDevice:
		f.Kind, f.Title = "other", "Out of memory: "+strings.ReplaceAll(o.Cause.String(), "_", " ")
	case leakOf(leaks, f.Device) != nil:
		f.Kind, f.Title = "leak", "Out of memory: a leak filled the card"
		l := leakOf(leaks, f.Device)
		f.Culprit = l.Culprit
		who := l.Culprit
		if n := int64(len(l.Holders)) - 1; n > 0 {
			who += " and " + plural(n, "other op")
		}
		f.say(size(l.Number("held_bytes")) + " of the " + size(c.InUse) + " in use are results of " + who + " from " +
			plural(l.Number("steps"), "step") + " that nobody let go.")
		f.Try = l.Try
	default:
		f.full(tl, &c, o)
	}
	return f
}

func leakOf(leaks []Finding, device string) *Finding {
	for i := range leaks {
		if leaks[i].Device == device {
			return &leaks[i]
		}
	}
	return nil
}

// full says what a full card is full of.
func (f *Finding) full(tl *store.Timeline, c *Composition, o *store.OOM) {
	s := tl.Settings()
	if field, ok := doublePrecision(tl); ok {
		f.Kind, f.Title = "dtype", "Out of memory: numbers of 8 bytes fill the card"
		wide := wideBytes(c.ByCategory)
		f.put("float64_bytes", wide, Bytes)
		f.say(size(wide) + " of the " + size(c.InUse) + " in use are float64; float32 needs half of that.")
		f.try(field, "float32")
		if field == "train.precision" {
			f.try(field, "mixed_float16")
		}
		return
	}
	if c.Fixed() >= c.Scales() {
		f.Kind, f.Title = "model", "Out of memory: the model is too large for the card"
		f.say("Weights, gradients and optimizer state take " + size(c.Fixed()) + " of the " + size(c.InUse) + " in use, whatever the batch: " + parts(c) + ".")
		if s.Text("train.optimizer") == "adam" || s.Text("train.optimizer") == "adamw" || s.Text("train.optimizer") == "amsgrad" {
			f.try("train.optimizer", "sgd")
		}
		return
	}
	f.Kind, f.Title = "batch", "Out of memory: the batch is too large"
	f.say(size(c.Scales()) + " of the " + size(c.InUse) + " in use grow with the batch, " + size(c.Fixed()) + " do not: " + parts(c) + ".")
	if list := s.Text("batch"); list != "" {
		if n := lastOf(list, o.Step); n > 1 {
			f.put("batch", n, Count)
		}
	}
}

// many says whether a setting is a list of several different values.
func many(list string) bool {
	first, rest, more := strings.Cut(list, ",")
	for more {
		var next string
		next, rest, more = strings.Cut(rest, ",")
		if strings.TrimSpace(next) != strings.TrimSpace(first) {
			return true
		}
	}
	return false
}

func largest(list string) string {
	most := 0
	for s := range strings.SplitSeq(list, ",") {
		if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil {
			most = max(most, n)
		}
	}
	return strconv.Itoa(most)
}

// lastOf is the value that a list, taken in turn, has in a step.
func lastOf(list string, step int32) int64 {
	parts := strings.Split(list, ",")
	n, err := strconv.ParseInt(strings.TrimSpace(parts[int(max(step, 0))%len(parts)]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
