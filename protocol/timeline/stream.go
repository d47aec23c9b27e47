package timeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"tideline/protocol/block"
	"tideline/protocol/event"
)

// Stream reads a timeline, or the blocks of one, from front to back.
//
// It gives every event once: blocks sent again after a break are recognised by
// their sequence numbers. Where numbers are missing it gives a Lost event. It
// stops only at the end of the bytes, at a block of a newer version and when
// reading itself fails; any other fault is left out and told by Damage.
type Stream struct {
	src      source
	dec      block.Decoder
	began    bool   // next is known
	next     uint64 // sequence number expected
	expect   uint64 // sequence number that a damaged block promised to reach
	time     int64  // of the last event
	number   int    // of the next block
	damage   []Damage
	complete bool
	scratch  []event.Event
	open     piece    // the block that Some is in
	readings []byte   // the last block of readings
	kept     [2]int64 // where it begins and how long it is
}

// piece is a block that is given in pieces.
type piece struct {
	h      block.Header
	offset int64
	size   int
	again  int // events at its beginning that were given before
}

// NewStream begins to read. Errors are ErrNotTimeline, whose text says what
// the bytes look like, ErrVersion and those of r.
func NewStream(r io.Reader) (*Stream, error) {
	s := &Stream{src: source{r: r}}
	b, err := s.src.peek(HeaderSize + block.HeaderSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the beginning of a timeline: %w", err)
	}
	if bytes.HasPrefix(b, []byte(block.Magic)) {
		return s, nil // blocks without a file header
	}
	if len(b) > 0 && len(b) < HeaderSize && string(b) == string(AppendHeader(nil)[:len(b)]) {
		s.lose(0, int64(len(b)), fmt.Errorf("%w: the file ends inside its header", ErrTruncated))
		s.src.skip(len(b))
		return s, nil
	}
	ours := len(b) >= HeaderSize && string(b[:len(fileMagic)]) == fileMagic
	if !ours {
		if len(b) < HeaderSize+block.HeaderSize {
			return nil, notTimeline(b)
		}
		if _, err := block.ParseHeader(b[HeaderSize:]); err != nil {
			return nil, notTimeline(b)
		}
		s.lose(0, HeaderSize, fmt.Errorf("file header: %w", block.ErrMagic))
	} else if err := checkHeader(b); errors.Is(err, ErrVersion) {
		return nil, err
	} else if err != nil {
		s.lose(0, HeaderSize, err)
	}
	s.src.skip(HeaderSize)
	return s, nil
}

// Strings is the table of the events read so far.
func (s *Stream) Strings() *event.Strings { return s.dec.Strings() }

// Damage lists what could not be read so far, in order.
func (s *Stream) Damage() []Damage { return s.damage }

// Complete reports whether the footer was read: the writer finished.
func (s *Stream) Complete() bool { return s.complete }

// Readings is what the input meant that the timeline was made of, as
// Writer.WriteReadings took it; nil when the bytes read so far hold none.
func (s *Stream) Readings() ([]byte, error) {
	if s.readings == nil {
		return nil, nil
	}
	b, err := block.Payload(s.readings, block.MaxReadings)
	if err != nil {
		return nil, fmt.Errorf("readings at offset %d: %w", s.kept[0], err)
	}
	return b, nil
}

// ReadingsAt is where the block of the readings begins and how long it is; 0 and
// 0 when none was read. Alone it is a timeline without events.
func (s *Stream) ReadingsAt() (offset, size int64) { return s.kept[0], s.kept[1] }

// Next appends the events of the next block, after a Lost event if some are
// missing before it, to into. It returns io.EOF at the end of the bytes; then
// Damage tells whether that was everything.
func (s *Stream) Next(into []event.Event) ([]event.Event, error) {
	at := len(into)
	for {
		next := s.next
		out, err := s.block(into)
		if err != nil {
			return out, err
		}
		if out, err = s.rest(out, block.MaxEvents); err != nil {
			// A faulty block is left out whole: what is missing before it is told
			// together with it.
			s.next = next
			into = into[:at]
			continue
		}
		if into = out; len(into) > at {
			return into, nil
		}
	}
}

// Some is Next in pieces of at most n events and a Lost: those of a block that
// turns out to be faulty are given up to the fault. A few thousand events at a
// time stay in the processor's cache while they are used.
func (s *Stream) Some(into []event.Event, n int) ([]event.Event, error) {
	at := len(into)
	for {
		if s.dec.Left() == 0 {
			out, err := s.block(into)
			if err != nil {
				return out, err
			}
			into = out
		}
		into, _ = s.rest(into, n)
		if len(into) > at {
			return into, nil
		}
	}
}

// block begins the next block that has something to give, after a Lost event
// if some are missing before it.
func (s *Stream) block(into []event.Event) ([]event.Event, error) {
	for {
		frame, h, offset, err := s.frame()
		if errors.Is(err, io.EOF) {
			if s.began && s.expect > s.next {
				into = append(into, s.lost(s.expect))
				return into, nil
			}
			return into, io.EOF
		}
		if err != nil {
			return into, err
		}
		if h.Kind == block.Readings {
			s.readings = append(s.readings[:0], frame...)
			s.kept = [2]int64{offset, int64(len(frame))}
			continue
		}
		if h.Kind == block.Events && s.began && h.Events > 0 && h.Next() <= s.next {
			// Sent again. It may hold strings that a damaged block lost.
			if err := s.dec.DecodeStrings(frame); err != nil {
				s.lose(offset, int64(len(frame)), err)
			}
			continue
		}
		if err := s.begin(frame, &h, offset); err != nil {
			s.lose(offset, int64(len(frame)), err)
			s.promise(&h)
			continue
		}
		into = s.before(into, &h)
		s.open = piece{h: h, offset: offset, size: len(frame)}
		if h.Kind == block.Events {
			if s.began && h.First < s.next { // partly sent again
				s.open.again = int(s.next - h.First)
			}
			s.began = true
			s.next = max(s.next, h.First)
		}
		return into, nil
	}
}

// rest appends up to n more events of the block that was begun. What is wrong
// with it is told as damage, too.
func (s *Stream) rest(into []event.Event, n int) ([]event.Event, error) {
	for s.dec.Left() > 0 {
		at := len(into)
		out, err := s.dec.More(into, n)
		if err != nil {
			s.lose(s.open.offset, int64(s.open.size), err)
			s.promise(&s.open.h)
			return into, err
		}
		if skip := min(s.open.again, len(out)-at); skip > 0 {
			s.open.again -= skip
			out = out[:at+copy(out[at:], out[at+skip:])]
		}
		if len(out) > at {
			s.next += uint64(len(out) - at)
			s.time = out[len(out)-1].Time
			return out, nil
		}
	}
	return into, nil
}

// before appends a Lost event when events are missing before a block.
func (s *Stream) before(into []event.Event, h *block.Header) []event.Event {
	if h.Kind != block.Events || h.Events == 0 {
		return into
	}
	missing := s.began && h.First > s.next || !s.began && len(s.damage) > 0 && h.First > 0
	if !missing {
		return into
	}
	e := s.lostEvent(h.First - s.next)
	e.Time = max(s.time, min(e.Time, h.FirstTime))
	return append(into, e)
}

// lost is the event for what a damaged end of the stream had.
func (s *Stream) lost(to uint64) event.Event {
	e := s.lostEvent(to - s.next)
	s.next = to
	return e
}

func (s *Stream) lostEvent(n uint64) event.Event {
	return event.Event{Kind: event.Lost, Time: s.time, Size: int64(n), Step: event.NoStep}
}

// begin begins to decode a block. Strings that were lost with an earlier block
// read as empty, which is told, but costs no event.
func (s *Stream) begin(frame []byte, h *block.Header, offset int64) error {
	err := s.dec.Begin(frame)
	gap := int(h.StringBase) - s.dec.Strings().Len()
	if !errors.Is(err, block.ErrStringGap) || gap > block.MaxStrings {
		return err
	}
	s.damage = append(s.damage, Damage{Block: s.number - 1, Offset: offset, Err: err})
	s.dec.AllowStringGap(gap)
	return s.dec.Begin(frame)
}

// promise remembers how far the events of a damaged block would have reached.
func (s *Stream) promise(h *block.Header) {
	if h.Kind == block.Events && h.Events > 0 {
		s.began = true // so that even a lone damaged block gives a Lost
		s.expect = max(s.expect, h.Next())
	}
}

func (s *Stream) lose(offset, n int64, err error) {
	s.damage = append(s.damage, Damage{Block: s.number, Offset: offset, Bytes: n, Err: err})
}

// Replay gives all remaining events to sink.
func (s *Stream) Replay(sink event.Sink) error {
	for {
		events, err := s.Some(s.scratch[:0], 1024)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range events {
			sink.Emit(&events[i])
		}
		s.scratch = events
	}
}

// frame returns the next block whose checksums match, valid until the next
// call, and where it begins. What cannot be a block is left out.
func (s *Stream) frame() (frame []byte, h block.Header, offset int64, err error) {
	for {
		offset = s.src.offset
		b, err := s.src.peek(block.HeaderSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, h, offset, fmt.Errorf("reading block %d at offset %d: %w", s.number, offset, err)
		}
		if len(b) == 0 {
			return nil, h, offset, io.EOF
		}
		if _, ok := parseFooter(b); ok {
			s.complete = true
			s.src.skip(FooterSize)
			continue
		}
		h, err = block.ParseHeader(b)
		switch {
		case err == nil:
		case errors.Is(err, ErrVersion):
			return nil, h, offset, fmt.Errorf("block %d at offset %d: %w", s.number, offset, err)
		default:
			s.resync(err)
			continue
		}
		b, err = s.src.peek(h.Size())
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, h, offset, fmt.Errorf("reading block %d at offset %d: %w", s.number, offset, err)
		}
		if len(b) < h.Size() {
			s.lose(offset, int64(len(b)), fmt.Errorf("%w: %d of the block's %d bytes are there", ErrTruncated, len(b), h.Size()))
			s.promise(&h)
			s.src.skip(len(b))
			return nil, h, offset, io.EOF
		}
		frame, n, err := block.Next(b)
		if err != nil {
			// The header is sound, so the next block begins where it says.
			s.lose(offset, int64(n), err)
			s.promise(&h)
			s.number++
			s.src.skip(n)
			continue
		}
		s.number++
		s.src.skip(n)
		return frame, h, offset, nil
	}
}

// resync leaves out bytes up to the next that begin a block or the footer.
func (s *Stream) resync(why error) {
	from := s.src.offset
	for {
		b, err := s.src.peek(block.HeaderSize + 1)
		if len(b) < FooterSize && err != nil || len(b) == 0 {
			s.src.skip(len(b))
			if errors.Is(why, block.ErrShort) {
				why = fmt.Errorf("%w: the file ends inside a block's header", ErrTruncated)
			}
			s.lose(from, s.src.offset-from, why)
			s.number++
			return
		}
		b = s.src.window()
		n := 1
		if i := bytes.Index(b[1:], []byte("TDL")); i >= 0 {
			n += i
		} else {
			n = max(1, len(b)-2)
		}
		s.src.skip(n)
		b, _ = s.src.peek(block.HeaderSize)
		_, footer := parseFooter(b)
		if _, err := block.ParseHeader(b); err == nil || errors.Is(err, ErrVersion) || footer {
			s.lose(from, s.src.offset-from, why)
			s.number++
			return
		}
	}
}

// source is a buffered reader whose buffer grows only with what was read.
type source struct {
	r      io.Reader
	buf    []byte
	at     int // of the next byte
	end    int
	offset int64 // of the next byte in the file
	err    error
}

// window is what is buffered.
func (s *source) window() []byte { return s.buf[s.at:s.end] }

// peek returns the next n bytes without passing them; fewer only with an error.
func (s *source) peek(n int) ([]byte, error) {
	for s.end-s.at < n && s.err == nil {
		if s.at > 0 {
			s.end = copy(s.buf, s.buf[s.at:s.end])
			s.at = 0
		}
		if s.end == len(s.buf) {
			s.buf = append(s.buf, make([]byte, max(64<<10, len(s.buf)))...)
		}
		var k int
		k, s.err = s.r.Read(s.buf[s.end:])
		s.end += k
	}
	if s.end-s.at < n {
		return s.window(), s.err
	}
	return s.buf[s.at : s.at+n], nil
}

func (s *source) skip(n int) {
	s.at += n
	s.offset += int64(n)
}
