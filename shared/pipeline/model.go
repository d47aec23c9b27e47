package pipeline

import (
	"errors"
	"fmt"

	"tideline/protocol/event"
)

// ErrEnd says that the pipeline has no more batches.
var ErrEnd = errors.New("the input is exhausted")

// Batch is one batch as the consumer gets it: the last stage's element.
type Batch struct {
	Number  int     // from 0
	Indices []int32 // the source's elements in it, in order; valid until the next call of Next
	Ready   int64   // when the batch is there, at or after it was asked for
	// Stage is, when Ready lies after the question, the stage to blame: the one
	// that took most of the time in which this batch was made.
	Stage string
	// Filling is set when the shuffle buffer was filled for this batch: a wait
	// is then part of the start, not of the pipeline's speed.
	Filling  bool
	Buffered int // batches that lay in the prefetch buffer when this one was taken
	Limit    int // of the prefetch buffer, afterwards
}

// Model is the modelled pipeline. It is not safe for concurrent use.
type Model struct {
	s        Settings // where it was made with some
	d        Dataset
	names    []string
	log      log
	root     iterator
	th       thread // the consumer
	tuning   *tuning
	lazy     []*readAhead // whose reads are decided when their time comes
	warnings []string

	now     int64 // latest time of a question or an answer
	given   int   // batches
	boxes   []box // the first is nobody's and empty
	free    []int32
	shapes  [][][]int64 // the first is unknown
	current item
}

// New makes a pipeline. Its events go to sink, in the order of their times,
// when Advance is called; a nil sink drops them. Stage names are put into
// strings.
func New(s Settings, sink event.Sink, strings *event.Strings) (*Model, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if sink != nil { // so that stages keep their numbers whichever there are
		for _, name := range []string{StageSource, StageMap, StageShuffle, StageBatch, StagePrefetch} {
			strings.ID(name)
		}
	}
	m, err := s.Dataset().Open(sink, strings)
	if err != nil {
		return nil, err
	}
	m.s = s
	return m, nil
}

// Open makes the pipeline of a chain; see New.
func (d Dataset) Open(sink event.Sink, strings *event.Strings) (*Model, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	m := &Model{d: d, names: d.Names(), boxes: make([]box, 1), shapes: make([][][]int64, 1)}
	m.log.open(sink, strings, d, m.names)
	m.th = m.thread()
	m.root = m.build(len(d.Stages))
	return m, nil
}

// Settings are what the pipeline was made with.
func (m *Model) Settings() Settings { return m.s }

// Dataset is the chain of stages.
func (m *Model) Dataset() Dataset { return m.d }

// Warnings are what TensorFlow would have warned of so far.
func (m *Model) Warnings() []string { return m.warnings }

func (m *Model) warn(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}

// Pending is the time of the earliest event that Advance has not told yet,
// math.MaxInt64 when there is none.
func (m *Model) Pending() int64 {
	t := m.log.earliest()
	if m.log.sink != nil {
		for _, x := range m.lazy {
			t = min(t, x.begins())
		}
	}
	return t
}

// Advance tells all events up to and including time until. The caller must
// not ask for a batch at an earlier time afterwards.
func (m *Model) Advance(until int64) {
	m.now = max(m.now, until)
	for _, x := range m.lazy {
		x.run(until)
	}
	m.log.tell(until)
}

// Next asks at time now for the next batch. A time before the last one, or
// before the last batch was ready, counts as that. ErrEnd ends the pipeline
// and sticks; another error stands for one batch, and others may follow.
func (m *Model) Next(now int64) (Batch, error) {
	m.now = max(m.now, now)
	m.recycle(m.current)
	m.current = item{}
	m.retune()
	m.th.clock = m.now
	m.th.begin()
	e, ok := m.root.next(&m.th)
	if !ok {
		return Batch{}, ErrEnd
	}
	b := Batch{Ready: m.th.clock, Filling: m.th.filling, Number: m.given}
	if b.Ready > m.now {
		b.Stage = m.names[m.th.blame()]
	}
	if p, ok := m.root.(*prefetch); ok {
		b.Buffered, b.Limit = p.buffered, p.tuner.Limit()
	}
	m.now = b.Ready
	if err := m.failed(e); err != nil {
		m.recycle(e)
		return Batch{}, err
	}
	m.given++
	if e.box == 0 {
		e.box = m.box()
		x := &m.boxes[e.box]
		x.list = append(x.list, e.one)
	}
	m.current = e
	b.Indices = m.boxes[e.box].list
	return b, nil
}

// Pipeline is what an executor pulls batches from: the Model, or the real
// thing on a real clock.
type Pipeline interface {
	// Next asks at time now for the next batch; see Model.Next.
	Next(now int64) (Batch, error)
	// Pending and Advance tell the pipeline's events in the order of their
	// times; see Model.
	Pending() int64
	Advance(until int64)
}

var _ Pipeline = (*Model)(nil)
