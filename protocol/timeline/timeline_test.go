package timeline_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// made is a made-up timeline: its bytes, its events, and where its blocks are.
type made struct {
	bytes   []byte
	events  []event.Event
	strings *event.Strings
	blocks  []timeline.Entry
}

func write(tb testing.TB, events int, opts block.Options) made {
	tb.Helper()
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Block: opts})
	m := made{strings: w.Strings()}
	synthetic.Generate(synthetic.Options{Events: events, Layers: 5, Dynamic: true}, w.Strings(), event.SinkFunc(func(e *event.Event) {
		m.events = append(m.events, *e)
		w.Emit(e)
	}))
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	m.bytes = b.Bytes()
	m.blocks = w.Blocks()
	return m
}

// read reads all of a stream, by blocks and in pieces, which must agree.
func read(tb testing.TB, r io.Reader) ([]event.Event, *timeline.Stream) {
	tb.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := timeline.NewStream(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	var out []event.Event
	if err := s.Replay(event.SinkFunc(func(e *event.Event) { out = append(out, *e) })); err != nil {
		tb.Fatal(err)
	}
	for _, n := range []int{0, 7} { // 0: whole blocks
		p, err := timeline.NewStream(bytes.NewReader(b))
		if err != nil {
			tb.Fatal(err)
		}
		var some []event.Event
		for err == nil {
			if n == 0 {
				some, err = p.Next(some)
			} else {
				some, err = p.Some(some, n)
			}
		}
		if !errors.Is(err, io.EOF) {
			tb.Fatal(err)
		}
		same(tb, some, out)
		if len(p.Damage()) != len(s.Damage()) || p.Complete() != s.Complete() {
			tb.Fatalf("in pieces of %d the damage is %v, not %v", n, p.Damage(), s.Damage())
		}
	}
	return out, s
}

func same(tb testing.TB, got, want []event.Event) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%d events came back of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			tb.Fatalf("event %d came back as\n%+v\nnot\n%+v", i, got[i], want[i])
		}
	}
}

func TestTimelineComesBackAsItWas(t *testing.T) {
	for _, deflate := range []bool{false, true} {
		m := write(t, 5000, block.Options{Events: 700, Deflate: deflate})
		for name, r := range map[string]io.Reader{
			"whole":          bytes.NewReader(m.bytes),
			"byte by byte":   iotest.OneByteReader(bytes.NewReader(m.bytes)),
			"no file header": bytes.NewReader(m.bytes[timeline.HeaderSize:]),
		} {
			got, s := read(t, r)
			same(t, got, m.events)
			if len(s.Damage()) > 0 || !s.Complete() {
				t.Errorf("%s: damage %v, complete %v", name, s.Damage(), s.Complete())
			}
			if s.Strings().Len() != m.strings.Len() {
				t.Errorf("%s: %d strings of %d", name, s.Strings().Len(), m.strings.Len())
			}
		}
	}
}

func TestReplayPassesTheStringsBeforeTheEvents(t *testing.T) {
	m := write(t, 3000, block.Options{Events: 100})
	s, err := timeline.NewStream(bytes.NewReader(m.bytes))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Replay(event.SinkFunc(func(e *event.Event) {
		if got, want := s.Strings().At(e.Op), m.strings.At(e.Op); got != want {
			t.Fatalf("op reads as %q, not %q", got, want)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
}

func TestFileCutAnywhereOpensUpToTheLastWholeBlock(t *testing.T) {
	m := write(t, 150, block.Options{Events: 40})
	for cut := 1; cut < len(m.bytes); cut++ {
		whole, events := int64(timeline.HeaderSize), 0
		for _, e := range m.blocks {
			if e.Offset+e.Size <= int64(cut) {
				whole, events = e.Offset+e.Size, events+e.Events
			}
		}
		got, s := read(t, bytes.NewReader(m.bytes[:cut]))
		lost := 0
		if n := len(got); n > 0 && got[n-1].Kind == event.Lost {
			lost, got = 1, got[:n-1]
		}
		same(t, got, m.events[:events])
		if s.Complete() {
			t.Fatalf("cut at %d: taken for complete", cut)
		}
		rest := int64(cut) - whole
		switch d := s.Damage(); {
		case cut < timeline.HeaderSize:
			if len(d) != 1 || !errors.Is(d[0], timeline.ErrTruncated) {
				t.Fatalf("cut at %d: damage %v", cut, d)
			}
		case rest == 0 || cut >= len(m.bytes)-timeline.FooterSize && rest-int64(len(m.bytes)) == 0:
			if len(d) != 0 {
				t.Fatalf("cut at %d: damage %v at a block's end", cut, d)
			}
		case cut == len(m.bytes)-timeline.FooterSize: // index whole, no footer
			if len(d) != 0 {
				t.Fatalf("cut at %d: damage %v", cut, d)
			}
		case cut > len(m.bytes)-timeline.FooterSize:
			if len(d) != 1 || d[0].Bytes != int64(cut-len(m.bytes)+timeline.FooterSize) {
				t.Fatalf("cut at %d: damage %v in the footer", cut, d)
			}
		default:
			if len(d) != 1 || d[0].Offset != whole || d[0].Bytes != rest || !errors.Is(d[0], timeline.ErrTruncated) {
				t.Fatalf("cut at %d: damage %v, want %d bytes at %d", cut, d, rest, whole)
			}
			if inEvents := whole < int64(len(m.bytes)) && events < len(m.events); lost == 1 && !inEvents {
				t.Fatalf("cut at %d: events lost outside of events", cut)
			}
		}
	}
}

func TestOneFlippedBitCostsOneBlock(t *testing.T) {
	m := write(t, 150, block.Options{Events: 40})
	r := rand.New(rand.NewPCG(1, 2))
	for at := range m.bytes {
		b := bytes.Clone(m.bytes)
		b[at] ^= 1 << r.IntN(8)
		s, err := timeline.NewStream(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("flip at %d: %v", at, err)
		}
		var got []event.Event
		if err := s.Replay(event.SinkFunc(func(e *event.Event) { got = append(got, *e) })); err != nil {
			t.Fatalf("flip at %d: %v", at, err)
		}
		if len(s.Damage()) != 1 && (len(s.Damage()) != 2 || !errors.Is(s.Damage()[1], block.ErrStringGap)) {
			t.Fatalf("flip at %d: damage %v", at, s.Damage())
		}
		hit := -1
		for i, e := range m.blocks {
			if int64(at) >= e.Offset && int64(at) < e.Offset+e.Size {
				hit = i
			}
		}
		var want []event.Event
		for i, e := range m.blocks {
			if i == hit {
				lost := event.Event{Kind: event.Lost, Size: int64(e.Events), Step: event.NoStep}
				if len(want) > 0 {
					lost.Time = want[len(want)-1].Time
				}
				if i+1 == len(m.blocks) && at < int(e.Offset)+block.HeaderSize {
					continue // nobody knows what the last block's header said
				}
				want = append(want, lost)
				continue
			}
			want = append(want, m.events[e.First:e.Next()]...)
		}
		same(t, got, want)
		if hit >= 0 {
			d := s.Damage()[0]
			if d.Block != hit || d.Offset != m.blocks[hit].Offset || d.Bytes != m.blocks[hit].Size {
				t.Fatalf("flip at %d in block %d at %d: told as %v", at, hit, m.blocks[hit].Offset, d)
			}
		}
	}
}

func TestBlocksSentTwiceCountOnce(t *testing.T) {
	m := write(t, 2000, block.Options{Events: 100})
	// A viewer reconnects: the strings so far, then blocks from an earlier one on.
	var b []byte
	for i, e := range m.blocks {
		if i == 8 {
			b = block.AppendStrings(b, m.strings, 1, m.blocks[5].StringBase, m.blocks[5].First, 0)
			b = append(b, m.bytes[m.blocks[5].Offset:e.Offset]...)
		}
		b = append(b, m.bytes[e.Offset:e.Offset+e.Size]...)
	}
	got, s := read(t, bytes.NewReader(b))
	same(t, got, m.events)
	if len(s.Damage()) > 0 {
		t.Errorf("damage: %v", s.Damage())
	}
}

func TestOverlappingBlocksAreTrimmed(t *testing.T) {
	m := write(t, 1000, block.Options{Events: 100})
	one := block.NewEncoder(m.strings, block.Options{})
	for i := range m.events[:150] {
		one.Append(&m.events[i])
	}
	b := one.Flush(nil)
	b = append(b, m.bytes[m.blocks[1].Offset:]...) // begins with event 100
	got, _ := read(t, bytes.NewReader(b))
	same(t, got, m.events)
}

func TestMissingBlockIsMarked(t *testing.T) {
	m := write(t, 1000, block.Options{Events: 100})
	b := append(bytes.Clone(m.bytes[:m.blocks[3].Offset]), m.bytes[m.blocks[5].Offset:]...)
	got, _ := read(t, bytes.NewReader(b))
	if e := got[300]; e.Kind != event.Lost || e.Size != 200 || e.Time != got[299].Time {
		t.Errorf("event 300 is %+v, want 200 lost", e)
	}
	same(t, got[301:], m.events[500:])
}

func TestWhatIsNotATimelineIsNamed(t *testing.T) {
	newer := timeline.AppendHeader(nil)
	newer[8] = 9
	for i, sum := 0, block.Checksum(newer[:12]); i < 4; i++ {
		newer[12+i] = byte(sum >> (8 * i))
	}
	for _, c := range []struct {
		in   string
		is   error
		says string
	}{
		{"", timeline.ErrNotTimeline, "empty"},
		{"\x1f\x8b\x08\x00 and so on", timeline.ErrNotTimeline, "gzip"},
		{"PK\x03\x04", timeline.ErrNotTimeline, "zip"},
		{`{"traceEvents": []}`, timeline.ErrNotTimeline, "JSON"},
		{"time,action,size\n1,alloc,2\n", timeline.ErrNotTimeline, "looks like text"},
		{"\x80\x04\x95", timeline.ErrNotTimeline, "pickle"},
		{"\x00\x01\x02\x03", timeline.ErrNotTimeline, "00 01 02 03"},
		{"\x89TIDE\n\x1a" + strings.Repeat("x", 100), timeline.ErrNotTimeline, "text mode"},
		{timeline.TextMagic + " 1\n", timeline.ErrNotTimeline, "text form"},
		{string(newer), timeline.ErrVersion, "version 9, this reader knows up to 1"},
	} {
		_, err := timeline.NewStream(strings.NewReader(c.in))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.20q: %v, want it to say %q", c.in, err, c.says)
		}
		if _, err := timeline.Open(strings.NewReader(c.in), int64(len(c.in))); !errors.Is(err, c.is) {
			t.Errorf("open %.20q: %v", c.in, err)
		}
	}
}

func TestUnknownKindsOfBlockAreSkipped(t *testing.T) {
	m := write(t, 1000, block.Options{Events: 100})
	b := bytes.Clone(m.bytes[:m.blocks[3].Offset])
	b = block.Make(b, block.Header{Kind: 77, Flags: 0xff}, []byte("of a later version"))
	b = append(b, m.bytes[m.blocks[3].Offset:]...)
	got, s := read(t, bytes.NewReader(b))
	same(t, got, m.events)
	if len(s.Damage()) > 0 {
		t.Errorf("damage: %v", s.Damage())
	}
}

func TestReadErrorsAreNotMistakenForTheEnd(t *testing.T) {
	m := write(t, 1000, block.Options{Events: 100})
	broken := errors.New("cable out")
	s, err := timeline.NewStream(io.MultiReader(bytes.NewReader(m.bytes[:m.blocks[4].Offset+70]), iotest.ErrReader(broken)))
	if err != nil {
		t.Fatal(err)
	}
	err = s.Replay(event.SinkFunc(func(*event.Event) {}))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
