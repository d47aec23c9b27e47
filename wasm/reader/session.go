package reader

import (
	"errors"
	"io"
	"iter"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/analysis/reading/saved"
	"tideline/shared/blame"
	"tideline/shared/ingest"
	"tideline/shared/remedy"
)

// State is what a session waits for.
type State int32

// The states.
const (
	Idle   State = iota // for nothing: no file was begun, or all is said
	Hungry              // for more of the file
	Known               // for Work: the file is understood, Answer says as what; its timeline follows
	Full                // for Drain and then Work: there are blocks
	Told                // for Drain and then Work: the timeline is whole, Answer has the readings
	Busy                // for Work: other settings are being tried, which takes a while
	Tried               // for Drain: Answer has the readings with what the trials came to, and where the timeline's new end belongs
	Failed              // for nothing: Answer says why
)

// pieceBytes is about how long the pieces of a timeline are: long enough to be
// worth a message, short enough that the viewer works beside us.
const pieceBytes = 256 << 10

// Session reads one file at a time. It is not safe for concurrent use.
type Session struct {
	pending []byte // of the file, not yet read
	last    bool   // nothing follows pending
	out     []byte // encoded, not yet drained
	spare   []byte // what the last Drain handed out
	answer  []byte

	input *ingest.Input
	next  func() (State, bool)
	stop  func()
}

// Start begins a file, in the place of one that is not yet read. The name is
// for errors.
func (s *Session) Start(name string) State { return s.start(name, ingest.Open) }

// StartUnpacked begins a file that is packed by gzip, of which what comes out is
// fed.
func (s *Session) StartUnpacked(name string) State { return s.start(name, ingest.OpenUnpacked) }

type opener func(string, io.Reader, ingest.Limits) (*ingest.Input, error)

func (s *Session) start(name string, open opener) State {
	if s.stop != nil {
		s.stop()
	}
	*s = Session{out: s.out[:0], spare: s.spare, answer: s.answer[:0]}
	s.next, s.stop = iter.Pull(s.run(name, open))
	return Hungry
}

// Feed gives the next bytes of the file, which must stay as they are until the
// session is hungry again; last says that none follow.
func (s *Session) Feed(b []byte, last bool) State {
	s.pending, s.last = b, last
	return s.Work()
}

// Work goes on until the session waits for something again.
func (s *Session) Work() State {
	if s.next == nil {
		return Idle
	}
	state, ok := s.next()
	if !ok {
		s.next = nil
		return Idle
	}
	return state
}

// Drain is what was encoded since the last Drain, valid until the next.
func (s *Session) Drain() []byte {
	s.out, s.spare = s.spare[:0], s.out
	return s.spare
}

// Answer is the JSON of what is known now; after Failed the plain words of why.
func (s *Session) Answer() []byte { return s.answer }

// errGivenUp ends the reading of a file that nobody wants any more.
var errGivenUp = errors.New("given up")

// run reads a file as a coroutine: where it would wait it yields.
func (s *Session) run(name string, open opener) iter.Seq[State] {
	return func(yield func(State) bool) {
		c := &course{s: s, yield: yield}
		if err := c.read(name, open); err != nil && !c.over {
			s.answer = append(s.answer[:0], err.Error()...)
			yield(Failed)
		}
	}
}

// course is one file's way through the session: a reader of what was fed and a
// sink of what is told.
type course struct {
	s     *Session
	yield func(State) bool
	over  bool // nobody asks any more
	w     *timeline.Writer
}

func (c *course) wait(st State) {
	if !c.over && !c.yield(st) {
		c.over = true
	}
}

func (c *course) read(name string, open opener) error {
	in, err := open(name, c, ingest.Limits{})
	if err != nil || c.over {
		return err
	}
	s := c.s
	s.input = in
	s.answer = appendKnown(s.answer[:0], in)
	c.wait(Known)
	strs := new(event.Strings)
	c.w = timeline.NewWriter(writerFunc(func(b []byte) (int, error) {
		s.out = append(s.out, b...)
		return len(b), nil
	}), timeline.Options{Strings: strs, Block: block.Options{Bytes: pieceBytes}})
	if err := in.Emit(strs, c); err != nil {
		return err
	}
	keep := in.Keep()
	if keep != nil {
		if err := c.w.WriteReadings(keep.Append(nil)); err != nil {
			return err
		}
	}
	if err := c.w.Close(); err != nil {
		return err
	}
	s.answer = appendTold(s.answer[:0], in, c.w.Next(), -1)
	c.wait(Told)
	if c.over || keep == nil || in.Saved != nil {
		return nil
	}
	return c.try(in, keep)
}

// try fills the readings of another program's file with what takes a while, and
// ends the timeline with them anew.
func (c *course) try(in *ingest.Input, keep *saved.Readings) error {
	stop := func() bool {
		c.wait(Busy)
		return c.over
	}
	blame.Fill(in, blame.Options{Stop: stop})
	remedy.Fill(in, remedy.Options{Stop: stop})
	if c.over {
		return nil
	}
	end, err := c.w.Amend(keep.Append(nil))
	if err != nil {
		return err
	}
	c.s.answer = appendTold(c.s.answer[:0], in, c.w.Next(), end)
	c.wait(Tried)
	return nil
}

// Emit implements event.Sink.
func (c *course) Emit(e *event.Event) {
	if c.over {
		return
	}
	c.w.Emit(e)
	if len(c.s.out) >= pieceBytes {
		c.wait(Full)
	}
}

// Read implements io.Reader over what is fed.
func (c *course) Read(p []byte) (int, error) {
	for len(c.s.pending) == 0 {
		switch {
		case c.over:
			return 0, errGivenUp
		case c.s.last:
			return 0, io.EOF
		}
		c.wait(Hungry)
	}
	n := copy(p, c.s.pending)
	c.s.pending = c.s.pending[n:]
	return n, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
