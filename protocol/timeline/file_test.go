package timeline_test

import (
	"bytes"
	"errors"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

func TestFileGivesEveryBlockByNumberSequenceAndTime(t *testing.T) {
	m := write(t, 3000, block.Options{Events: 250, Deflate: true})
	noFooter := m.bytes[:len(m.bytes)-1]
	for name, b := range map[string][]byte{"indexed": m.bytes, "scanned": noFooter} {
		f, err := timeline.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if f.Indexed() != (name == "indexed") {
			t.Errorf("%s: Indexed is %v", name, f.Indexed())
		}
		if len(f.Blocks()) != len(m.blocks) {
			t.Fatalf("%s: %d blocks of %d", name, len(f.Blocks()), len(m.blocks))
		}
		dec := block.NewDecoder()
		var buf []byte
		for i, e := range f.Blocks() {
			if e != m.blocks[i] {
				t.Errorf("%s: block %d is %+v, was written as %+v", name, i, e, m.blocks[i])
			}
			frame, err := f.Frame(i, buf)
			if err != nil {
				t.Fatal(err)
			}
			buf = frame
			events, err := dec.DecodeEvents(frame, nil)
			if err != nil {
				t.Fatal(err)
			}
			same(t, events, m.events[e.First:e.Next()])
			if got := f.Find(e.First + uint64(e.Events)/2); got != i {
				t.Errorf("%s: event %d found in block %d, is in %d", name, e.First, got, i)
			}
			if got := f.FindTime(e.LastTime); got > i || f.Blocks()[got].LastTime < e.LastTime {
				t.Errorf("%s: time %d found in block %d, is in %d", name, e.LastTime, got, i)
			}
			strings, err := f.Strings(i)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Len() != e.StringBase {
				t.Errorf("%s: %d strings before block %d, want %d", name, strings.Len(), i, e.StringBase)
			}
		}
		if got := f.Find(uint64(len(m.events))); got != len(m.blocks) {
			t.Errorf("%s: an event past the end is found in block %d", name, got)
		}
	}
}

func TestResumeFromASequenceNumber(t *testing.T) {
	m := write(t, 3000, block.Options{Events: 250})
	f, err := timeline.Open(bytes.NewReader(m.bytes), int64(len(m.bytes)))
	if err != nil {
		t.Fatal(err)
	}
	i := f.Find(1100)
	strings, err := f.Strings(i)
	if err != nil {
		t.Fatal(err)
	}
	b := block.AppendStrings(nil, strings, 1, strings.Len(), f.Blocks()[i].First, 1)
	for ; i < len(f.Blocks()); i++ {
		frame, err := f.Frame(i, nil)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, frame...)
	}
	got, s := read(t, bytes.NewReader(b))
	same(t, got, m.events[1000:])
	if op := m.events[1100].Op; s.Strings().At(op) != m.strings.At(op) {
		t.Errorf("op %d reads as %q, not %q", op, s.Strings().At(op), m.strings.At(op))
	}
}

func TestDamagedBlockOfAnIndexedFileIsNamed(t *testing.T) {
	m := write(t, 3000, block.Options{Events: 250})
	b := bytes.Clone(m.bytes)
	b[m.blocks[2].Offset+200] ^= 1
	f, err := timeline.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Frame(2, nil)
	var d timeline.Damage
	if !errors.As(err, &d) || !errors.Is(err, timeline.ErrChecksum) || d.Block != 2 || d.Offset != m.blocks[2].Offset {
		t.Errorf("got %v", err)
	}
	if _, err := f.Frame(3, nil); err != nil {
		t.Errorf("the block after it: %v", err)
	}
}

func TestWriterTakesEncodedBlocks(t *testing.T) {
	m := write(t, 3000, block.Options{Events: 250})
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{})
	for _, e := range m.blocks {
		if err := w.WriteFrame(m.bytes[e.Offset : e.Offset+e.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteFrame([]byte("something else")); err == nil {
		t.Error("wrote something that is no block")
	}
	if w.Next() != uint64(len(m.events)) {
		t.Errorf("next is %d after %d events", w.Next(), len(m.events))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), m.bytes) {
		t.Error("the same blocks gave another file")
	}
}

// fullDisk fails after some bytes, as a disk does.
type fullDisk struct{ left int }

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	d.left -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestFullDiskIsReportedOnceAndForAll(t *testing.T) {
	w := timeline.NewWriter(&fullDisk{left: 100}, timeline.Options{Block: block.Options{Events: 10}})
	for i := range 100 {
		w.Emit(&event.Event{Kind: event.Sample, Time: int64(i), Size: int64(i)})
	}
	for name, err := range map[string]error{"flush": w.Flush(), "close": w.Close(), "again": w.Close(), "err": w.Err()} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
