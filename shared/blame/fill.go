package blame

import (
	"sort"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest"
)

// Options bound the work.
type Options struct {
	// Stop is asked now and then and ends the work; nil never does.
	Stop func() bool
}

// Fill says in the readings of an opened input who holds the memory, what
// grows, and what copies take. Of a timeline it does nothing: that has no
// readings.
func Fill(in *ingest.Input, o Options) {
	switch {
	case in.Data != nil && in.Data.Reading != nil:
		Data(in.Data, o)
	case in.Text != nil:
		Text(in.Text, in.Readings, o)
	}
}

// Data fills the reading of a file that is no text.
func Data(d *ingest.Data, o Options) {
	var strs event.Strings
	s := &stoppable{to: NewRecorder(&strs), stop: o.Stop}
	d.Emit(&strs, s)
	if s.over {
		return
	}
	s.to.fill(d.Reading, "")
	if d.Snapshot != nil {
		idle(d.Snapshot, d.Reading)
	}
}

// kinds are the kinds of allocators that texts with a history tell of, by the
// reading's kind.
var kinds = map[string]string{"rmm-log": "rmm", "tf-log-memory": "log"}

// Text fills the readings of a text that tell every allocation.
func Text(t *ingest.Text, list []*reading.Reading, o Options) {
	var rec *Recorder
	for _, r := range list {
		kind := kinds[r.Kind]
		if kind == "" {
			continue
		}
		if rec == nil {
			var strs event.Strings
			s := &stoppable{to: NewRecorder(&strs), stop: o.Stop}
			if err := t.Emit(&strs, s); err != nil || s.over {
				return
			}
			rec = s.to
		}
		rec.fill(r, kind)
	}
}

// stoppable asks now and then whether to go on.
type stoppable struct {
	to   *Recorder
	stop func() bool
	n    int
	over bool
}

const askEvery = 1 << 14

// Emit implements event.Sink.
func (s *stoppable) Emit(e *event.Event) {
	if s.over {
		return
	}
	if s.n++; s.n%askEvery == 0 && s.stop != nil && s.stop() {
		s.over = true
		return
	}
	s.to.Emit(e)
}

// Held is who holds each allocator's memory, at its peak and its end.
func (r *Recorder) Held() (out []reading.Held) {
	for _, p := range r.some("") {
		out = append(out, r.held(p)...)
	}
	return out
}

// Growth is what grows, an allocator each.
func (r *Recorder) Growth() (out []reading.Growth) {
	for _, p := range r.some("") {
		if g, ok := r.growth(p); ok {
			out = append(out, g)
		}
	}
	return out
}

// Copies is what copies take of the time, nil where there are none.
func (r *Recorder) Copies() *reading.Copies {
	first, last := r.copies.first, r.copies.last
	for _, p := range r.pools {
		if p.begun {
			first, last = min(first, p.first), max(last, p.last)
		}
	}
	return r.copies.sum(r.strs, first, last)
}

// some are the first allocators that held anything, of a kind ("": of any); the
// one that held most goes first.
func (r *Recorder) some(kind string) (out []*pool) {
	for _, p := range r.pools {
		if p.most > 0 && (kind == "" || p.kind == kind) && len(out) < maxPools {
			out = append(out, p)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].most > out[j].most })
	return out
}

func (r *Recorder) fill(x *reading.Reading, kind string) {
	x.Held, x.Growth = nil, nil
	for _, p := range r.some(kind) {
		x.Held = append(x.Held, r.held(p)...)
		if g, ok := r.growth(p); ok {
			x.Growth = append(x.Growth, g)
		}
	}
	for i := range x.Growth {
		if s := x.Growth[i].Short(); s != "" && x.Shows(x.Growth[i].Pool) {
			x.Open = append(x.Open, s)
		}
	}
	if kind == "" {
		x.Copies = r.Copies()
	}
	r.input(x)
}
