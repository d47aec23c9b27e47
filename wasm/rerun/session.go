package rerun

import (
	"errors"
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
)

// Session runs one workload at a time. It is not safe for concurrent use.
type Session struct {
	runner *launch.Runner
	writer *timeline.Writer
	more   bool
	out    []byte // encoded, not yet drained
	spare  []byte // what the last Drain handed out

	next  func() (string, bool) // goes on with what Ask began; nil for nothing
	forgo func()
}

// Write takes the encoded blocks, which leave with the next Drain.
func (s *Session) Write(b []byte) (int, error) {
	s.out = append(s.out, b...)
	return len(b), nil
}

// read makes a workload of fields as text; without one the answer says why.
func read(text string) (*api.Workload, string) {
	fields, err := event.ParseFields(text)
	if err != nil {
		return nil, failed(err)
	}
	w, problems := api.FromFields(fields)
	if problems = append(problems, w.Validate(launch.Known())...); len(problems) > 0 {
		return nil, failed(problems)
	}
	return w, ""
}

// failed answers with an error, or with problems that name their fields.
func failed(err error) string {
	var list api.Problems
	var f event.Fields
	if !errors.As(err, &list) {
		f.Set("error", err.Error())
		return f.Encode()
	}
	for i, p := range list {
		n := "problems." + strconv.Itoa(i)
		f = append(f, event.Field{Key: n + ".path", Value: p.Path}, event.Field{Key: n + ".message", Value: p.Message})
	}
	return f.Encode()
}

// Check says what is wrong with a workload, given as fields; "" when nothing
// is.
func (s *Session) Check(text string) string {
	_, answer := read(text)
	return answer
}

// Start begins a run of the fields in text, in the place of one that is still
// going. The answer is "" when it began, else what is wrong.
func (s *Session) Start(text string) string {
	s.stop()
	w, answer := read(text)
	if w == nil {
		return answer
	}
	table := new(event.Strings)
	s.out = s.out[:0]
	s.writer = timeline.NewWriter(s, timeline.Options{Strings: table})
	r, err := launch.Start(*w, launch.Options{Strings: table, Sink: s.writer})
	if err != nil {
		return failed(err)
	}
	s.runner, s.more = r, true
	return ""
}

func (s *Session) stop() {
	if s.runner != nil {
		_, _ = s.runner.Finish() // nobody waits for its result any more
		s.runner = nil
	}
}

// Work runs at least one step, and more until about budget events are made. It
// reports whether anything is left to do.
func (s *Session) Work(budget int) (more bool) {
	if s.runner == nil || !s.more {
		return false
	}
	from := s.writer.Next()
	for s.more && int(s.writer.Next()-from) < budget {
		s.more = s.runner.Step()
	}
	return s.more
}

// Flush closes the block begun, so that the next Drain has all events so far.
func (s *Session) Flush() {
	if s.runner != nil {
		_ = s.writer.Flush() // writing to memory does not fail
	}
}

// Drain is what was encoded since the last Drain, valid until the next.
func (s *Session) Drain() []byte {
	s.out, s.spare = s.spare[:0], s.out
	return s.spare
}

// End finishes the run, which may not have come to its end, and says how it
// went. What is left of the timeline is in the next Drain.
func (s *Session) End() string {
	if s.runner == nil {
		return failed(errors.New("nothing is being rerun"))
	}
	done := !s.more
	res, err := s.runner.Finish()
	s.runner = nil
	if cerr := s.writer.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return failed(err)
	}
	var f event.Fields
	f.Set("reason", res.Reason.String())
	f.Set("message", res.Message)
	f.Set("steps", strconv.Itoa(res.Steps))
	f.Set("events", strconv.FormatUint(res.Events, 10))
	if !done {
		f.Set("note", "Stopped after step "+strconv.Itoa(res.Steps)+".")
	}
	return f.Encode()
}

// one makes a value fit for a line of fields.
func one(s string) string { return strings.ReplaceAll(s, "\n", " ") }
