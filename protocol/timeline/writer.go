package timeline

import (
	"fmt"
	"io"

	"tideline/protocol/block"
	"tideline/protocol/event"
)

// Options of a Writer. The zero value is ready to use.
type Options struct {
	// Strings is the table of the events; nil makes a new one.
	Strings *event.Strings
	// Block says how events are encoded: Deflate is a good choice for a file.
	Block block.Options
}

// Writer writes a timeline. Events go in by Emit, blocks that are encoded
// already by WriteFrame. It writes a whole block at a time, so that what
// reached the disk always opens. It is not safe for concurrent use.
type Writer struct {
	w       io.Writer
	opts    Options
	enc     *block.Encoder // made at the first Emit
	next    uint64
	buf     []byte
	offset  int64
	entries []Entry
	err     error
	closed  bool
	tail    tail
}

// tail is where the end of a timeline begins that Amend may write again: its
// readings and what is behind them.
type tail struct {
	offset int64
	blocks int
	known  bool
}

// NewWriter begins a file by writing its header. A failure to write is
// returned by Flush, WriteFrame, Close and Err, the first one for ever.
func NewWriter(w io.Writer, opts Options) *Writer {
	if opts.Strings == nil {
		opts.Strings = new(event.Strings)
	}
	t := &Writer{w: w, opts: opts, next: opts.Block.First}
	t.write(AppendHeader(nil))
	return t
}

// Strings is the table in which the events' strings are looked up.
func (t *Writer) Strings() *event.Strings { return t.opts.Strings }

// Err is the first failure to write.
func (t *Writer) Err() error { return t.err }

// Offset is how many bytes were written.
func (t *Writer) Offset() int64 { return t.offset }

// Blocks are the blocks written so far. The slice is valid until the next call.
func (t *Writer) Blocks() []Entry { return t.entries }

// Next is the sequence number that the next event will get.
func (t *Writer) Next() uint64 {
	if t.enc != nil {
		return t.enc.Next()
	}
	return t.next
}

// Emit adds an event and writes a block when one is full.
func (t *Writer) Emit(e *event.Event) {
	if t.enc == nil {
		opts := t.opts.Block
		opts.First = t.next
		t.enc = block.NewEncoder(t.opts.Strings, opts)
	}
	if t.enc.Append(e) {
		t.flush()
	}
}

// Flush writes what was emitted since the last block.
func (t *Writer) Flush() error {
	t.flush()
	return t.err
}

func (t *Writer) flush() {
	if t.enc == nil {
		return
	}
	t.buf = t.enc.Flush(t.buf[:0])
	t.frames(t.buf)
}

// WriteFrame writes blocks that were encoded elsewhere, one or several, as
// they are. Their sequence numbers are theirs. It must not be mixed with Emit
// on one Writer.
func (t *Writer) WriteFrame(b []byte) error {
	for at := 0; at < len(b); {
		_, n, err := block.Next(b[at:])
		if err != nil {
			return fmt.Errorf("writing a block to the timeline: %w", err)
		}
		at += n
	}
	t.frames(b)
	return t.err
}

// WriteReadings writes what the input meant that the timeline was made of, as
// package saved puts it. A timeline has it once, behind its events: a reader takes
// the last.
func (t *Writer) WriteReadings(payload []byte) error {
	if len(payload) > block.MaxReadings {
		return fmt.Errorf("readings of %d bytes: a timeline keeps at most %d", len(payload), block.MaxReadings)
	}
	t.flush()
	t.here()
	t.frames(block.Pack(nil, block.Header{Kind: block.Readings, First: t.Next()}, payload))
	return t.err
}

func (t *Writer) here() { t.tail = tail{t.offset, len(t.entries), true} }

// Amend writes the end of a closed timeline again, with other readings, and says
// where it begins: what is written from now on belongs in the place of all that
// was written from there on. It is for who keeps the bytes and learns more.
func (t *Writer) Amend(payload []byte) (at int64, err error) {
	if !t.closed {
		return 0, fmt.Errorf("amending a timeline that is not at its end: close it first")
	}
	at = t.tail.offset
	t.offset, t.entries, t.closed = at, t.entries[:t.tail.blocks], false
	if err := t.WriteReadings(payload); err != nil {
		t.closed = true
		return at, err
	}
	return at, t.Close()
}

// frames writes whole blocks and enters them in the index.
func (t *Writer) frames(b []byte) {
	if t.err != nil || len(b) == 0 {
		return
	}
	at := t.offset
	t.write(b)
	for len(b) > 0 && t.err == nil {
		h, err := block.ParseHeader(b)
		if err != nil {
			t.err = err
			return
		}
		t.entries = enter(t.entries, entryOf(&h, at))
		if h.Kind == block.Events {
			t.next = h.Next()
		}
		at += int64(h.Size())
		b = b[h.Size():]
	}
}

func (t *Writer) write(b []byte) {
	if t.err != nil {
		return
	}
	n, err := t.w.Write(b)
	t.offset += int64(n)
	if err != nil {
		t.err = fmt.Errorf("writing %d bytes at offset %d of the timeline: %w", len(b), t.offset-int64(n), err)
	}
}

// Close writes what was emitted, the index and the footer. It does not close
// what it writes to. Calling it again does nothing.
func (t *Writer) Close() error {
	if t.closed {
		return t.err
	}
	t.closed = true
	t.flush()
	if !t.tail.known {
		t.here()
	}
	index := appendIndex(nil, t.entries)
	if len(index) > block.MaxPayload {
		return t.err // the reader will scan
	}
	at := t.offset
	h := block.Header{Kind: block.Index, First: t.Next()}
	t.write(appendFooter(block.Make(nil, h, index), at))
	return t.err
}
