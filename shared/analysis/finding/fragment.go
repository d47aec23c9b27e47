package finding

import (
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/store"
)

const (
	fragInstants = 24   // looked at, evenly over the run
	fragSome     = 7500 // of what is reserved, in use at the peaks, in hundredths of a percent: less is a waste
)

// Pieces is how a pool's free memory lay at an instant.
type Pieces struct {
	Time int64
	analysis.Measures
}

// Over takes a pool's figures at instants spread over the run: at the ends of
// steps where there are some.
func Over(tl *store.Timeline, p *store.Pool, most int) (out []Pieces) {
	all := steps(tl)
	if len(all) == 0 {
		first, last := tl.Span()
		for i := range int64(most) {
			t := first + (last-first)*(i+1)/int64(most)
			out = append(out, Pieces{t, analysis.Measure(p.ChunkMapAt(t))})
		}
		return out
	}
	n := min(most, len(all))
	for i := range n {
		t := all[(i+1)*len(all)/n-1].End - 1
		out = append(out, Pieces{t, analysis.Measure(p.ChunkMapAt(t))})
	}
	return out
}

// Fragmented finds pools whose free memory lies in pieces: that failed for it,
// or that grew to a third more than was ever in use, because what was free did
// not lie together. A pool that took its whole limit at once has its untouched
// rest as one large hole, and nothing is said of it unless it fails.
func Fragmented(tl *store.Timeline) (out []Finding) {
	for _, p := range acceleratorPools(tl) {
		var failed *store.OOM
		ooms := tl.OOMs()
		for i := range ooms {
			if o := &ooms[i]; o.Pool == p.Index && o.Cause == event.OOMFragmented && !o.Retryable {
				failed = o
			}
		}
		_, last := tl.Span()
		used := permyri(p.HighestInUse(0, last+1), p.HighestReserved(0, last+1))
		if failed == nil && (used >= fragSome || !takesMore(p)) {
			continue
		}
		curve := Over(tl, p, fragInstants)
		if len(curve) == 0 && failed == nil {
			continue
		}
		out = append(out, fragmented(tl, p, curve, failed, used))
	}
	return out
}

func fragmented(tl *store.Timeline, p *store.Pool, curve []Pieces, failed *store.OOM, used int64) Finding {
	var last Pieces
	worst := int64(0)
	for _, c := range curve {
		last = c
		worst = max(worst, external(c.Measures))
	}
	if failed != nil {
		last = Pieces{failed.Time, analysis.Measure(p.ChunkMapIn(failed.Moment))}
		worst = max(worst, external(last.Measures))
	}
	f := Finding{
		ID: Fragmentation, Title: "The free memory lies in pieces", Severity: Note, Device: short(tl, p.Device), Culprit: p.Name,
	}
	regions := int64(len(p.ChunkMapAt(last.Time)))
	f.put("fragmentation_percent", external(last.Measures), BasisPoints)
	f.put("worst_fragmentation_percent", worst, BasisPoints)
	f.put("free_bytes", last.Free, Bytes)
	f.put("largest_hole_bytes", last.LargestFree, Bytes)
	f.put("holes", int64(last.FreeRuns), Count)
	f.put("regions", regions, Count)
	f.put("reserved_bytes", last.Reserved, Bytes)
	f.put("in_use_bytes", last.InUse, Bytes)
	f.put("peak_utilisation_percent", used, BasisPoints)
	when := "At the end of the last step"
	if failed != nil {
		f.Severity, when = Serious, "When the request failed"
		f.put("requested_bytes", failed.Requested, Bytes)
	}
	f.say(when + " " + size(last.Free) + " of " + p.Name + " were free in " + plural(int64(last.FreeRuns), "hole") + ", the largest of " + size(last.LargestFree) +
		": " + percent(external(last.Measures)) + " of the free bytes lay outside it.")
	if len(curve) > 2 {
		f.say("It was " + percent(external(curve[0].Measures)) + " after the first step that was looked at and " + percent(worst) + " at the worst.")
	}
	if failed == nil {
		f.say("At the peaks " + percent(used) + " of what the pool took from the driver was in use.")
	}
	f.remedies(tl, p, regions)
	return f
}

func (f *Finding) remedies(tl *store.Timeline, p *store.Pool, regions int64) {
	s := tl.Settings()
	switch {
	case !takesMore(p) || regions < 2:
	case p.Facts.Text("kind") == "torch" && s.Text("devices.1.preset") == "":
		f.say("The pool took " + plural(regions, "segment") + ", and segments cannot join: what is free in two of them serves no request that needs both.")
		if s.Text("devices.0.allocator_options") == "" { // which the change would replace
			f.try("devices.0.allocator_options", "expandable_segments=true")
		}
	default:
		f.say("The pool grew into " + plural(regions, "region") + ", and free memory of two regions never joins.")
	}
	for _, field := range []string{"image", "sequence", "batch"} {
		if list := s.Text(field); many(list) {
			f.say("Tensors of changing sizes cut the pool up: " + field + " takes several values in turn.")
			f.try(field, largest(list))
		}
	}
	if s.Text("mode") == "eager" {
		f.try("mode", "graph")
	}
	if s.Text("mode") != "planned" && s.Text("mode") != "" {
		f.try("mode", "planned")
	}
}

// takesMore says whether a pool takes memory as it needs it: TensorFlow's where that
// is set, PyTorch's always.
func takesMore(p *store.Pool) bool {
	return p.Facts.Text("growth") == "true" || p.Facts.Text("kind") == "torch"
}

func external(m analysis.Measures) int64 { return permyri(m.Free-m.LargestFree, m.Free) }
