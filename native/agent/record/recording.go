package record

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// When a block is cut, whichever comes first.
const (
	BlockBytes = 256 << 10             // payload
	BlockTime  = 33 * time.Millisecond // since the last cut
)

// Recording is a timeline that is being made. Emit, Poll and Finish belong to
// the run's goroutine, because the string table does; everything else may be
// called from anywhere.
type Recording struct {
	// Owned by the run.
	strings *event.Strings
	enc     *block.Encoder
	w       *timeline.Writer
	out     *appender
	buf     []byte
	sent    int         // strings handed over to table
	at      int64       // time of the last event
	entered int         // blocks of w handed over to blocks
	end     event.Event // kept when it can no longer be recorded
	ended   bool
	done    bool

	due  atomic.Bool // BlockTime has passed
	quit chan struct{}
	file File

	lost atomic.Uint64 // events dropped after failure

	mu       sync.Mutex
	blocks   []timeline.Entry
	table    []string // the strings of all blocks, from id 1
	bytes    int64    // of the file, whole blocks
	tail     []byte   // blocks that the file had no room for
	failure  error
	finished bool
	changed  chan struct{}
}

// New begins a recording into an empty file, of events whose strings are in
// the given table. Deflate makes the file smaller and the run a little slower.
func New(f File, strings *event.Strings, deflate bool) *Recording {
	r := &Recording{
		strings: strings, file: f, out: &appender{f: f}, sent: 1,
		enc:  block.NewEncoder(strings, block.Options{Bytes: BlockBytes, Deflate: deflate}),
		quit: make(chan struct{}), changed: make(chan struct{}),
	}
	r.w = timeline.NewWriter(r.out, timeline.Options{Strings: strings})
	if err := r.w.Err(); err != nil {
		r.fail(err)
	} else {
		r.bytes = r.w.Offset()
	}
	go r.tick()
	return r
}

// tick raises due now and then. The cut itself is the run's: only it may look
// into its string table.
func (r *Recording) tick() {
	t := time.NewTicker(BlockTime)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			r.due.Store(true)
		case <-r.quit:
			return
		}
	}
}

// Emit records an event.
func (r *Recording) Emit(e *event.Event) {
	if r.failed() {
		r.drop(e)
		return
	}
	if e.Kind == event.End {
		r.ended = true
	}
	if full := r.enc.Append(e); full || r.due.Load() {
		r.at = e.Time
		r.cut()
	}
}

// Ended reports whether an End was recorded. It is the run's to ask.
func (r *Recording) Ended() bool { return r.ended }

// Time is that of the last block: what comes after must not lie before it. It
// is the run's to ask.
func (r *Recording) Time() int64 {
	if !r.failed() {
		r.cut()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.blocks); n > 0 {
		return max(r.at, r.blocks[n-1].LastTime)
	}
	return r.at
}

// Announce wakes readers after something about the run changed that the
// recording does not hold.
func (r *Recording) Announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Poll cuts a block that has waited long enough. Call it where the run polls
// for being stopped: between events there may be a long computation.
func (r *Recording) Poll() {
	if r.due.Load() && !r.failed() {
		r.cut()
	}
}

// failed is cheap: the run's own field, not the shared one.
func (r *Recording) failed() bool { return r.w.Err() != nil }

// drop counts an event that cannot be recorded any more; how the run ended is
// kept for the last words.
func (r *Recording) drop(e *event.Event) {
	r.at = e.Time
	if e.Kind == event.End {
		r.end, r.ended = *e, true
		return
	}
	r.lost.Add(1)
}

// cut writes what has been gathered as a block and shows it to readers.
func (r *Recording) cut() {
	r.due.Store(false)
	r.buf = r.enc.Flush(r.buf[:0])
	if len(r.buf) == 0 {
		return
	}
	if err := r.w.WriteFrame(r.buf); err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	r.publish()
	r.mu.Unlock()
}

// publish shows what w has written. The lock is held.
func (r *Recording) publish() {
	all := r.w.Blocks()
	r.blocks = append(r.blocks, all[r.entered:]...)
	r.entered = len(all)
	r.bytes = r.w.Offset()
	r.wake()
}

// wake hands over new strings and tells readers. The lock is held.
func (r *Recording) wake() {
	for ; r.sent < r.strings.Len(); r.sent++ {
		r.table = append(r.table, r.strings.At(event.StringID(r.sent)))
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// fail ends the recording on disk: the file is cut back to its last whole
// block, and the block that did not fit is kept in memory, with a word about
// what happened, for those who watch.
func (r *Recording) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
	if cutErr := r.file.Truncate(r.bytes); cutErr != nil {
		r.failure = errors.Join(err, fmt.Errorf("cut the recording back to its last whole block: %w", cutErr))
	}
	r.keep(r.buf)
	log := event.Event{
		Kind: event.Log, Time: r.at, Step: event.NoStep, Flags: event.Failure,
		Text: r.strings.ID("The recording stopped, the run goes on: " + err.Error()),
	}
	r.enc.Append(&log)
	r.keep(r.enc.Flush(nil))
	r.wake()
}

// keep appends whole blocks to the tail. The lock is held.
func (r *Recording) keep(frames []byte) {
	for at := 0; at < len(frames); {
		h, err := block.ParseHeader(frames[at:])
		if err != nil {
			return // our own encoder's blocks have sound headers
		}
		r.blocks = append(r.blocks, timeline.Entry{
			Offset: r.bytes + int64(len(r.tail)) + int64(at), Size: int64(h.Size()), Kind: h.Kind, First: h.First,
			Events: int(h.Events), FirstTime: h.FirstTime, LastTime: h.LastTime, StringBase: int(h.StringBase), Strings: int(h.Strings),
		})
		at += h.Size()
	}
	r.tail = append(r.tail, frames...)
}

// Finish writes what is left, the index and the footer, and ends the
// recording for its readers. The error is the recording's failure, if it had
// one; calling it again returns the same.
func (r *Recording) Finish() error {
	if r.done {
		return r.failure
	}
	r.done = true
	close(r.quit)
	if !r.failed() {
		r.cut()
	}
	size := r.bytes
	switch {
	case r.failed():
		r.lastWords()
	case r.w.Close() == nil:
		size = r.w.Offset()
	default: // an index that does not fit costs time on opening, not events
		_ = r.file.Truncate(r.bytes)
	}
	err := r.file.Sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == nil {
		r.bytes, r.failure = size, err
	}
	r.finished = true
	r.wake()
	return r.failure
}

// lastWords says how much was lost and how the run ended, and tries once more
// to get the tail onto the disk: other programs may have made room.
func (r *Recording) lastWords() {
	lost := event.Event{
		Kind: event.Lost, Time: r.at, Step: event.NoStep, Size: int64(r.lost.Load()),
		Text: r.strings.ID("not recorded: " + r.failure.Error()),
	}
	if lost.Size > 0 {
		r.enc.Append(&lost)
	}
	if r.end.Kind == event.End {
		r.enc.Append(&r.end)
	}
	frames := r.enc.Flush(nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(frames)
	if _, err := r.file.WriteAt(r.tail, r.bytes); err != nil {
		_ = r.file.Truncate(r.bytes) // readers of the file skip half a block, too
		return
	}
	r.bytes += int64(len(r.tail))
	r.tail = nil
}

// State is what there is now.
func (r *Recording) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := State{
		Blocks: slices.Clip(r.blocks), Bytes: r.bytes, Finished: r.finished,
		Failure: r.failure, Lost: r.lost.Load(), Changed: r.changed,
	}
	if n := len(s.Blocks); n > 0 {
		s.Events = s.Blocks[n-1].Next()
	}
	return s
}

// Frame reads block i.
func (r *Recording) Frame(i int, buf []byte) ([]byte, error) {
	r.mu.Lock()
	if i < 0 || i >= len(r.blocks) {
		n := len(r.blocks)
		r.mu.Unlock()
		return nil, fmt.Errorf("read block %d of a recording that has %d so far", i, n)
	}
	e, end := r.blocks[i], r.bytes
	if int64(cap(buf)) < e.Size {
		buf = make([]byte, e.Size)
	}
	buf = buf[:e.Size]
	if e.Offset >= end { // in the tail, under the lock: Finish may move it
		copy(buf, r.tail[e.Offset-end:])
		r.mu.Unlock()
		return buf, nil
	}
	r.mu.Unlock()
	if _, err := r.file.ReadAt(buf, e.Offset); err != nil {
		return nil, fmt.Errorf("read block %d of the recording at offset %d: %w", i, e.Offset, err)
	}
	return buf, nil
}

// Catchup encodes the strings before block i. The table is built outside of
// the lock, so that a reader who joins costs the run nothing.
func (r *Recording) Catchup(dst []byte, i int) ([]byte, error) {
	r.mu.Lock()
	n, first := len(r.table), uint64(0)
	if i < len(r.blocks) {
		n, first = r.blocks[i].StringBase-1, r.blocks[i].First
	} else if i > 0 {
		first = r.blocks[i-1].Next()
	}
	table := r.table[:max(0, min(n, len(r.table)))]
	r.mu.Unlock()
	if i == 0 {
		return dst, nil
	}
	var t event.Strings
	for _, s := range table {
		t.Append(s)
	}
	return block.AppendStrings(dst, &t, 1, t.Len(), first, 0), nil
}

// File is what has been written so far, in whole blocks.
func (r *Recording) File() *io.SectionReader {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.NewSectionReader(r.file, 0, r.bytes)
}

// Close closes the file. Finish first.
func (r *Recording) Close() error { return r.file.Close() }
