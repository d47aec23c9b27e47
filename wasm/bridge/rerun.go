package bridge

import (
	"errors"
	"slices"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
	"tideline/shared/store"
)

// rerun is a run of the modelled backend in progress. Its events go into the
// store in batches and, encoded, to the page, which keeps them for saving.
type rerun struct {
	s      *Session
	runner *launch.Runner
	slot   *slot
	writer *timeline.Writer
	batch  []event.Event
	more   bool
}

// rerunBatch is how many events are gathered before the store takes them.
const rerunBatch = 4096

// Emit implements event.Sink.
func (r *rerun) Emit(e *event.Event) {
	r.writer.Emit(e)
	if r.batch = append(r.batch, *e); len(r.batch) == cap(r.batch) {
		r.flush()
	}
}

func (r *rerun) flush() {
	r.slot.tl.Append(r.batch)
	r.batch = r.batch[:0]
}

// Write takes the encoded blocks, which leave with the next Drain.
func (r *rerun) Write(b []byte) (int, error) {
	r.s.drain = append(r.s.drain, b...)
	return len(b), nil
}

// read makes a workload of fields as text; without one the answer says why.
func (s *Session) read(text string) *api.Workload {
	fields, err := event.ParseFields(text)
	if err != nil {
		s.fail(err.Error())
		return nil
	}
	w, problems := api.FromFields(fields)
	if problems = append(problems, w.Validate(launch.Known())...); len(problems) > 0 {
		s.problems(problems)
		return nil
	}
	return w
}

// check says what is wrong with fields, before they are sent to an agent.
func (s *Session) check(text string) {
	if s.read(text) != nil {
		s.problems(nil)
	}
}

// startRerun begins a run of the fields in text. Only when it could be started
// does it take the place of the timeline on screen, which becomes the base unless the run is a fresh one.
func (s *Session) startRerun(name string, fresh bool, text string) {
	if s.rerun != nil {
		s.endRerun(true)
		s.out.b = s.out.b[:0]
	}
	w := s.read(text)
	if w == nil {
		return
	}
	strings := new(event.Strings)
	sl := &slot{name: name, origin: "rerun", tl: store.New(strings)}
	r := &rerun{s: s, slot: sl, batch: make([]event.Event, 0, rerunBatch), more: true}
	s.drain = s.drain[:0]
	r.writer = timeline.NewWriter(r, timeline.Options{Strings: strings})
	var err error
	r.runner, err = launch.Start(*w, launch.Options{Strings: strings, Sink: r})
	var ps api.Problems
	if errors.As(err, &ps) {
		s.problems(ps)
		return
	}
	if err != nil {
		s.fail(err.Error())
		return
	}
	s.serial++
	sl.serial = s.serial
	switch old := s.slots[Current]; {
	case fresh:
		s.slots[Base] = nil // another story, nothing to compare with
	case old != nil && old.tl.Events() > 0 && old.origin != "log":
		s.slots[Base] = old
	}
	s.slots[Current], s.rerun = sl, r
	s.invalidate()
	s.out.open().key("started").truth(true).close()
}

func (s *Session) problems(list api.Problems) {
	s.out.b = s.out.b[:0]
	a := s.out.open().key("problems").list()
	for _, p := range list {
		a.open().key("path").text(p.Path).key("message").text(p.Message).close()
	}
	s.out = *a.endList().close()
}

// Work runs at least one step, and more until about budget events are made. It
// reports whether anything is left to do.
func (s *Session) Work(budget int) (more bool) {
	r := s.rerun
	if r == nil || !r.more {
		return false
	}
	before := r.writer.Next()
	for r.more && int(r.writer.Next()-before) < budget {
		r.more = r.runner.Step()
	}
	return r.more
}

// Drain is what was encoded since the last Drain.
func (s *Session) Drain() []byte {
	if s.rerun != nil {
		s.rerun.flush()
	}
	b := s.drain
	s.drain = slices.Clip(s.drain[len(s.drain):])
	return b
}

// endRerun finishes the run, stopped or not, and says how it went.
func (s *Session) endRerun(stopped bool) {
	r := s.rerun
	if r == nil {
		s.fail("nothing is being rerun")
		return
	}
	s.rerun = nil
	res, err := r.runner.Finish()
	r.flush()
	r.slot.done = true
	if cerr := r.writer.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		r.slot.warn = err.Error()
		s.fail(err.Error())
		return
	}
	a := s.out.open().key("reason").text(res.Reason.String()).key("message").text(res.Message).
		key("steps").num(int64(res.Steps)).key("events").num(int64(res.Events)).key("nanos").num(res.Nanos)
	if stopped {
		a.key("note").text("Stopped after " + plural(int64(res.Steps), "step") + ".")
	}
	s.out = *a.close()
}
