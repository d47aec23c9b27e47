package record

import (
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

// A run hands its events over in batches, so that encoding and writing happen
// beside it and cost it a copy. Few enough are on their way that a kill loses
// no more than a block's worth, and a run that outpaces the disk waits for it.
const (
	batchEvents = 256 // small enough to stay in the cache
	batches     = 8
)

// Recording is a timeline that is being made. Emit, Poll, Ended, Time and
// Finish belong to the run's goroutine, because its string table does;
// everything else may be called from anywhere.
type Recording struct {
	run    runSide
	writer writerSide

	due   atomic.Bool // BlockTime has passed
	full  chan *batch
	empty chan *batch
	quit  chan struct{} // ends the ticking
	ended chan struct{} // closed when the writer has
	file  File
	lost  atomic.Uint64 // events dropped after failure

	mu       sync.Mutex
	blocks   []timeline.Entry
	table    []string // the strings of all blocks, from id 1
	bytes    int64    // of the file, whole blocks
	tail     []byte   // blocks that the file had no room for
	failure  error
	finished bool
	changed  chan struct{}
}

// batch is some events on their way to the writer.
type batch struct {
	events  [batchEvents]event.Event
	n       int
	strings []string // that are new with these events
	cut     bool     // time for a block
}

// runSide is what only the run's goroutine touches.
type runSide struct {
	strings *event.Strings
	sent    int // strings handed over
	batch   *batch
	at      int64 // time of the last event
	ended   bool  // an End was emitted
	done    bool  // Finish was called
}

// New begins a recording into an empty file, of events whose strings are in
// the given table. Deflate makes the file smaller.
func New(f File, strings *event.Strings, deflate bool) *Recording {
	r := &Recording{
		run:  runSide{strings: strings, sent: 1, batch: new(batch)},
		file: f, full: make(chan *batch, batches), empty: make(chan *batch, batches),
		quit: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{}),
	}
	for range batches - 1 {
		r.empty <- new(batch)
	}
	r.begin(deflate)
	go r.tick()
	go r.write()
	return r
}

// tick raises due now and then. Handing over is the run's: only it may look
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
	b := r.run.batch
	b.events[b.n] = *e
	b.n++
	r.run.at = e.Time
	if e.Kind == event.End {
		r.run.ended = true
	}
	if b.n == batchEvents || r.due.Load() {
		r.hand()
	}
}

// Poll lets readers see what has waited long enough. Call it where the run
// polls for being stopped: between events there may be a long computation.
func (r *Recording) Poll() {
	if r.due.Load() {
		r.hand()
	}
}

// Ended reports whether an End was emitted.
func (r *Recording) Ended() bool { return r.run.ended }

// Time is that of the last event.
func (r *Recording) Time() int64 { return r.run.at }

// hand gives the batch to the writer, with the strings that are new.
func (r *Recording) hand() {
	b := r.run.batch
	b.cut = r.due.Swap(false)
	for ; r.run.sent < r.run.strings.Len(); r.run.sent++ {
		b.strings = append(b.strings, r.run.strings.At(event.StringID(r.run.sent)))
	}
	r.full <- b
	r.run.batch = <-r.empty
}

// Finish writes what is left, the index and the footer, and ends the
// recording for its readers. The error is the recording's failure, if it had
// one; calling it again returns the same.
func (r *Recording) Finish() error {
	if !r.run.done {
		r.run.done = true
		close(r.quit)
		r.hand()
		close(r.full)
	}
	<-r.ended
	return r.State().Failure
}

// Announce wakes readers after something about the run changed that the
// recording does not hold.
func (r *Recording) Announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake()
}

// wake tells readers. The lock is held.
func (r *Recording) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
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
