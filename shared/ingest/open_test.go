package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
	"tideline/shared/golden"
	"tideline/shared/store"
)

// everyInput are all files of the collection and of the readers' testdata.
func everyInput(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, c := range cases(t) {
		inputs, _ := golden.Case(t, c.ID)
		for name, b := range inputs {
			files[c.ID+"/"+name] = b
		}
	}
	for _, pattern := range []string{"testdata/*", "*/testdata/*"} {
		list, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if b, err := os.ReadFile(f); err == nil && !strings.HasSuffix(f, ".md") && !strings.HasPrefix(f, "pickle/") { // those are no snapshots
				files[f] = b
			}
		}
	}
	return files
}

func packFile(b []byte) []byte {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(b)
	_ = w.Close()
	return z.Bytes()
}

// told is what an input's events come to.
func told(t *testing.T, in *Input) (sum uint64, r *recorder) {
	t.Helper()
	r = newRecorder()
	h := eventhash.New(&r.strs)
	if err := in.Emit(&r.strs, event.SinkFunc(func(e *event.Event) { h.Emit(e); r.Emit(e) })); err != nil {
		t.Fatal(err)
	}
	return h.Sum64(), r
}

// TestOpensEverything: every file opens, tells a timeline that the store takes
// whole, and means the same when it was packed.
func TestOpensEverything(t *testing.T) {
	for name, b := range everyInput(t) {
		in, err := Open(name, bytes.NewReader(b), Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(in.Readings) == 0 || in.Kind == "" {
			t.Errorf("%s is %q with %d readings", name, in.Kind, len(in.Readings))
		}
		sum, rec := told(t, in)
		tl := store.New(&rec.strs)
		tl.Append(rec.events)
		if tl.Skipped() != 0 || !tl.End().Ended {
			t.Errorf("%s: %d events skipped, ended %v", name, tl.Skipped(), tl.End().Ended)
		}
		if again, _ := told(t, in); again != sum {
			t.Errorf("%s tells another timeline the second time", name)
		}
		if in.Zipped {
			continue
		}
		packed, err := Open(name, bytes.NewReader(packFile(b)), Limits{})
		if err != nil || !packed.Zipped || packed.Kind != in.Kind || len(packed.Readings) != len(in.Readings) {
			t.Errorf("%s packed: %+v, %v", name, packed, err)
			continue
		}
		if again, _ := told(t, packed); again != sum {
			t.Errorf("%s packed tells another timeline", name)
		}
	}
}

// TestTellsLogsAsReadLog: the one door and the logs' own reader agree.
func TestTellsLogsAsReadLog(t *testing.T) {
	n := 0
	for name, b := range everyInput(t) {
		rec := newRecorder()
		h, g := eventhash.New(&rec.strs), newGrouping(&rec.strs)
		var events []event.Event
		if _, err := ReadLog(name, bytes.NewReader(b), &rec.strs, event.SinkFunc(func(e *event.Event) { g.Emit(e); events = append(events, *e) })); err != nil {
			continue
		}
		in, err := Open(name, bytes.NewReader(b), Limits{})
		if err != nil || in.Text == nil || in.Kind == "xla-oom" || in.Kind == "text" {
			continue
		}
		n++
		both := event.SinkFunc(func(e *event.Event) { h.Emit(e); rec.Emit(e) })
		if g.pass(both); in.Text.past.mem == nil {
			g.sink, g.of = both, nil // only memory logs name the ops of a history
		}
		for i := range events {
			g.Emit(&events[i])
		}
		sum, got := told(t, in)
		if sum != h.Sum64() || got.count(event.OutOfMemory) != rec.count(event.OutOfMemory) || got.count(event.Sample) != rec.count(event.Sample) {
			t.Errorf("%s (%s): %d events, want %d", name, in.Kind, len(got.events), len(rec.events))
		}
		if err := got.judge.Err(); err != nil && rec.judge.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n < 8 {
		t.Errorf("only %d logs were compared", n)
	}
}

// TestPiecesArePastedTogether: each piece of a text is told, on a device of its own.
func TestPiecesArePastedTogether(t *testing.T) {
	var all []byte
	var want int
	for _, f := range []string{"rmm-27-rmm.txt", "torch-16-input.txt", "memory-33-input.txt", "smi-29-smi.txt", "ort-13-input.txt"} {
		b, err := os.ReadFile(filepath.Join("testdata", f))
		if err != nil {
			t.Fatal(err)
		}
		in, err := Open(f, bytes.NewReader(b), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		want += len(in.Readings)
		all = append(append(all, b...), '\n')
	}
	in, err := Open("pasted", bytes.NewReader(all), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if in.Kind != "text" || len(in.Readings) != want {
		t.Errorf("%s with %d readings, want text with %d", in.Kind, len(in.Readings), want)
	}
	_, rec := told(t, in)
	devices := map[event.DeviceID]bool{}
	last := int64(0)
	for i := range rec.events {
		e := &rec.events[i]
		if e.Kind == event.DeviceFacts {
			if devices[e.Device] {
				t.Errorf("device %d is told twice", e.Device)
			}
			devices[e.Device] = true
		}
		if e.Time < last {
			t.Errorf("event %d runs backwards", i)
		}
		last = e.Time
	}
	if len(devices) < 5 || rec.count(event.End) != 1 || rec.events[len(rec.events)-1].Kind != event.End {
		t.Errorf("%d devices, %d ends", len(devices), rec.count(event.End))
	}
	if err := rec.judge.Err(); err != nil {
		t.Error(err)
	}
}

// TestOpensOwnTimelines: a .tideline and its text twin, cut ones too.
func TestOpensOwnTimelines(t *testing.T) {
	b, err := os.ReadFile("testdata/rmm-27-rmm.txt")
	if err != nil {
		t.Fatal(err)
	}
	in, err := Open("rmm", bytes.NewReader(b), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	sum, _ := told(t, in)
	var file, twin bytes.Buffer
	strs := &event.Strings{}
	w, x := timeline.NewWriter(&file, timeline.Options{Strings: strs}), text.NewWriter(&twin, strs)
	if err := in.Emit(strs, event.SinkFunc(func(e *event.Event) { w.Emit(e); x.Emit(e) })); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Close(), x.Flush()); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"file": file.Bytes(), "twin": twin.Bytes(), "packed file": packFile(file.Bytes()), "packed twin": packFile(twin.Bytes()),
	} {
		in, err := Open(name, bytes.NewReader(b), Limits{})
		if err != nil || in.Kind != KindTimeline {
			t.Fatalf("%s: %v", name, err)
		}
		if got, _ := told(t, in); got != sum || in.Cut != "" {
			t.Errorf("%s: other events, or cut: %q", name, in.Cut)
		}
		if err := in.Emit(strs, event.SinkFunc(func(*event.Event) {})); err == nil || !strings.Contains(err.Error(), "told already") {
			t.Errorf("%s again: %v", name, err)
		}
	}
	cut, err := Open("cut", bytes.NewReader(file.Bytes()[:file.Len()/2]), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _ = told(t, cut); !strings.Contains(cut.Cut, "damaged") {
		t.Errorf("cut: %q", cut.Cut)
	}
}

func TestRefusesWithWords(t *testing.T) {
	bomb := packFile(append([]byte("\x80\x02"), bytes.Repeat([]byte("N0"), 1<<21)...))
	for _, c := range []struct{ file, want string }{
		{"", "x is an empty file"},
		{"just a log line", "x is text, but there is no out-of-memory text"},
		{`{"level":"info"}`, "x is JSON, but there is no"},
		{"\x89PNG....", "x is a picture"},
		{"PK\x03\x04aaaa", "x is a ZIP archive"},
		{"\x80\x02cos\nsystem\nU\x02ls\x85R.", "REDUCE on os.system refused"},
		{string(packFile(packFile([]byte("a")))), "compressed twice"},
		{string(bomb), "1048576 bytes"},
		{string(packFile([]byte("\x80\x02cos\nsystem\nU\x02ls\x85R."))), "REDUCE on os.system refused"},
		{"\x1f\x8b\x08", "gzip"},
	} {
		_, err := Open("x", strings.NewReader(c.file), Limits{Unzip: 1 << 20})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.20q: %v, want %q", c.file, err, c.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00:000000,allocate,0x7f,256,0x0\n"))
	f.Add([]byte("# tideline text 1\n0 device-facts device=1 text=\"kind=gpu\\n\"\n"))
	f.Add([]byte("\x89TIDE"))
	f.Add([]byte("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := Open("x", bytes.NewReader(b), Limits{Unzip: 1 << 20})
		if err != nil {
			return
		}
		last := int64(0)
		_ = in.Emit(&event.Strings{}, event.SinkFunc(func(e *event.Event) {
			if in.Kind != KindTimeline && e.Time < last {
				t.Fatalf("time runs backwards: %d after %d", e.Time, last)
			}
			last = e.Time
		}))
	})
}

// TestUnpackedByTheCaller: the limit and its message are those of a packed file.
func TestUnpackedByTheCaller(t *testing.T) {
	file := bytes.Repeat([]byte("no report in this line\n"), 100)
	_, want := Open("x", bytes.NewReader(packFile(file)), Limits{Unzip: 999})
	_, got := OpenUnpacked("x", bytes.NewReader(file), Limits{Unzip: 999})
	if want == nil || got == nil || got.Error() != want.Error() || !strings.Contains(got.Error(), "999 bytes") {
		t.Errorf("%v, want %v", got, want)
	}
}
