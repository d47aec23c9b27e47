package record

import (
	"errors"
	"fmt"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// writerSide is what only the writer's goroutine touches. It has a string
// table of its own, with the run's numbers.
type writerSide struct {
	strings event.Strings
	enc     *block.Encoder
	file    *timeline.Writer
	buf     []byte
	at      int64 // time of the last event
	entered int   // blocks of file handed over to readers

	// After a failure: how the run ended, and the run's strings from number
	// known on, which its text may be one of.
	end   event.Event
	known int
	after []string
}

// begin writes the file's header.
func (r *Recording) begin(deflate bool) {
	w := &r.writer
	w.enc = block.NewEncoder(&w.strings, block.Options{Bytes: BlockBytes, Deflate: deflate})
	w.file = timeline.NewWriter(&appender{f: r.file}, timeline.Options{Strings: &w.strings})
	if err := w.file.Err(); err != nil {
		r.fail(err)
		return
	}
	r.bytes = w.file.Offset()
}

// write takes batches until the run has finished.
func (r *Recording) write() {
	defer close(r.ended)
	for b := range r.full {
		r.take(b)
		b.n, b.strings, b.cut = 0, b.strings[:0], false
		r.empty <- b
	}
	r.close()
}

// take encodes a batch.
func (r *Recording) take(b *batch) {
	w := &r.writer
	if w.file.Err() != nil {
		w.after = append(w.after, b.strings...)
		r.drop(b.events[:b.n])
		return
	}
	for _, s := range b.strings {
		w.strings.Append(s)
	}
	for i := range b.events[:b.n] {
		if full := w.enc.Append(&b.events[i]); full {
			r.cut()
			if w.file.Err() != nil {
				r.drop(b.events[i+1 : b.n])
				return
			}
		}
	}
	if b.n > 0 {
		w.at = b.events[b.n-1].Time
	}
	if b.cut {
		r.cut()
	}
}

// drop counts what cannot be recorded any more and keeps how the run ended.
func (r *Recording) drop(events []event.Event) {
	for i := range events {
		r.writer.at = events[i].Time
		if events[i].Kind == event.End {
			r.writer.end = events[i]
			continue
		}
		r.lost.Add(1)
	}
}

// cut writes what has been gathered as a block and shows it to readers.
func (r *Recording) cut() {
	w := &r.writer
	w.buf = w.enc.Flush(w.buf[:0])
	if len(w.buf) == 0 {
		return
	}
	if err := w.file.WriteFrame(w.buf); err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := w.file.Blocks()
	r.blocks = append(r.blocks, all[w.entered:]...)
	w.entered = len(all)
	r.bytes = w.file.Offset()
	r.show()
}

// show hands the strings of the newest blocks to readers. The lock is held.
func (r *Recording) show() {
	for n := len(r.table) + 1; n < r.writer.strings.Len(); n++ {
		r.table = append(r.table, r.writer.strings.At(event.StringID(n)))
	}
	r.wake()
}

// fail ends the recording on disk: the file is cut back to its last whole
// block, and the block that did not fit is kept in memory, with a word about
// what happened, for those who watch.
func (r *Recording) fail(err error) {
	w := &r.writer
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
	if cutErr := r.file.Truncate(r.bytes); cutErr != nil {
		r.failure = errors.Join(err, fmt.Errorf("cut the recording back to its last whole block: %w", cutErr))
	}
	r.keep(w.buf)
	w.known = w.strings.Len()
	log := event.Event{
		Kind: event.Log, Time: w.at, Step: event.NoStep, Flags: event.Failure,
		Text: w.strings.ID("The recording stopped, the run goes on: " + err.Error()),
	}
	w.enc.Append(&log)
	r.keep(w.enc.Flush(nil))
	r.show()
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

// close writes what is left and ends the recording for its readers.
func (r *Recording) close() {
	w := &r.writer
	if w.file.Err() == nil {
		r.cut()
	}
	size := r.bytes
	switch {
	case w.file.Err() != nil:
		r.lastWords()
		size = r.bytes
	case w.file.Close() == nil:
		size = w.file.Offset()
	default: // an index that does not fit costs time on opening, not events
		_ = r.file.Truncate(size)
	}
	err := r.file.Sync()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes = size
	if r.failure == nil {
		r.failure = err
	}
	r.finished = true
	r.wake()
}

// lastWords says how much was lost and how the run ended, and tries once more
// to get the tail onto the disk: other programs may have made room.
func (r *Recording) lastWords() {
	w := &r.writer
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := event.Event{
		Kind: event.Lost, Time: w.at, Step: event.NoStep, Size: int64(r.lost.Load()),
		Text: w.strings.ID("not recorded: " + r.failure.Error()),
	}
	if lost.Size > 0 {
		w.enc.Append(&lost)
	}
	if w.end.Kind == event.End {
		// Since the failure the run's numbers are no longer ours.
		if i := int(w.end.Text) - w.known; i >= 0 && i < len(w.after) {
			w.end.Text = w.strings.ID(w.after[i])
		}
		w.enc.Append(&w.end)
	}
	r.keep(w.enc.Flush(nil))
	r.show()
	if _, err := r.file.WriteAt(r.tail, r.bytes); err != nil {
		_ = r.file.Truncate(r.bytes) // readers of the file skip half a block, too
		return
	}
	r.bytes += int64(len(r.tail))
	r.tail = nil
}
