package finding

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// leakSteps is how many steps in a row must each leave something behind.
const leakSteps = 3

// keeper is what one op left behind.
type keeper struct {
	op       event.StringID
	category event.Category
	bytes    int64 // of all blocks that are still there
	blocks   int64
	asked    int64 // requested bytes of the last of them
	equal    bool  // all asked for the same
	births   []int32
}

type keeperKey struct {
	op       event.StringID
	category event.Category
}

// Leaks finds memory that grows from step to step: blocks that are alive at
// the end of the last step although they were made in earlier ones, of an op
// that left some in each of the last three steps. One finding for a pool.
func Leaks(tl *store.Timeline) (out []Finding) {
	all := steps(tl)
	if len(all) < leakSteps+1 {
		return nil
	}
	for _, p := range tl.Pools() {
		if p.Facts.Text("within") != "" || p.Allocs() == 0 {
			continue
		}
		if f, ok := leak(tl, p, all); ok {
			out = append(out, f)
		}
	}
	return out
}

func leak(tl *store.Timeline, p *store.Pool, all []store.Span) (Finding, bool) {
	last := all[len(all)-1]
	// The instant before the end, for a run's own end may share the nanosecond.
	ids := p.LiveAt(nil, last.End-1)
	list := keepers(p, ids, all)
	if len(list) == 0 || !grows(p, list, all) {
		return Finding{}, false
	}
	var bytes, blocks int64
	first := last.Step
	for i := range list {
		k := &list[i]
		bytes, blocks, first = bytes+k.bytes, blocks+k.blocks, min(first, k.births[0])
	}
	over := int64(last.Step-first) + 1
	perStep := bytes / over
	most := &list[0]
	name := orUnnamed(tl.Text(most.op))
	f := Finding{
		ID: Leak, Title: "A leak: memory grows with every step", Severity: Warning,
		Device: short(tl, p.Device), Culprit: name,
	}
	f.put("growth_bytes_per_step", perStep, Bytes)
	f.put("held_bytes", bytes, Bytes)
	f.put("blocks", blocks, Count)
	f.put("steps", over, Count)
	who, them := name+" makes tensors", "them"
	if n := len(list) - 1; n > 0 {
		who = name + " and " + plural(int64(n), "other op") + " make tensors"
	} else if blocks == over {
		who, them = name+" makes a tensor", "it"
	}
	f.say(who + " in every step and nobody lets " + them + " go: " + plural(blocks, "block") + " of " + plural(over, "step") +
		" are still there, " + size(bytes) + " in " + p.Name + ", " + size(perStep) + " more with each step" + each(most) + ".")
	if ended := tl.End(); p.Limit > 0 && perStep > 0 {
		left := max(0, p.Limit-p.At(last.End-1).InUse) / perStep
		f.put("steps_to_the_limit", left, Count)
		switch {
		case ended.Ended && ended.Reason == event.EndOutOfMemory && failedIn(tl, p):
			f.Severity = Serious
			f.say("The run ended when nothing was left. A larger limit or a smaller batch only puts that off.")
		default:
			f.say("At this rate the limit is reached after " + plural(left, "more step") + ".")
		}
	}
	for i := range list {
		f.Holders = append(f.Holders, Holder{orUnnamed(tl.Text(list[i].op)), list[i].category, list[i].bytes, list[i].blocks})
	}
	if tl.Settings().Text("keep") != "" {
		f.try("keep", "")
	}
	return f, true
}

func each(k *keeper) string {
	if !k.equal {
		return ""
	}
	return " (each asks for " + itoa(k.asked) + " bytes)"
}

func orUnnamed(name string) string {
	if name == "" {
		return "(no op)"
	}
	return name
}

func failedIn(tl *store.Timeline, p *store.Pool) bool {
	for _, o := range tl.OOMs() {
		if o.Pool == p.Index && !o.Retryable {
			return true
		}
	}
	return false
}

// keepers groups what lives by op and keeps the ops that left something in
// each of the last steps, the largest first.
func keepers(p *store.Pool, ids []int32, all []store.Span) []keeper {
	at := map[keeperKey]int{}
	var list []keeper
	for _, id := range ids {
		a := p.Alloc(int(id))
		if a.Step < 0 {
			continue
		}
		key := keeperKey{a.Op, a.Category}
		i, ok := at[key]
		if !ok {
			i = len(list)
			at[key] = i
			list = append(list, keeper{op: a.Op, category: a.Category, asked: a.Requested, equal: true})
		}
		k := &list[i]
		k.bytes += a.Size
		k.blocks++
		k.equal = k.equal && a.Requested == k.asked
		if n := len(k.births); n == 0 || k.births[n-1] != a.Step {
			k.births = append(k.births, a.Step) // allocations come by age
		}
	}
	var out []keeper
	for _, i := range order(len(list), func(i int) int64 { return list[i].bytes }) {
		if list[i].inEachOf(all[len(all)-leakSteps:]) {
			out = append(out, list[i])
		}
	}
	return out
}

// inEachOf says whether some block is of each of the steps, which are the last.
func (k *keeper) inEachOf(last []store.Span) bool {
	n := len(k.births) - len(last)
	for i := range last {
		if n < 0 || k.births[n+i] != last[i].Step {
			return false
		}
	}
	return true
}

// grows says whether what those ops hold grew over each of the last steps: a
// buffer of a fixed number of batches also holds some of earlier steps, but
// never more.
func grows(p *store.Pool, list []keeper, all []store.Span) bool {
	held := map[keeperKey]bool{}
	for i := range list {
		held[keeperKey{list[i].op, list[i].category}] = true
	}
	before := int64(-1)
	var ids []int32
	for _, s := range all[len(all)-1-leakSteps:] {
		ids = p.LiveAt(ids[:0], s.End-1)
		var n int64
		for _, id := range ids {
			if a := p.Alloc(int(id)); held[keeperKey{a.Op, a.Category}] {
				n += a.Size
			}
		}
		if n <= before {
			return false
		}
		before = n
	}
	return true
}
