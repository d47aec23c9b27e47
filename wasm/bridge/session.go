package bridge

import (
	"strings"
	"time"

	"tideline/shared/draw"
)

// The slots of a session.
const (
	Current = 0 // the timeline on screen
	Base    = 1 // the one it is compared with
)

// Session is the state of one page. It is not safe for concurrent use.
type Session struct {
	slots  [2]*slot
	kept   [2]*slot // what each held before, until the new one proves readable
	serial int
	in     []byte
	out    answer

	pictures [2]picture
	lanes    []draw.Lane
	hide     uint32 // categories not drawn
	peaks    bool   // the time asked about is that of a peak
	theme    int    // of the last picture: 1 is dark
	sieve    sieve
	began    time.Time // the last Draw
	asked    time.Time // the last time it was asked whether to go on
}

// NewSession returns an empty session.
func NewSession() *Session { return &Session{} }

// Input is room for n bytes that the caller fills before a call.
func (s *Session) Input(n int) []byte {
	if cap(s.in) < n {
		s.in = make([]byte, max(n, 64<<10))
	}
	return s.in[:n]
}

// Answer is the text of the last answer.
func (s *Session) Answer() []byte { return s.out.b }

// slot returns a slot that holds a timeline, or nil.
func (s *Session) slot(n int) *slot {
	if n < 0 || n >= len(s.slots) {
		return nil
	}
	return s.slots[n]
}

// Ask answers a question. The answer is valid until the next call.
func (s *Session) Ask(question string) []byte {
	s.out.b = s.out.b[:0]
	head, body, _ := strings.Cut(question, "\n")
	words := strings.Split(head, "\t")
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	f, ok := questions[words[0]]
	if !ok {
		s.fail("no question is named " + words[0])
		return s.out.b
	}
	f(s, arg, body)
	return s.out.b
}

// fail makes the answer an error.
func (s *Session) fail(text string) {
	s.out.b = s.out.b[:0]
	s.out.open().key("error").text(text).close()
}

type question func(s *Session, arg func(int) string, body string)

// questions is filled here and never changed.
var questions map[string]question

// A map literal would refer to itself through the answers.
func init() {
	questions = map[string]question{
		"status":   func(s *Session, _ func(int) string, _ string) { s.status() },
		"settings": func(s *Session, _ func(int) string, _ string) { s.settings() },
		"colors":   func(s *Session, arg func(int) string, _ string) { s.colors(int(number(arg(1)))) },
		"layout":   func(s *Session, arg func(int) string, _ string) { s.layout(arg) },
		"scales":   func(s *Session, arg func(int) string, _ string) { s.scales(number(arg(1)), number(arg(2))) },
		"at":       func(s *Session, arg func(int) string, _ string) { s.at(s.time(arg(1))) },
		"hover": func(s *Session, arg func(int) string, _ string) {
			s.hover(int(number(arg(1))), int(number(arg(2))), s.time(arg(3)))
		},
		"details":  details,
		"flame":    flame,
		"step":     func(s *Session, arg func(int) string, _ string) { s.step(number(arg(1)), number(arg(2)), arg(3)) },
		"peak":     func(s *Session, arg func(int) string, _ string) { s.peakAt(arg(1)) },
		"next-oom": func(s *Session, arg func(int) string, _ string) { s.nextOOM(number(arg(1)), number(arg(2))) },
		"find":     func(s *Session, arg func(int) string, _ string) { s.find(arg(1)) },
		"reset": func(s *Session, arg func(int) string, _ string) {
			s.reset(int(number(arg(1)))&1, arg(2), arg(3))
			s.status()
		},
		"finish":    func(s *Session, arg func(int) string, _ string) { s.finish(int(number(arg(1)))) },
		"restore":   func(s *Session, arg func(int) string, _ string) { s.restore(int(number(arg(1))) & 1) },
		"moments":   func(s *Session, arg func(int) string, _ string) { s.moments(int(number(arg(1))) & 1) },
		"seq":       func(s *Session, arg func(int) string, _ string) { s.sequence(int(number(arg(1)))) },
		"swap":      func(s *Session, _ func(int) string, _ string) { s.swap() },
		"rerun":     func(s *Session, arg func(int) string, _ string) { s.begin(arg(1), arg(2) == "fresh") },
		"window":    func(s *Session, _ func(int) string, _ string) { s.window() },
		"sift":      func(s *Session, arg func(int) string, _ string) { s.sift(arg(1)) },
		"sifting":   func(s *Session, _ func(int) string, _ string) { s.sifting() },
		"drop-base": func(s *Session, _ func(int) string, _ string) { s.dropBase() },
	}
}

func (s *Session) finish(n int) {
	sl := s.slot(n)
	if sl == nil {
		s.fail("no timeline was begun in this slot")
		return
	}
	if err := sl.finish(); err != nil {
		s.fail(err.Error())
		return
	}
	s.kept[n] = nil
	sl.recall()
	s.out.open().key("events").num(sl.tl.Events())
	if sl.warn != "" {
		s.out.key("warning").text(sl.warn)
	}
	s.out.close()
}

func (s *Session) sequence(n int) {
	s.out.open().key("seq")
	if sl := s.slot(n); sl != nil {
		s.out.num(int64(sl.seq))
	} else {
		s.out.num(0)
	}
	s.out.close()
}

func (s *Session) swap() {
	if s.slots[Base] != nil {
		s.slots[Current], s.slots[Base] = s.slots[Base], s.slots[Current]
		// The page tells timelines apart by serial: a swap shows "another" one.
		s.serial++
		s.slots[Current].serial = s.serial
		s.invalidate()
	}
	s.status()
}

// begin makes room for a rerun, whose bytes follow as a file's do: the timeline
// on screen becomes the base, unless the run is a fresh one.
func (s *Session) begin(name string, fresh bool) {
	old := s.slots[Current]
	s.slots[Current] = nil // it lives on as the base, or not at all
	s.reset(Current, name, "rerun")
	switch {
	case fresh:
		s.slots[Base] = nil // another story, nothing to compare with
	case old != nil && old.tl.Events() > 0 && old.origin != "log":
		s.slots[Base] = old
	}
	s.status()
}

func (s *Session) dropBase() {
	s.slots[Base] = nil
	s.invalidate()
	s.status()
}
