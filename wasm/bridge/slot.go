package bridge

import (
	"errors"
	"io"
	"iter"
	"math"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/analysis/ranks"
	"tideline/shared/store"
)

// slot holds one timeline: what was read or computed, and where it came from.
type slot struct {
	serial int // rises with every timeline, so that the page knows a new one
	name   string
	origin string // live, file, rerun, log
	tl     *store.Timeline
	feed   *feed
	seq    uint64 // live: the sequence number to go on from
	done   bool
	warn   string
	base   *slot // what it was compared with when another took its place
}

// feed turns bytes that arrive into events: a timeline.Stream that is read as
// a coroutine and asks for more bytes by yielding.
type feed struct {
	pending []byte
	closed  bool
	stream  *timeline.Stream
	events  []event.Event
	next    func() (error, bool)
	stop    func()
}

// pieceEvents is how many events are decoded before they are filed: few enough
// that they lie in the processor's cache in between, and that a browser soon
// swaps its first translation of the loops for the fast one.
const pieceEvents = 1024

// errMore is yielded when all bytes are read and more may come.
var errMore = errors.New("more bytes are wanted")

func newFeed(take func([]event.Event), strings func(*event.Strings)) *feed {
	f := &feed{}
	f.next, f.stop = iter.Pull(f.read(take, strings))
	return f
}

func (f *feed) read(take func([]event.Event), strings func(*event.Strings)) iter.Seq[error] {
	return func(yield func(error) bool) {
		s, err := timeline.NewStream(readerFunc(func(p []byte) (int, error) {
			for len(f.pending) == 0 {
				if f.closed || !yield(errMore) {
					return 0, io.EOF
				}
			}
			n := copy(p, f.pending)
			f.pending = f.pending[n:]
			return n, nil
		}))
		if err != nil {
			yield(err)
			return
		}
		f.stream = s
		strings(s.Strings())
		for {
			f.events, err = s.Some(f.events[:0], pieceEvents)
			take(f.events)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(err)
				return
			}
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// push gives bytes, which may be used again afterwards.
func (f *feed) push(b []byte) error {
	f.pending = b
	err, more := f.next()
	if !more || errors.Is(err, errMore) {
		return nil
	}
	return err
}

// end says that no more bytes come.
func (f *feed) end() error {
	f.closed = true
	err, more := f.next()
	f.stop()
	if !more || errors.Is(err, errMore) {
		return nil
	}
	return err
}

// reset begins an empty timeline in a slot.
func (s *Session) reset(n int, name, origin string) *slot {
	s.serial++
	if old := s.slots[n]; old != nil && old.feed != nil {
		old.feed.stop()
	}
	sl := &slot{serial: s.serial, name: name, origin: origin, tl: store.New(nil)}
	if n == Current { // another story, until begin says that it is the same
		if old := s.slots[Current]; old != nil {
			old.base = s.slots[Base]
		}
		s.slots[Base] = nil
	}
	s.kept[n], s.slots[n] = s.slots[n], sl
	s.invalidate()
	return sl
}

// restore brings back what a slot held before the last reset, after bytes that
// turned out to be no timeline.
func (s *Session) restore(n int) {
	s.slots[n], s.kept[n] = s.kept[n], nil
	if old := s.slots[n]; n == Current && old != nil {
		s.slots[Base], old.base = old.base, nil
	}
	s.invalidate()
	s.status()
}

// feedable makes a slot ready to take bytes.
func (sl *slot) feedable() {
	if sl.feed != nil {
		return
	}
	sl.feed = newFeed(
		func(e []event.Event) { sl.tl.Append(e) },
		func(t *event.Strings) { sl.tl = store.New(t) },
	)
}

// Feed gives bytes of a timeline to a slot. The error says what they are if
// they are no timeline; damage within one is told by the answer to "finish".
func (s *Session) Feed(n int, b []byte) error {
	sl := s.slot(n)
	if sl == nil {
		return errors.New("no timeline was begun in this slot")
	}
	sl.feedable()
	if sl.origin == "live" {
		sl.follow(b)
	}
	return sl.feed.push(b)
}

// follow notes how far whole blocks of a live stream reach, which is where a
// broken connection is taken up again.
func (sl *slot) follow(b []byte) {
	for len(b) >= block.HeaderSize {
		h, err := block.ParseHeader(b)
		if err != nil || h.Size() > len(b) {
			return
		}
		if h.Kind == block.Events && h.Events > 0 {
			sl.seq = max(sl.seq, h.Next())
		}
		b = b[h.Size():]
	}
}

// finish ends the input of a slot and says what was wrong with it.
func (sl *slot) finish() error {
	sl.done = true
	if sl.feed == nil {
		return nil
	}
	err := sl.feed.end()
	if st := sl.feed.stream; st != nil {
		if d := st.Damage(); len(d) > 0 {
			sl.warn = damageText(d)
		}
	}
	return err
}

func damageText(d []timeline.Damage) string {
	s := "The file is damaged; what is sound is shown. " + title(d[0].Error()) + "."
	if len(d) > 1 {
		s += " And " + plural(int64(len(d)-1), "more place") + "."
	}
	return s
}

// metric is the last value of a series of training numbers.
type metric struct {
	name  string
	value float64
}

func (sl *slot) metrics() (out []metric) {
	for _, x := range sl.tl.SeriesList() {
		if x.Kind != store.MetricSeries || x.Len() == 0 {
			continue
		}
		_, v, _ := x.Point(x.Len() - 1)
		out = append(out, metric{sl.tl.Text(x.Name), math.Float64frombits(uint64(v))})
	}
	return out
}

// mainPool is the pool that a question means when it names none.
func (sl *slot) mainPool() *store.Pool { return ranks.Main(sl.tl) }

// early reports whether a block is as old as a file that another program recorded:
// most of those were allocated before that, nobody knows when.
func (sl *slot) early(birth int64) bool {
	first, last := sl.tl.Span()
	return birth == first && first < last && sl.origin != "log" && len(sl.tl.Settings()) == 0
}

func (sl *slot) span() (t0, t1 int64) {
	t0, t1 = sl.tl.Span()
	return t0, max(t1, t0+1)
}
