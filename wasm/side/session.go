package side

import (
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/analysis/ranks"
	"tideline/shared/store"
)

// Session holds one timeline at a time, and the sums of those before. It is not
// safe for concurrent use.
type Session struct {
	rows []ranks.Row

	tl      *store.Timeline
	pending []byte // not yet read
	last    bool   // nothing follows pending
	next    func() (error, bool)
	stop    func()
}

// errMore is yielded when all bytes are read and more may come.
var errMore = errors.New("more bytes are wanted")

// pieceEvents is how many events are decoded before they are filed.
const pieceEvents = 1024

// Begin makes room for a timeline, in the place of one that was not ended.
func (s *Session) Begin() {
	if s.stop != nil {
		s.stop()
	}
	s.tl, s.pending, s.last = store.New(nil), nil, false
	s.next, s.stop = iter.Pull(s.run())
}

func (s *Session) run() iter.Seq[error] {
	return func(yield func(error) bool) {
		in, err := timeline.NewStream(readerFunc(func(p []byte) (int, error) {
			for len(s.pending) == 0 {
				if s.last || !yield(errMore) {
					return 0, io.EOF
				}
			}
			n := copy(p, s.pending)
			s.pending = s.pending[n:]
			return n, nil
		}))
		if err != nil {
			yield(err)
			return
		}
		s.tl = store.New(in.Strings())
		var events []event.Event
		for {
			events, err = in.Some(events[:0], pieceEvents)
			s.tl.Append(events)
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

// Feed gives the next bytes of the timeline, which may be used again afterwards;
// last says that none follow. The error says what they are if they are none.
func (s *Session) Feed(b []byte, last bool) error {
	if s.next == nil {
		return errors.New("no timeline was begun")
	}
	s.pending, s.last = b, last
	err, more := s.next()
	s.pending = nil
	if !more || errors.Is(err, errMore) {
		return nil
	}
	return err
}

// End sums the timeline up, whose file is said to mean a phrase and was cut for a
// reason, or not, and answers with the table. told are the bytes that a text tells of:
// a ranks.Moment's, each "" where it does not.
func (s *Session) End(name, phrase, cut string, told [4]string) string {
	if s.tl == nil {
		return s.Unread(name, "nothing was read")
	}
	r := ranks.Of(name, s.tl)
	r.Phrase, r.Cut = phrase, cut
	r.Told(ranks.Moment{Peak: amount(told[0]), InUse: amount(told[1]), Reserved: amount(told[2]), Hole: amount(told[3])})
	s.stop()
	s.tl, s.next, s.stop = nil, nil, nil
	s.rows = append(s.rows, r)
	return s.table()
}

func amount(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return ranks.Unknown
	}
	return n
}

// Unread adds a file that cannot be read, with why, and answers with the table.
func (s *Session) Unread(name, why string) string {
	s.rows = append(s.rows, ranks.Unread(name, why))
	return s.table()
}

// Ranked reports whether the names of files, a line each, tell their ranks.
func Ranked(names string) bool {
	var rows []ranks.Row
	for name := range strings.SplitSeq(names, "\n") {
		rows = append(rows, ranks.Unread(name, ""))
	}
	return ranks.New(rows).Told()
}

// table is what is known of all files so far, as fields: words in sentences, rows
// by rank. What a row does not know it does not have.
func (s *Session) table() string {
	t := ranks.New(s.rows)
	var f event.Fields
	for i, w := range t.Words() {
		f.Set("words."+strconv.Itoa(i), one(w))
	}
	if t.Told() {
		f.Set("ranked", "yes")
	}
	for n, i := range t.Order() {
		r := t.Row(i)
		at := "rows." + strconv.Itoa(n) + "."
		f.Set(at+"label", one(t.Label(i)))
		f.Set(at+"name", one(r.Name))
		known := func(key string, n int64) {
			if n != ranks.Unknown {
				f.Set(at+key, strconv.FormatInt(n, 10))
			}
		}
		known("peak", r.Peak)
		known("reserved", r.Reserved)
		known("end", r.End)
		known("hole", r.Hole)
		if m := t.Median(); m != ranks.Unknown && r.Peak != ranks.Unknown && r.Cut == "" {
			f.Set(at+"beside", strconv.FormatInt(r.Peak-m, 10))
		}
		f.Set(at+"says", one(r.Says()))
		if r.Failed || r.Problem+r.Cut != "" || t.Far(i) > 0 {
			f.Set(at+"bad", "yes")
		}
	}
	return f.Encode()
}

// one makes a value fit for a line of fields.
func one(s string) string { return strings.ReplaceAll(s, "\n", " ") }
