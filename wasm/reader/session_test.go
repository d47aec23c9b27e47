package reader

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/timeline"
	"tideline/shared/blame"
	"tideline/shared/golden"
	"tideline/shared/ingest"
	"tideline/shared/remedy"
)

// files are all inputs of the cases and of the readers' testdata that open.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	list, _ := filepath.Glob("../../shared/ingest/testdata/*.txt")
	data, _ := filepath.Glob("../../shared/ingest/*/testdata/*")
	for _, f := range append(list, data...) {
		if b, err := os.ReadFile(f); err == nil && !strings.Contains(f, "pickle/testdata") && !strings.HasSuffix(f, ".md") {
			out[filepath.Base(f)] = b
		}
	}
	dirs, _ := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	for _, d := range dirs {
		id := filepath.Base(filepath.Dir(d))
		inputs, _ := golden.Case(t, id)
		for name, b := range inputs {
			out[id+"/"+name] = b
		}
	}
	if len(out) < 60 {
		t.Fatalf("only %d files", len(out))
	}
	return out
}

// result is what came of a file.
type result struct {
	sum     uint64
	events  uint64
	pieces  int
	largest int
	known   string
	told    string
	tried   string // "" when nothing is tried; without where the end belongs
	file    []byte // the timeline, with its last end
	err     error
}

// amend puts the new end of the timeline in the old one's place, which changes no
// event.
func (r *result) amend(t *testing.T, tail []byte) {
	t.Helper()
	var at struct{ End *int }
	if err := json.Unmarshal([]byte(r.tried), &at); err != nil || at.End == nil || *at.End > len(r.file) {
		t.Fatalf("the end belongs at %v of %d: %v", at.End, len(r.file), err)
	}
	r.file = append(r.file[:*at.End:*at.End], tail...)
	if sum, n := hash(t, r.file); sum != r.sum || n != r.events {
		t.Errorf("with its new end the timeline has %d events (%x), had %d (%x)", n, sum, r.events, r.sum)
	}
	r.tried = endAt.ReplaceAllString(r.tried, `"end":null`)
}

var endAt = regexp.MustCompile(`"end":\d+`)

// read takes a file through a session in pieces of the given sizes, over and
// over; the buffer is spoilt once the session is hungry again, as the browser's
// is.
func read(t *testing.T, s *Session, name string, file []byte, sizes ...int) result {
	t.Helper()
	var r result
	var out bytes.Buffer
	state := s.Start(name)
	room := []byte(nil)
	for i := 0; ; {
		switch state {
		case Hungry:
			for k := range room {
				room[k] = 0xee
			}
			n := min(sizes[i%len(sizes)], len(file))
			i++
			room = append(room[:0], file[:n]...)
			file = file[n:]
			state = s.Feed(room, len(file) == 0)
		case Known:
			r.known = string(s.Answer())
			state = s.Work()
		case Full, Told:
			piece := s.Drain()
			out.Write(piece)
			r.pieces++
			r.largest = max(r.largest, len(piece))
			if state == Told {
				r.told = string(s.Answer())
				r.sum, r.events = hash(t, out.Bytes())
				r.file = bytes.Clone(out.Bytes())
				if r.tried = tried(t, s); r.tried != "" {
					r.amend(t, s.Drain())
				}
				return r
			}
			state = s.Work()
		case Failed:
			r.err = errors.New(string(s.Answer()))
			return r
		default:
			t.Fatalf("%s: state %d", name, state)
		}
	}
}

// tried waits for the trials.
func tried(t *testing.T, s *Session) (answer string) {
	t.Helper()
	state := s.Work()
	for state == Busy {
		state = s.Work()
	}
	if state == Tried {
		answer = string(s.Answer())
		state = s.Work()
	}
	if state != Idle || s.Work() != Idle {
		t.Errorf("the session goes on after all was told: %d", state)
	}
	return answer
}

func hash(t *testing.T, file []byte) (sum, n uint64) {
	t.Helper()
	s, err := timeline.NewStream(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	h := eventhash.New(s.Strings())
	if err := s.Replay(event.SinkFunc(func(e *event.Event) { n++; h.Emit(e) })); err != nil || !s.Complete() || len(s.Damage()) > 0 {
		t.Fatalf("%v, complete %v, damage %v", err, s.Complete(), s.Damage())
	}
	return h.Sum64(), n
}

// direct is the same without a session.
func direct(t *testing.T, name string, file []byte) (r result) {
	t.Helper()
	in, err := ingest.Open(name, bytes.NewReader(file), ingest.Limits{})
	if err != nil {
		return result{err: err}
	}
	strs := new(event.Strings)
	h := eventhash.New(strs)
	if err := in.Emit(strs, event.SinkFunc(func(e *event.Event) { r.events++; h.Emit(e) })); err != nil {
		return result{err: err}
	}
	r.sum = h.Sum64()
	r.told = string(appendTold(nil, in, r.events, -1))
	if len(in.Readings) > 0 {
		blame.Fill(in, blame.Options{})
		remedy.Fill(in, remedy.Options{})
		r.tried = string(appendTold(nil, in, r.events, -1))
	}
	return r
}

// TestPiecesMakeNoDifference: every file comes to the same events and readings
// however it is cut, as without a session.
func TestPiecesMakeNoDifference(t *testing.T) {
	var s Session // one for all: nothing may be left of the file before
	for name, file := range files(t) {
		want := direct(t, name, file)
		if want.err != nil {
			t.Errorf("%s: %v", name, want.err)
			continue
		}
		cuts := [][]int{{len(file)}, {1 << 20}, {4093, 1, 70001}}
		if len(file) < 40<<10 {
			cuts = append(cuts, []int{1})
		}
		for _, sizes := range cuts {
			got := read(t, &s, name, file, sizes...)
			if got.err != nil || got.sum != want.sum || got.events != want.events || got.told != want.told || got.tried != want.tried {
				t.Errorf("%s in pieces of %v: %d events (%x), want %d (%x); %v", name, sizes, got.events, got.sum, want.events, want.sum, got.err)
			}
		}
	}
}

// TestAnswersAreJSON: the page parses them.
func TestAnswersAreJSON(t *testing.T) {
	var s Session
	for name, file := range files(t) {
		r := read(t, &s, name, file, 1<<20)
		var known struct{ Kind, Origin string }
		var told struct {
			Events   int
			Readings []struct {
				Name, Phrase string
				Rows         [][]string
				Reading      map[string]any
			}
		}
		if err := errors.Join(json.Unmarshal([]byte(r.known), &known), json.Unmarshal([]byte(r.told), &told)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if known.Kind == "" || known.Origin == "" || uint64(told.Events) != r.events || len(told.Readings) == 0 {
			t.Errorf("%s: %s, %d readings", name, r.known, len(told.Readings))
			continue
		}
		for _, x := range told.Readings {
			if x.Name == "" || x.Reading["kind"] == nil {
				t.Errorf("%s: a reading without a name or kind: %+v", name, x)
			}
		}
	}
}

// readingsOf are the readings of an answer.
func readingsOf(t *testing.T, answer string) string {
	t.Helper()
	var told struct{ Readings json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &told); err != nil {
		t.Fatal(err)
	}
	return string(told.Readings)
}

// TestTimelinesKeepTheirReadings: a timeline that was made of a file says the same
// again, also when only the block of its readings is read, as the page does; and
// it says of what.
func TestTimelinesKeepTheirReadings(t *testing.T) {
	var s Session
	for name, file := range files(t) {
		first := read(t, &s, name, file, 1<<20)
		want := readingsOf(t, first.told)
		if first.tried != "" {
			want = readingsOf(t, first.tried)
		}
		stream, err := timeline.NewStream(bytes.NewReader(first.file))
		if err == nil {
			err = stream.Replay(event.SinkFunc(func(*event.Event) {}))
		}
		at, n := stream.ReadingsAt()
		if err != nil || n == 0 {
			t.Fatalf("%s: no readings in the timeline: %v", name, err)
		}
		for what, part := range map[string][]byte{"whole": first.file, "packed": packed(first.file), "alone": first.file[at : at+n]} {
			again := read(t, &s, name, part, 5000)
			if got := readingsOf(t, again.told); again.err != nil || got != want {
				t.Errorf("%s, %s: %v\n%s\nwant\n%s", name, what, again.err, got, want)
			}
			var told, was struct {
				Own       bool
				InputKind string `json:"input_kind"`
				Origin    string
				Kind      string
			}
			if err := errors.Join(json.Unmarshal([]byte(again.told), &told), json.Unmarshal([]byte(first.told), &was)); err != nil {
				t.Fatal(err)
			}
			if !told.Own || told.InputKind != was.Kind || told.Origin != was.Origin || again.tried != "" {
				t.Errorf("%s, %s: %.200s, was %.200s", name, what, again.told, first.told)
			}
			if what != "alone" && again.sum != first.sum {
				t.Errorf("%s, %s: the events changed", name, what)
			}
		}
	}
}

func packed(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

// TestRefusesAsTheCommandDoes: the page shows the reader's own words.
func TestRefusesAsTheCommandDoes(t *testing.T) {
	var s Session
	for _, file := range []string{
		"", "just a log line", `{"level":"info"}`, "\x89PNG....", "PK\x03\x04aaaa", "\x80\x02cos\nsystem\nU\x02ls\x85R.", "\x80\x02}U\x01aK\x01s.",
		string(packed(packed([]byte("a")))), string(packed([]byte("\x80\x02cos\nsystem\nU\x02ls\x85R."))), "\x1f\x8b\x08", "# tideline text 1\nnonsense\n",
		"\x0a\xff\xff\xff\xff\x0f" + strings.Repeat("\x00", 34),
	} {
		want := direct(t, "x", []byte(file))
		got := read(t, &s, "x", []byte(file), 3)
		if want.err == nil || got.err == nil || got.err.Error() != want.err.Error() {
			t.Errorf("%.20q: %v, want %v", file, got.err, want.err)
		}
	}
}

// TestCutFilesTellWhatCameBefore: as far as the reader itself gets.
func TestCutFilesTellWhatCameBefore(t *testing.T) {
	var s Session
	opened := 0
	for name, file := range files(t) {
		for _, n := range []int{len(file) / 2, len(file) - 1} {
			want := direct(t, name, file[:n])
			got := read(t, &s, name, file[:n], 5000)
			if (got.err == nil) != (want.err == nil) || got.told != want.told || got.err != nil && got.err.Error() != want.err.Error() {
				t.Errorf("%s cut at %d: %v, want %v", name, n, got.err, want.err)
			}
			if got.err == nil {
				opened++
			}
		}
	}
	if opened < 60 {
		t.Errorf("only %d cut files tell anything", opened)
	}
}

// long is a log of many rows.
func long(rows int) []byte {
	var b bytes.Buffer
	b.WriteString("Thread,Time,Action,Pointer,Size,Stream\n")
	for i := range rows {
		b.WriteString("1,10:00:00:000000,allocate,0x7f00")
		b.WriteString(strings.Repeat("0", 1))
		for d := 0x1000000; d > 0; d >>= 4 {
			b.WriteByte("0123456789abcdef"[i/d%16])
		}
		b.WriteString("00,256,0x0\n")
	}
	return b.Bytes()
}

// TestLongTimelinesComeInPieces: blocks leave as they are made.
func TestLongTimelinesComeInPieces(t *testing.T) {
	var s Session
	r := read(t, &s, "long.csv", long(200_000), 1<<20)
	if r.err != nil || r.events < 400_000 || r.pieces < 3 || r.largest > 2*pieceBytes {
		t.Errorf("%d events in %d pieces of up to %d bytes: %v", r.events, r.pieces, r.largest, r.err)
	}
}

// TestAnotherFileTakesThePlaceOfOne: whatever the first was waiting for.
func TestAnotherFileTakesThePlaceOfOne(t *testing.T) {
	var s Session
	file := long(120_000)
	if s.Work() != Idle {
		t.Error("a session without a file works")
	}
	for _, stop := range []State{Hungry, Known, Full} {
		state := s.Start("first")
		rest := file
		for state != stop || len(rest) == len(file) {
			switch state {
			case Hungry:
				n := min(1<<18, len(rest))
				piece := rest[:n]
				rest = rest[n:]
				state = s.Feed(piece, len(rest) == 0)
			case Told, Failed, Idle:
				t.Fatalf("state %d came before %d", state, stop)
			default:
				state = s.Work()
			}
		}
		r := read(t, &s, "second", []byte("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free.\n"), 10)
		if r.err != nil || !strings.Contains(r.told, "pytorch-oom-message") {
			t.Errorf("after one that was left %d: %v, %s", stop, r.err, r.told)
		}
	}
}

// TestOwnTimelinesPassThrough: text twins and packed files become plain blocks.
func TestOwnTimelinesPassThrough(t *testing.T) {
	var s Session
	twin := "# tideline text 1\n0 device-facts device=0 text=\"kind=gpu\\nname=/GPU:0\\n\"\n0 allocator-facts text=\"kind=bfc\\nname=a\\n\"\n" +
		"10 region-add address=0x100 size=1024 requested=1024\n20 alloc address=0x100 size=256 requested=200 op=x\n30 end cause=done\n"
	for _, file := range [][]byte{[]byte(twin), packed([]byte(twin))} {
		r := read(t, &s, "twin.txt", file, 7)
		if r.err != nil || r.events != 5 || !strings.Contains(r.known, `"own":true`) || !strings.Contains(r.told, `"readings":[]`) {
			t.Errorf("%d events, %v, %s %s", r.events, r.err, r.known, r.told)
		}
	}
}

func FuzzSession(f *testing.F) {
	f.Add([]byte("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00:000000,allocate,0x7f,256,0x0\n"), 7)
	f.Add([]byte("\x80\x02]}(U\x06actionU\x05allocU\x04addrK\x01U\x04sizeK\x02ua."), 1)
	f.Add([]byte("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"), 3)
	var kept bytes.Buffer
	w := timeline.NewWriter(&kept, timeline.Options{})
	if err := errors.Join(w.WriteReadings([]byte(`{"input_kind":"rmm-log","moments":true,"readings":[{"kind":"rmm-log","rows":[["a","b"]],"held":[{"bytes":3}]}]}`)), w.Close()); err != nil {
		f.Fatal(err)
	}
	f.Add(kept.Bytes(), 9)
	f.Fuzz(func(t *testing.T, file []byte, size int) {
		var s Session
		size = 1 + max(0, size)%4096
		r := read(t, &s, "x", file, size)
		in, err := ingest.Open("x", bytes.NewReader(file), ingest.Limits{})
		if err == nil {
			err = in.Emit(new(event.Strings), event.SinkFunc(func(*event.Event) {}))
		}
		if (err == nil) != (r.err == nil) {
			t.Errorf("%v, want %v", r.err, err)
		}
	})
}

var _ io.Writer = writerFunc(nil)
