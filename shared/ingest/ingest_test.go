package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/check"
	"tideline/shared/analysis"
	"tideline/shared/golden"
)

// recorder keeps a run's events and has them judged by the allocator's rules.
type recorder struct {
	strs   event.Strings
	events []event.Event
	judge  *check.Judge
}

func newRecorder() *recorder {
	r := &recorder{}
	r.judge = check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return check.Rules{} }, &r.strs)
	return r
}

func (r *recorder) Emit(e *event.Event) {
	r.events = append(r.events, *e)
	r.judge.Emit(e)
}

func (r *recorder) count(k event.Kind) (n int) {
	for i := range r.events {
		if r.events[i].Kind == k {
			n++
		}
	}
	return n
}

func logs(t *testing.T) []string {
	t.Helper()
	cases, _ := filepath.Glob(filepath.Join(golden.Cases(t), "*tf-bfc*", "input.log"))
	goldens, _ := filepath.Glob(filepath.Join(golden.Dir(t, "bfc"), "*.log*.txt*"))
	if len(cases) < 8 || len(goldens) < 40 {
		t.Fatalf("%d cases, %d golden logs", len(cases), len(goldens))
	}
	return append(cases, goldens...)
}

func open(t *testing.T, path string) io.Reader {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	return bytes.NewReader(b)
}

// TestLogsBecomeSoundTimelines: an independent judge finds nothing wrong with
// the events, and reading the timeline again gives the verdict of the log.
func TestLogsBecomeSoundTimelines(t *testing.T) {
	for _, path := range logs(t) {
		name := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		rec := newRecorder()
		readings, err := ReadLog(name, open(t, path), &rec.strs, rec)
		if err != nil {
			var u *UnsupportedError
			if errors.As(err, &u) && strings.Contains(name, "gc-") {
				continue // collections that helped: no failure in the log
			}
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := rec.judge.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := rec.count(event.OutOfMemory); n != len(readings) {
			t.Errorf("%s: %d failures told, %d read", name, n, len(readings))
		}
		if last := rec.events[len(rec.events)-1]; last.Kind != event.End || rec.events[0].Kind != event.DeviceFacts {
			t.Errorf("%s: begins with %v and ends with %v", name, rec.events[0].Kind, last.Kind)
		}
		checkAgain(t, name, rec, readings)
	}
}

// checkAgain reads the timeline that came of a log.
func checkAgain(t *testing.T, name string, rec *recorder, readings []*analysis.Reading) {
	t.Helper()
	tl := analysis.NewTimeline(&rec.strs)
	for i := range rec.events {
		tl.Emit(&rec.events[i])
	}
	sum := tl.Summary()
	for i, f := range sum.Failures {
		want := readings[i]
		if f.Problem != "" {
			t.Errorf("%s: %s", name, f.Problem)
			continue
		}
		got := f.Reading
		if got.InUse != want.InUse || got.Pool != want.Pool || got.LargestFree != want.LargestFree {
			t.Errorf("%s, failure %d: %+v %+v %+v, the log says %+v %+v %+v", name, i,
				got.InUse, got.Pool, got.LargestFree, want.InUse, want.Pool, want.LargestFree)
		}
		if !want.Verdict.Undetermined() && got.Verdict != want.Verdict {
			t.Errorf("%s, failure %d: %s, the log says %s", name, i, got.Verdict, want.Verdict)
		}
	}
}

func TestNoChunkIsInvented(t *testing.T) {
	rec := newRecorder()
	readings, err := ReadLog("05", open(t, filepath.Join("..", "analysis", "testdata", "cases", "05-tf-bfc-2023-cifar-fragmented", "input.log")), &rec.strs, rec)
	if err != nil {
		t.Fatal(err)
	}
	if n := rec.count(event.Alloc); int64(n) != readings[0].ListedUsed.N {
		t.Errorf("%d allocations for %d listed chunks in use", n, readings[0].ListedUsed.N)
	}
	cut, unlisted := false, false
	for _, e := range rec.events {
		text := rec.strs.At(e.Text)
		cut = cut || e.Kind == event.Log && e.Flags&event.Warning != 0 && strings.Contains(text, "cut")
		unlisted = unlisted || e.Kind == event.Annotation && strings.Contains(text, "not in the chunk list")
	}
	if !cut || !unlisted {
		t.Errorf("the cut is not marked: %v, %v", cut, unlisted)
	}
}

func TestRecognise(t *testing.T) {
	for head, want := range map[string]Kind{
		"": Empty, "\x89TIDE\r\n\x1a": Timeline, "# tideline text 1\n": TimelineText,
		"\x1f\x8b\x08\x00": GZip, "PK\x03\x04": ZIP, "\x80\x04\x95": Pickle, "{\"a\": 1}": JSON, "[{\"a\": 1}]": JSON,
		" [1, 2]": Log, "[1,0]<stderr>:2023 W": Log, "\x7fELF\x02": Executable, "\x89PNG\r\n": PNG,
		"\x00\x01\x02\x03": Binary, "2017-06-20 20:25:42.825757: W tensorflow": Log, "\xff\xfea\x00b\x00": Log, "\xfe\xff\x00a\x00b": Log,
		"\ufeffhello": Log, "MZ is a German magazine": Log, "MZ\x90\x00": Executable, "%PDF-1.4": PDF,
		"\x0a\x10/device:GPU:0\x00": XSpace, "100% 12/12 \x1b[1m\r": Log, "{": JSON,
		"\xff\xd8\xff\xe0": JPEG, "\x93NUMPY\x01\x00": NumPy, "\x89HDF\r\n\x1a\n": HDF5, "PAR1\x15": Parquet, "GGUF\x03\x00": GGUF,
		"\x3c\x00\x00\x00\x00\x00\x00\x00{\"w\":{}}": SafeTensors, "\x08\x08\x12\x07pytorch\x1a\x05\x00": ONNX,
		"SQLite format 3\x00\x10": SQLite, "\x28\xb5\x2f\xfd\x04\x00": Packed, "a.txt" + strings.Repeat("\x00", 252) + "ustar\x00": Tar,
	} {
		if got := Recognise([]byte(head)); got != want {
			t.Errorf("%q is %v, want %v", head, got, want)
		}
	}
}

func TestRefusalsSayWhatCameAndWhatWasExpected(t *testing.T) {
	rec := newRecorder()
	_, err := ReadLog("train.log", strings.NewReader("Epoch 1/10\nloss: 0.3\n"), &rec.strs, rec)
	if err == nil || len(rec.events) != 0 {
		t.Fatalf("%v, %d events", err, len(rec.events))
	}
	for _, want := range []string{"train.log is text", "no out-of-memory text", ". Tideline opens .tideline files; logs", "docs/guide."} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func FuzzReadLog(f *testing.F) {
	f.Add([]byte("I Next region of size 512\nI InUse at 100 of size 256 next 1\nI Free  at 200 of size 256 next 18446744073709551615\nStats:\nInUse: 256\n"))
	f.Add([]byte("Chunk at 0x100 of size 512\nFree at 0x200 of size 256\nChunk at 0x180 of size 512\nStats:\nLimit: 1024\nInUse: 1024\nW *_\nChunk at 0x100 of size 512\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rec := newRecorder()
		if _, err := ReadLog("fuzz", bytes.NewReader(text), &rec.strs, rec); err != nil {
			return
		}
		if err := rec.judge.Err(); err != nil {
			t.Fatal(err)
		}
	})
}
