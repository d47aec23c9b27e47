package timeline_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
)

var update = flag.Bool("update", false, "renew the example in FORMAT.md; the golden file of a released version is never renewed")

// example is the small file that FORMAT.md explains.
func example(tb testing.TB) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{})
	s := w.Strings()
	for _, e := range []event.Event{
		{Kind: event.DeviceFacts, Device: 1, Text: s.ID("kind=gpu\n"), Step: event.NoStep},
		{Kind: event.RegionAdd, Device: 1, Allocator: 1, Address: 0x100000, Size: 1 << 20, Requested: 1 << 20, Step: event.NoStep},
		{Time: 1000, Kind: event.OpBegin, Device: 1, Op: s.ID("dense"), ID: 1, Step: 0},
		{Time: 1200, Kind: event.Alloc, Device: 1, Allocator: 1, Address: 0x100000, Size: 1024, Requested: 1000, Op: s.ID("dense"), Tensor: s.ID("dense:0"), Category: event.Activation},
		{Time: 1300, Kind: event.Alloc, Device: 1, Allocator: 1, Address: 0x100400, Size: 512, Requested: 500, Op: s.ID("dense"), Tensor: s.ID("dense:1"), Category: event.Temporary},
		{Time: 1400, Kind: event.Free, Device: 1, Allocator: 1, Address: 0x100400, Size: 512},
		{Time: 9000, Kind: event.OpEnd, Device: 1, Op: s.ID("dense"), ID: 1},
		{Time: 9000, Kind: event.End, Step: event.NoStep},
	} {
		w.Emit(&e)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// explain writes a file down piece by piece. It is a second reader of the
// format, made from FORMAT.md alone and sharing no code with the first.
type explainer struct {
	b   []byte
	at  int
	out strings.Builder
}

// take explains the next n bytes.
func (x *explainer) take(n int, format string, args ...any) []byte {
	b := x.b[x.at : x.at+n]
	for i := 0; i < max(1, n); i += 8 {
		what := ""
		if i == 0 {
			what = fmt.Sprintf(format, args...)
		}
		line := fmt.Sprintf("%04x  %-24s %s", x.at+i, fmt.Sprintf("% x", b[min(n, i):min(n, i+8)]), what)
		x.out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	x.at += n
	return b
}

func (x *explainer) u8(what string) int {
	v := int(x.b[x.at])
	x.take(1, "%s: %d", what, v)
	return v
}

func (x *explainer) u32(what string) int {
	v := binary.LittleEndian.Uint32(x.b[x.at:])
	x.take(4, "%s: %d", what, v)
	return int(v)
}

func (x *explainer) u64(what string) int {
	v := binary.LittleEndian.Uint64(x.b[x.at:])
	x.take(8, "%s: %d", what, v)
	return int(v)
}

func (x *explainer) varint(what string) int {
	v, n := binary.Uvarint(x.b[x.at:])
	x.take(n, "%s: %d", what, v)
	return int(v)
}

func (x *explainer) header() (kind, stored int) {
	x.take(4, "block: magic %q", x.b[x.at:x.at+4])
	x.u8("major version")
	kind = x.u8("kind of block (1 events, 2 strings, 3 index, 4 readings)")
	x.u8("flags")
	x.u8("unused")
	x.u64("sequence number of the first event")
	x.u64("time of the first event, ns")
	x.u64("time of the last event, ns")
	x.u32("events")
	x.u32("id of the first new string")
	x.u32("new strings")
	stored = x.u32("payload bytes, stored")
	x.u32("payload bytes, inflated")
	x.take(4, "CRC-32C of the payload")
	x.take(4, "CRC-32C of the 56 bytes before")
	return kind, stored
}

func (x *explainer) events() {
	names := []string{"string lengths", "string bytes", "heads", "head", "time", "step", "op", "tensor", "text", "id", "address", "size", "requested", "place", "value", "distance"}
	n := x.varint("columns")
	lengths := make([]int, n)
	for i := range lengths {
		lengths[i] = x.varint("bytes of column " + names[i])
	}
	for i, l := range lengths {
		if l == 0 {
			continue
		}
		if names[i] != "heads" {
			b := x.b[x.at : x.at+l]
			if names[i] == "string bytes" {
				x.take(l, "%s: %q", names[i], b)
				continue
			}
			var values []uint64
			for len(b) > 0 {
				v, k := binary.Uvarint(b)
				if bytewise := names[i] == "place" || names[i] == "value"; bytewise || k <= 0 {
					v, k = uint64(b[0]), 1
				}
				values = append(values, v)
				b = b[k:]
			}
			x.take(l, "%s: %d", names[i], values)
			continue
		}
		for end, row := x.at+l, 0; x.at < end; row++ {
			h := x.b[x.at:]
			coding, k := binary.Uvarint(h[6:])
			size := 6 + k
			var ids []uint64
			for range 3 {
				v, k := binary.Uvarint(h[size:])
				ids = append(ids, v)
				size += k
			}
			x.take(size, "head %d: %s, model %d, category %d, stream %d, cause %d, flags %d, coding %#x, device %d, peer %d, allocator %d",
				row, event.Kind(h[0]), h[1], h[2], h[3], h[4], h[5], coding, ids[0], ids[1], ids[2])
		}
	}
}

func (x *explainer) index() {
	for i := range x.varint("entries of the index") {
		for _, what := range []string{
			"offset, less that of the entry before", "bytes, header included", "kind", "first sequence number, less that before (zigzag)",
			"events", "first time, less that before (zigzag)", "last time, less the first (zigzag)", "id of the first string", "strings",
		} {
			x.varint(fmt.Sprintf("entry %d: %s", i, what))
		}
	}
}

func (x *explainer) file() string {
	x.take(8, "file: magic %q", x.b[:8])
	x.u8("major version")
	x.take(3, "unused")
	x.take(4, "CRC-32C of the 12 bytes before")
	for string(x.b[x.at:x.at+4]) == "TDLB" {
		switch kind, stored := x.header(); kind {
		case 3:
			x.index()
		case 4:
			x.take(stored, "readings: %s", x.b[x.at:x.at+stored])
		default:
			x.events()
		}
	}
	x.take(4, "footer: magic %q", x.b[x.at:x.at+4])
	x.u64("offset of the index")
	x.take(4, "CRC-32C of the 12 bytes before")
	return x.out.String()
}

func TestFormatDocumentTellsTheTruth(t *testing.T) {
	holdExample(t, "example", example(t))
	var b bytes.Buffer // of an input without events
	w := timeline.NewWriter(&b, timeline.Options{})
	if err := errors.Join(w.WriteReadings([]byte(`{"input_kind":"x","readings":[{"why":"y"}]}`)), w.Close()); err != nil {
		t.Fatal(err)
	}
	holdExample(t, "example of readings", b.Bytes())
}

// holdExample compares an example of the document with what is written.
func holdExample(t *testing.T, name string, file []byte) {
	t.Helper()
	const doc = "../FORMAT.md"
	begin, end := "<!-- "+name+": made by go test ./protocol/timeline -update -->\n```\n", "```\n<!-- end of "+name+" -->"
	x := explainer{b: file}
	want := x.file()
	if x.at != len(x.b) {
		t.Fatalf("%d bytes explained of %d", x.at, len(x.b))
	}
	b, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(b), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has lost the marks around its example", doc)
	}
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s explains other bytes than are written; if that is meant, raise the version or prove that old readers read it, then run with -update. Now written:\n%s", doc, want)
	}
	if err := os.WriteFile(doc, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFilesOfReleasedVersionsStillOpen reads files that were written by earlier
// versions of this package and compares them with their text. Once released,
// neither is ever renewed.
func TestFilesOfReleasedVersionsStillOpen(t *testing.T) {
	files, err := filepath.Glob("testdata/v*.tideline")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := timeline.NewStream(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got bytes.Buffer
		if err := text.Write(&got, s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(s.Damage()) > 0 || !s.Complete() {
			t.Errorf("%s: damage %v, complete %v", name, s.Damage(), s.Complete())
		}
		readings, err := s.Readings()
		if words, _ := os.ReadFile(strings.TrimSuffix(name, ".tideline") + ".json"); err != nil || string(readings) != string(words) {
			t.Errorf("%s: its readings are other than its .json: %v", name, err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(name, ".tideline") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s reads differently from its text", name)
		}
		f, err := timeline.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil || !f.Indexed() {
			t.Errorf("%s: open: %v", name, err)
		}
	}
}

// TestReleaseWritesItsFile writes the file of the present version where there
// is none, with -update.
func TestReleaseWritesItsFile(t *testing.T) {
	name := fmt.Sprintf("testdata/v%d.tideline", timeline.Version)
	if _, err := os.Stat(name); err == nil {
		return
	}
	if !*update {
		t.Fatalf("%s is missing: run with -update before the release", name)
	}
	var b, txt bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Block: block.Options{Events: 400, Deflate: true}})
	synthetic.Generate(synthetic.Options{Events: 1500, Layers: 6, Dynamic: true, Devices: 2}, w.Strings(), w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := timeline.NewStream(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if err := text.Write(&txt, s); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(strings.TrimSuffix(name, ".tideline")+".txt", txt.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestReadingsHaveTheirFile does the same for a timeline that keeps readings.
func TestReadingsHaveTheirFile(t *testing.T) {
	const name = "testdata/v1-readings"
	if _, err := os.Stat(name + ".tideline"); err == nil {
		return
	}
	if !*update {
		t.Fatalf("%s.tideline is missing: run with -update before the release", name)
	}
	json := `{"input_kind":"pytorch-oom-message","moments":true,"cut":null,"readings":[{"kind":"pytorch-oom-message","line":1,"name":"GPU 0","facts":{"requested_mib":2048},"verdict":"limit_too_low","rows":[["asked for","2.00 GiB"]]}],"left_out":0}`
	b, _ := told(t, 7, json+strings.Repeat(" ", 400)) // long enough to be deflated
	s, err := timeline.NewStream(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var txt bytes.Buffer
	err = errors.Join(text.Write(&txt, s), os.WriteFile(name+".tideline", b, 0o644), os.WriteFile(name+".txt", txt.Bytes(), 0o644),
		os.WriteFile(name+".json", []byte(json+strings.Repeat(" ", 400)), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzStream(f *testing.F) {
	m := write(f, 100, block.Options{Events: 40})
	f.Add(m.bytes)
	f.Add(m.bytes[:len(m.bytes)/2])
	f.Add(example(f))
	b, _ := told(f, 3, words)
	f.Add(b)
	f.Add([]byte("TDLE"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := timeline.NewStream(bytes.NewReader(b))
		f, ferr := timeline.Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if ferr == nil {
				t.Fatalf("the stream refuses what the file opens: %v", err)
			}
			return
		}
		events := 0
		if err := s.Replay(event.SinkFunc(func(*event.Event) { events++ })); err != nil {
			return
		}
		if r, err := s.Readings(); err == nil && len(r) > block.MaxReadings {
			t.Fatalf("%d bytes of readings", len(r))
		}
		lost := int64(0)
		for _, d := range s.Damage() {
			lost += d.Bytes
		}
		if lost > int64(len(b)) {
			t.Fatalf("%d bytes left out of %d", lost, len(b))
		}
		if ferr == nil {
			for i := range f.Blocks() {
				_, _ = f.Frame(i, nil)
			}
			_, _ = f.Strings(len(f.Blocks()))
		}
	})
}
