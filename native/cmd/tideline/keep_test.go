package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/timeline"
	"tideline/shared/golden"
	"tideline/shared/ingest"
	"tideline/shared/redact"
)

// caseInputs are the files of all cases.
func caseInputs(t *testing.T, each func(name string, b []byte)) {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	if err != nil || len(folders) < 38 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	for _, f := range folders {
		id := filepath.Base(filepath.Dir(f))
		if strings.HasPrefix(id, "25-torch") && testing.Short() {
			continue
		}
		files, _ := golden.Case(t, id)
		for name, b := range files {
			each(filepath.Join(filepath.Dir(f), name), b)
		}
	}
}

// summed hashes what an input tells about memory.
func summed(t *testing.T, in *ingest.Input) (sum, memory, all uint64) {
	t.Helper()
	strs := new(event.Strings)
	h := eventhash.New(strs)
	err := in.Emit(strs, event.SinkFunc(func(e *event.Event) {
		all++
		h.Emit(e)
	}))
	if err != nil {
		t.Fatal(err)
	}
	return h.Sum64(), h.Events(), all
}

// TestReadingsSurviveTheTimeline: what each case means, and what it did to memory,
// is the same when the timeline made of it is opened again; and once more when that
// is converted.
func TestReadingsSurviveTheTimeline(t *testing.T) {
	readings := 0
	caseInputs(t, func(name string, b []byte) {
		in, err := ingest.Open(name, bytes.NewReader(b), ingest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		complete(t.Context(), in, true)
		for i, r := range redact.New().Readings(in.Keep()).List {
			if was := in.Readings[i]; r.Kind != was.Kind || r.Verdict != was.Verdict {
				t.Errorf("%s: redacted it is a %q with %q, was a %q with %q", name, r.Kind, r.Verdict, was.Kind, was.Verdict)
			}
		}
		sum, memory, all := summed(t, in)
		want := string(in.Keep().Append(nil))
		for _, again := range []string{"once", "twice"} {
			var file bytes.Buffer
			if err := writeTimeline(in, &file, block.Options{Deflate: true}, false); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			bytesOf := file.Bytes()
			if in, err = ingest.Open(name, bytes.NewReader(bytesOf), ingest.Limits{}); err != nil {
				t.Fatal(err)
			}
			if s, m, n := summed(t, in); s != sum || m != memory || n != all {
				t.Errorf("%s %s: hash %x of %d of %d events, want %x of %d of %d", name, again, s, m, n, sum, memory, all)
			}
			if in.Saved == nil || in.Cut != "" || len(in.Readings) == 0 {
				t.Fatalf("%s %s: it keeps nothing: %s", name, again, in.Cut)
			}
			if got := string(in.Keep().Append(nil)); got != want {
				t.Errorf("%s %s: keeps\n%s\nwant\n%s", name, again, got, want)
			}
			readings += len(in.Readings)
			in, _ = ingest.Open(name, bytes.NewReader(bytesOf), ingest.Limits{}) // as it is told once
		}
	})
	if readings < 2*38 {
		t.Errorf("%d readings", readings)
	}
}

// TestSavedReadingsAreExplained: explain says that they are the saved ones and of
// what, and says the same as of the input; redacted they are without names.
func TestSavedReadingsAreExplained(t *testing.T) {
	const message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 12.00 GiB of which 9.02 GiB is free. " +
		"Process 4711 has 1.57 GiB memory in use. Of the allocated memory 984.52 MiB is allocated by PyTorch, and 463.48 MiB is reserved by PyTorch but unallocated."
	dir := t.TempDir()
	text, line, red := file(t, "secret.txt", message), filepath.Join(dir, "x.tideline"), filepath.Join(dir, "red.tideline")
	for _, args := range [][]string{{text, line}, {text, red, "--redact"}, {line, filepath.Join(dir, "again.tideline"), "--redact"}} {
		if code, _, stderr := tideline(t, append([]string{"convert"}, args...)...); code != exitDone {
			t.Fatal(stderr)
		}
	}
	_, want, _ := tideline(t, "explain", "--json", text)
	_, got, _ := tideline(t, "explain", "--json", line)
	var a, b map[string]any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal([]byte(got), &b) != nil {
		t.Fatalf("%s\n%s", want, got)
	}
	wants, _ := json.Marshal(a["readings"])
	gots, _ := json.Marshal(b["readings"])
	if len(wants) < 500 || !bytes.Equal(wants, gots) {
		t.Errorf("the timeline says\n%s\nthe message\n%s", gots, wants)
	}
	if s, _ := b["saved"].(map[string]any); s["input_kind"] != "pytorch-oom-message" || b["kind"] != "tideline" || a["saved"] != nil {
		t.Errorf("kind %v, saved %v", b["kind"], b["saved"])
	}
	for _, form := range [][]string{{"explain", line}, {"explain", "--html", "-", line}} {
		_, out, _ := tideline(t, form...)
		flat := strings.Join(strings.Fields(out), " ")
		for _, words := range []string{"Saved readings: this timeline was made of another file (pytorch-oom-message), and keeps what that said.", "The request is larger than the device", "12.00 GiB"} {
			if !strings.Contains(flat, words) {
				t.Errorf("%v does not say %q: %s", form, words, out)
			}
		}
		if strings.Count(flat, "The request is larger than the device") != 1 {
			t.Errorf("%v says it twice: %s", form, out)
		}
	}
	for _, f := range []string{red, filepath.Join(dir, "again.tideline")} {
		events, s := readAll(t, f)
		kept, err := s.Readings()
		if err != nil || len(events) == 0 || !bytes.Contains(kept, []byte("request_exceeds_device")) || bytes.Contains(kept, []byte("4711")) {
			t.Errorf("%s keeps %s, %v", f, kept, err)
		}
	}
	if _, out, _ := tideline(t, "explain", "--json", "--redact", line); strings.Contains(out, "4711") || !strings.Contains(out, `"input_kind": "pytorch-oom-message"`) {
		t.Errorf("explain --redact: %s", out)
	}
}

// TestReadingsAreServed: as the timeline lies there, and packed.
func TestReadingsAreServed(t *testing.T) {
	line := filepath.Join(t.TempDir(), "x.tideline")
	if code, _, stderr := tideline(t, "convert", "../../../examples/files/small-model.pickle", line); code != exitDone {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(line)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"as it is": line, "packed": file(t, "x.tideline.gz", gzipped(b))} {
		src, _, err := openFile(&console{nil, io.Discard, io.Discard}, at)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for i, e := range src.State().Blocks {
			if frame, err := src.Frame(i, nil); err != nil {
				t.Error(err)
			} else if kept, err := block.Payload(frame, block.MaxReadings); e.Kind == block.Readings && err == nil && bytes.Contains(kept, []byte("pytorch-snapshot")) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d blocks of readings are served", name, found)
		}
	}
}

// TestDamagedReadingsAreTold: they cost nothing else.
func TestDamagedReadingsAreTold(t *testing.T) {
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{})
	w.Emit(&event.Event{Kind: event.End, Step: event.NoStep})
	if err := w.WriteReadings([]byte("no JSON")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "x.tideline")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := tideline(t, "explain", name); code != exitDone || !strings.Contains(out, "the file is damaged: the saved readings") {
		t.Errorf("%d: %s", code, out)
	}
	code, _, stderr := tideline(t, "convert", name, filepath.Join(t.TempDir(), "y.tideline"))
	if code != exitDone || !strings.Contains(stderr, "the file is damaged: the saved readings") {
		t.Errorf("%d: %s", code, stderr)
	}
}
