package pipeline

import (
	"errors"

	"tideline/protocol/event"
)

// ErrEnd says that the pipeline has no more batches.
var ErrEnd = errors.New("the input is exhausted")

// Batch is one batch as the consumer gets it.
type Batch struct {
	Number  int     // from 0
	Indices []int32 // the elements, in order; valid until the next call of Next
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
	s       Settings
	src     *Source
	shuffle *Shuffler[int32]
	sizes   *Sizes
	tuner   *Tuner
	runner  runner
	log     log

	started bool
	now     int64 // latest time of a question or an answer
	clock   int64 // of the thread that makes batches
	pulled  int64 // elements taken from the source or the map stage
	self    [numStages]int64
	given   int // batches

	queue   []made // made and not yet given, oldest first
	free    [][]int32
	current []int32
	ended   bool
	fetch   func() (int32, int, bool)
}

// made is a batch that waits for its consumer.
type made struct {
	indices []int32
	at      int64
	stage   uint8
	filling bool
}

// stage numbers for the account of who took the time.
const (
	atSource = iota
	atMap
	atShuffle
	atBatch
	numStages
	atPrefetch = numStages // takes no time itself
)

var stageNames = [numStages]string{StageSource, StageMap, StageShuffle, StageBatch}

// New makes a pipeline. Its events go to sink, in the order of their times,
// when Advance is called; a nil sink drops them. Stage names are put into
// strings.
func New(s Settings, sink event.Sink, strings *event.Strings) (*Model, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	m := &Model{s: s, src: NewSource(&s), sizes: NewSizes(&s), tuner: NewTuner(s.Prefetch, s.RAMBudget)}
	m.log.open(sink, strings, s.Limit())
	m.runner.open(&m.s)
	if s.Shuffle > 0 {
		m.shuffle = NewShuffler[int32](s.Shuffle, s.Seed)
	}
	m.fetch = m.pull
	return m, nil
}

// Settings are what the pipeline was made with.
func (m *Model) Settings() Settings { return m.s }

// Pending is the time of the earliest event that Advance has not told yet,
// math.MaxInt64 when there is none.
func (m *Model) Pending() int64 { return m.log.earliest() }

// Advance tells all events up to and including time until. The caller must
// not ask for a batch at an earlier time afterwards.
func (m *Model) Advance(until int64) {
	m.now = max(m.now, until)
	m.log.tell(until)
}

// Next asks at time now for the next batch. A time before the last one, or
// before the last batch was ready, counts as that. ErrEnd ends the pipeline
// and sticks.
func (m *Model) Next(now int64) (Batch, error) {
	m.now = max(m.now, now)
	if !m.started {
		m.started = true
		m.clock = m.now
		m.runner.start(m)
	}
	if m.current != nil {
		m.free = append(m.free, m.current)
		m.current = nil
	}
	b, err := m.next()
	if err != nil {
		return b, err
	}
	b.Number = m.given
	m.given++
	m.now = b.Ready
	return b, nil
}

func (m *Model) next() (Batch, error) {
	if m.s.Prefetch == 0 {
		m.clock = m.now
		if !m.make() {
			return Batch{}, ErrEnd
		}
		return m.give(m.now, 0), nil
	}
	m.ahead(m.now)
	if len(m.queue) == 0 {
		return Batch{}, ErrEnd
	}
	asked := m.now
	size := m.arrived(asked)
	if size == 0 {
		if m.tuner.Consumed(0) {
			m.ahead(asked)
		}
		size = m.arrived(m.queue[0].at)
	}
	m.tuner.Consumed(size)
	b := m.give(asked, size)
	m.log.change(b.Ready, -1, m.tuner.Limit())
	m.ahead(b.Ready)
	return b, nil
}

// arrived counts the batches in the buffer at time t.
func (m *Model) arrived(t int64) int {
	n := 0
	for n < len(m.queue) && m.queue[n].at <= t {
		n++
	}
	return n
}

// give takes the oldest batch out of the queue.
func (m *Model) give(asked int64, buffered int) Batch {
	q := m.queue[0]
	copy(m.queue, m.queue[1:])
	m.queue = m.queue[:len(m.queue)-1]
	m.current = q.indices
	b := Batch{Indices: q.indices, Ready: max(asked, q.at), Filling: q.filling, Buffered: buffered, Limit: m.tuner.Limit()}
	if b.Ready > asked {
		b.Stage = stageNames[q.stage]
	}
	return b
}

// ahead lets the producer run on from time t, at which a place in the buffer
// may have become free, until the buffer is full. What it does from there on
// depends on nothing that is still to come, so it is decided at once.
func (m *Model) ahead(t int64) {
	for len(m.queue) < m.tuner.Limit() && !m.ended {
		m.clock = max(m.clock, t)
		if m.make() {
			m.log.change(m.queue[len(m.queue)-1].at, +1, 0)
		}
	}
}

// make lets the thread at m.clock make one batch and puts it into the queue;
// false at the end.
func (m *Model) make() bool {
	if m.ended {
		return false
	}
	want := m.sizes.Next()
	m.self = [numStages]int64{}
	q := made{indices: m.buffer()}
	for len(q.indices) < want {
		i, pulls, ok := m.element()
		if !ok {
			break
		}
		q.filling = q.filling || pulls > 1
		q.indices = append(q.indices, i)
	}
	if n := len(q.indices); n == 0 || n < want && m.s.DropRemainder {
		m.ended = true
		m.free = append(m.free, q.indices)
		return false
	}
	m.copy(len(q.indices))
	q.at, q.stage = m.clock, m.blame()
	m.queue = append(m.queue, q)
	m.tuner.Element(int64(len(q.indices)) * m.s.ElementBytes)
	return true
}

func (m *Model) buffer() []int32 {
	if n := len(m.free); n > 0 {
		b := m.free[n-1]
		m.free = m.free[:n-1]
		return b[:0]
	}
	return make([]int32, 0, m.s.largestBatch())
}

// element takes the next element through the shuffle stage. The time of
// filling its buffer is the shuffle stage's.
func (m *Model) element() (i int32, pulls int, ok bool) {
	if m.shuffle == nil {
		i, _, ok = m.pull()
		return i, 1, ok
	}
	before, self, size := m.clock, m.self, m.shuffle.Len()
	i, pulls, ok = m.shuffle.Next(m.fetch)
	if pulls > 1 {
		m.self = self
		m.self[atShuffle] += m.clock - before
	}
	if pulls != 1 && m.shuffle.Len() != size {
		m.log.set(m.clock, atShuffle, m.shuffle.Len(), m.s.Shuffle)
	}
	return i, pulls, ok
}

// pull takes the next element out of the map stage at m.clock, or waits.
func (m *Model) pull() (int32, int, bool) {
	i, epoch, ok := m.src.Next()
	if !ok {
		return 0, 0, false
	}
	if m.s.parallel() {
		m.runner.take(m)
	} else {
		m.serial(i)
	}
	m.pulled++
	return i, epoch, true
}

// serial fetches and maps one element in the thread that asks.
func (m *Model) serial(i int32) {
	m.spend(atSource, m.s.readCost(int64(i)), 0, m.s.SourceBytes)
	m.spend(atMap, m.runner.cost(m.pulled), 0, m.s.ElementBytes)
}

// readCost is the time to read an element; the first of an epoch opens it.
func (s *Settings) readCost(i int64) int64 {
	if i%int64(s.Elements) == 0 {
		return s.OpenCost + s.FetchCost
	}
	return s.FetchCost
}

// copy is the batch stage's own work.
func (m *Model) copy(elements int) {
	m.spend(atBatch, int64(elements)*m.s.CopyCost, 0, int64(elements)*m.s.ElementBytes)
}

// spend lets the thread work for a stage.
func (m *Model) spend(stage int, nanos int64, worker event.StreamID, bytes int64) {
	if nanos == 0 {
		return
	}
	m.log.stage(m.clock, m.clock+nanos, stage, worker, bytes)
	m.clock += nanos
	m.self[stage] += nanos
}

// blame is the stage that took most of the time; the earlier one of equals.
func (m *Model) blame() uint8 {
	best := 0
	for i, n := range m.self {
		if n > m.self[best] {
			best = i
		}
	}
	return uint8(best)
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
