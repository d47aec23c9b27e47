package timeline_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

const words = `{"input_kind":"pytorch-oom-message","moments":true,"cut":null,"readings":[],"left_out":0}`

// told writes a timeline of a few events with readings behind them; readings nil
// writes none.
func told(tb testing.TB, events int, readings ...string) ([]byte, *timeline.Writer) {
	tb.Helper()
	b, w := toldInto(tb, events, readings...)
	return b.Bytes(), w
}

func toldInto(tb testing.TB, events int, readings ...string) (*bytes.Buffer, *timeline.Writer) {
	tb.Helper()
	b := new(bytes.Buffer)
	w := timeline.NewWriter(b, timeline.Options{Block: block.Options{Events: 3, Deflate: true}})
	s := w.Strings()
	for i := range events {
		w.Emit(&event.Event{Kind: event.Log, Time: int64(i), Text: s.ID("line"), Step: event.NoStep})
	}
	for _, r := range readings {
		if err := w.WriteReadings([]byte(r)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b, w
}

// recall reads a timeline to its end, and what it means.
func recall(tb testing.TB, b []byte) (events int, readings string, s *timeline.Stream) {
	tb.Helper()
	s, err := timeline.NewStream(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Replay(event.SinkFunc(func(*event.Event) { events++ })); err != nil {
		tb.Fatal(err)
	}
	got, err := s.Readings()
	if err != nil {
		tb.Fatal(err)
	}
	return events, string(got), s
}

// TestReadingsComeBack: with events or without, short or deflated, the last of
// several, by index or by a walk.
func TestReadingsComeBack(t *testing.T) {
	long := strings.Repeat(words, 500)
	for name, c := range map[string]struct {
		events   int
		readings []string
		want     string
	}{
		"none": {7, nil, ""}, "some": {7, []string{words}, words}, "no events": {0, []string{words}, words},
		"long": {7, []string{long}, long}, "the last": {7, []string{long, words}, words},
	} {
		b, w := told(t, c.events, c.readings...)
		events, got, s := recall(t, b)
		if events != c.events || got != c.want || len(s.Damage()) > 0 || !s.Complete() {
			t.Errorf("%s: %d events, readings %.60q, damage %v", name, events, got, s.Damage())
		}
		if c.want == long && len(b) > 2000 {
			t.Errorf("%s: %d bytes: not deflated", name, len(b))
		}
		at, n := s.ReadingsAt()
		if c.want != "" {
			if _, alone, _ := recall(t, b[at:at+n]); alone != c.want {
				t.Errorf("%s: its block alone reads as %.60q", name, alone)
			}
		}
		for _, form := range [][]byte{b, b[:len(b)-1]} {
			f, err := timeline.Open(bytes.NewReader(form), int64(len(form)))
			if err != nil || len(f.Blocks()) != len(w.Blocks()) {
				t.Fatalf("%s: %d blocks of %d, indexed %v: %v", name, len(f.Blocks()), len(w.Blocks()), f.Indexed(), err)
			}
			for i, e := range f.Blocks() {
				if _, err := f.Frame(i, nil); err != nil || e != w.Blocks()[i] {
					t.Errorf("%s: block %d: %v", name, i, err)
				}
				if e.Events > 0 && f.Find(e.First) != i {
					t.Errorf("%s: event %d is found in block %d, is in %d", name, e.First, f.Find(e.First), i)
				}
			}
		}
	}
}

// TestReadersFromBeforePassReadingsOver: such a reader knows the three kinds of
// block before; to it readings are of an unknown kind, as a kind that is not given
// yet is to this one. It must see the same events and no damage.
func TestReadersFromBeforePassReadingsOver(t *testing.T) {
	b, w := told(t, 7, words)
	e := w.Blocks()[len(w.Blocks())-1]
	later := bytes.Clone(b)
	head := later[e.Offset:][:block.HeaderSize]
	head[5] = 200
	binary.LittleEndian.PutUint32(head[56:], block.Checksum(head[:56]))
	events, readings, s := recall(t, later)
	if events != 7 || readings != "" || len(s.Damage()) > 0 || !s.Complete() {
		t.Errorf("%d events, readings %q, damage %v", events, readings, s.Damage())
	}
	if f, err := timeline.Open(bytes.NewReader(later), int64(len(later))); err != nil || !f.Indexed() {
		t.Errorf("indexed %v, %v", f.Indexed(), err)
	}
}

// TestAmendReplacesTheEnd: who keeps the bytes puts the new end in the old one's
// place.
func TestAmendReplacesTheEnd(t *testing.T) {
	for _, first := range [][]string{nil, {words}, {strings.Repeat(words, 9)}} {
		kept, w := toldInto(t, 7, first...)
		at, err := amend(w, kept, "amended")
		if err != nil {
			t.Fatal(err)
		}
		again, err := amend(w, kept, "amended twice")
		if err != nil || again != at {
			t.Errorf("again at %d, %v, want %d", again, err, at)
		}
		all := kept.Bytes()
		events, got, s := recall(t, all)
		if events != 7 || got != "amended twice" || !s.Complete() {
			t.Errorf("%d events, readings %q", events, got)
		}
		if f, err := timeline.Open(bytes.NewReader(all), int64(len(all))); err != nil || !f.Indexed() || len(f.Blocks()) != len(w.Blocks()) {
			t.Errorf("indexed %v, %v", f.Indexed(), err)
		}
	}
	open := timeline.NewWriter(io.Discard, timeline.Options{})
	if _, err := open.Amend(nil); err == nil {
		t.Error("a timeline that is not closed was amended")
	}
}

// amend puts what the writer wrote anew in the place of what was there.
func amend(w *timeline.Writer, kept *bytes.Buffer, words string) (int64, error) {
	before := kept.Len()
	at, err := w.Amend([]byte(words))
	tail := bytes.Clone(kept.Bytes()[before:])
	kept.Truncate(int(at))
	kept.Write(tail)
	return at, err
}

// TestDamagedReadingsCostNoEvent: what is wrong with them is told.
func TestDamagedReadingsCostNoEvent(t *testing.T) {
	b, w := told(t, 7, words)
	e := w.Blocks()[len(w.Blocks())-1]
	for _, at := range []int64{e.Offset + 5, e.Offset + block.HeaderSize + 3} {
		broken := bytes.Clone(b)
		broken[at] ^= 1
		events, readings, s := recall(t, broken)
		if events != 7 || readings != "" || len(s.Damage()) != 1 {
			t.Errorf("byte %d: %d events, readings %q, damage %v", at, events, readings, s.Damage())
		}
	}
}

// TestReadingsAreBounded: a writer refuses what a reader would not believe.
func TestReadingsAreBounded(t *testing.T) {
	noise := make([]byte, block.MaxReadings+1)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(r.Uint32())
	}
	w := timeline.NewWriter(io.Discard, timeline.Options{})
	if err := w.WriteReadings(noise); err == nil {
		t.Error("readings that are too long were written")
	}
	if err := w.WriteReadings(noise[:block.MaxReadings]); err != nil {
		t.Error(err)
	}
	bomb := block.Pack(nil, block.Header{Kind: block.Readings}, make([]byte, block.MaxReadings+1))
	for name, frame := range map[string][]byte{"inflated": bomb, "stored": block.Make(nil, block.Header{Kind: block.Readings}, noise)} {
		s, err := timeline.NewStream(bytes.NewReader(append(timeline.AppendHeader(nil), frame...)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Replay(event.SinkFunc(func(*event.Event) {})); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Readings(); err == nil {
			t.Errorf("%s: %d bytes were believed", name, len(got))
		}
	}
}
