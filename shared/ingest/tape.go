package ingest

import (
	"fmt"
	"io"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// tape keeps events packed, a few bytes each, until they are told: what a log
// of millions of rows says is known only at its end, and told after it.
type tape struct {
	pieces [][]byte
	w      *timeline.Writer
	at     int // of pieces, while it is read
}

func newTape(strs *event.Strings) *tape {
	t := &tape{}
	t.w = timeline.NewWriter(t, timeline.Options{Strings: strs})
	return t
}

// Write implements io.Writer.
func (t *tape) Write(b []byte) (int, error) {
	t.pieces = append(t.pieces, append([]byte(nil), b...))
	return len(b), nil
}

// Read implements io.Reader.
func (t *tape) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && t.at < len(t.pieces) {
		c := copy(p[n:], t.pieces[t.at])
		n += c
		if t.pieces[t.at] = t.pieces[t.at][c:]; len(t.pieces[t.at]) == 0 {
			t.at++
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// play gives the events to a sink, with strings of its table. Tapes are played
// as often as one likes.
func (t *tape) play(strs *event.Strings, sink event.Sink) error {
	if err := t.w.Close(); err != nil {
		return fmt.Errorf("keep a log's history: %w", err)
	}
	s, err := timeline.NewStream(&tape{pieces: append([][]byte(nil), t.pieces...)})
	if err != nil {
		return fmt.Errorf("tell a log's history: %w", err)
	}
	return s.Replay(&renamed{from: s.Strings(), to: strs, sink: sink})
}

// renamed passes events on with the strings of another table.
type renamed struct {
	from, to *event.Strings
	ids      []event.StringID // by the id in from, one more than that in to; 0 for not yet
	sink     event.Sink
	e        event.Event
}

// Emit implements event.Sink.
func (r *renamed) Emit(e *event.Event) {
	r.e = *e
	r.e.Op, r.e.Tensor, r.e.Text = r.id(e.Op), r.id(e.Tensor), r.id(e.Text)
	r.sink.Emit(&r.e)
}

func (r *renamed) id(id event.StringID) event.StringID {
	if id == 0 {
		return 0
	}
	if int(id) >= len(r.ids) {
		r.ids = append(r.ids, make([]event.StringID, max(r.from.Len(), int(id)+1)-len(r.ids))...)
	}
	if r.ids[id] == 0 {
		r.ids[id] = 1 + r.to.ID(r.from.At(id))
	}
	return r.ids[id] - 1
}
