package explain

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/golden"
	"tideline/shared/ingest"
)

var update = flag.Bool("update", false, "write the reports that the tests compare with")

const copies = "../../shared/analysis/testdata/cases"

func explain(t *testing.T, name string, text []byte, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Explain(name, bytes.NewReader(text), &out, o); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out.String()
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReports holds the terminal reports of the copied cases, so that a change
// of wording is seen as a change of what people read.
func TestReports(t *testing.T) {
	inputs, _ := filepath.Glob(filepath.Join(copies, "*", "input.log"))
	if len(inputs) < 3 {
		t.Fatalf("%d inputs in %s", len(inputs), copies)
	}
	for _, in := range inputs {
		id := filepath.Base(filepath.Dir(in))
		got := explain(t, "input.log", read(t, in), Options{})
		want := filepath.Join("testdata", id+".txt")
		if *update {
			if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if w := string(read(t, want)); got != w {
			t.Errorf("%s: report is\n%s\nwant\n%s", id, got, w)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if n := len([]rune(line)); n > 80 && !strings.Contains(line, "  asked for") && !strings.Contains(line, "  limit") {
				t.Errorf("%s: line of %d columns: %s", id, n, line)
			}
		}
	}
}

// TestTheGuideShowsWhatIsPrinted keeps the example in the guide true.
func TestTheGuideShowsWhatIsPrinted(t *testing.T) {
	guide := string(read(t, "../../docs/guide/out-of-memory.md"))
	for line := range strings.SplitSeq(string(read(t, "testdata/05-tf-bfc-2023-cifar-fragmented.txt")), "\n") {
		if !strings.Contains(guide, strings.TrimRight("    "+line, " ")+"\n") {
			t.Errorf("the guide lacks the line %q", line)
		}
	}
}

// TestJSONOfCases compares the JSON of every case of the kind with its
// expected object, every field but the prose.
func TestJSONOfCases(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	n := 0
	for _, f := range files {
		var c struct {
			ID, Kind string
			Inputs   []string
			Expected map[string]any
		}
		if err := json.Unmarshal(read(t, f), &c); err != nil {
			t.Fatal(err)
		}
		if c.Kind != "tf-bfc-oom" {
			continue
		}
		n++
		out := explain(t, c.ID, read(t, filepath.Join(filepath.Dir(f), c.Inputs[0])), Options{JSON: true})
		var got struct {
			Kind     string
			Failures []map[string]any
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%s: %v in\n%s", c.ID, err, out)
		}
		if got.Kind != c.Kind || len(got.Failures) != 1 {
			t.Errorf("%s: kind %q, %d failures", c.ID, got.Kind, len(got.Failures))
			continue
		}
		for name, want := range c.Expected {
			v, there := got.Failures[0][name]
			if !there || name != "format_variant" && !reflect.DeepEqual(v, want) {
				t.Errorf("%s: %s is %v, want %v", c.ID, name, v, want)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d cases", n)
	}
}

// TestTimelineFile: a log turned into a timeline file is explained with the
// same verdict and the same numbers.
func TestTimelineFile(t *testing.T) {
	text := read(t, filepath.Join(copies, "05-tf-bfc-2023-cifar-fragmented", "input.log"))
	var file bytes.Buffer
	var strs event.Strings
	w := timeline.NewWriter(&file, timeline.Options{Strings: &strs})
	if _, err := ingest.ReadLog("input.log", bytes.NewReader(text), &strs, w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := explain(t, "x.tideline", file.Bytes(), Options{})
	for _, want := range []string{
		"ended: out of memory", "Fragmented:", "largest hole    532.88 MiB  at 7f1cfb4cd500, 53.06 MiB too small", "80.8 %",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the report lacks %q:\n%s", want, got)
		}
	}
	cut := file.Bytes()[:file.Len()*2/3]
	if got := explain(t, "cut.tideline", cut, Options{}); !strings.Contains(got, "cut off before its end") && !strings.Contains(got, "damaged") {
		t.Errorf("nothing says that the file is cut:\n%s", got)
	}
}

// growing is a run that fills a pool with blocks of which every other goes
// away, until a request finds enough bytes and no place.
func growing(strs *event.Strings, emit func(*event.Event)) {
	const mib = 1 << 20
	facts := event.Fields{{Key: "name", Value: "/device:GPU:0"}, {Key: "kind", Value: "gpu"}, {Key: "total", Value: "1073741824"}}
	e := func(x event.Event) { emit(&x) }
	e(event.Event{Kind: event.DeviceFacts, Text: strs.ID(facts.Encode()), Step: event.NoStep})
	e(event.Event{Kind: event.AllocatorFacts, Size: 64 * mib, Text: strs.ID("name=GPU_0_bfc\ngrowth=false\n"), Step: event.NoStep})
	e(event.Event{Kind: event.RegionAdd, Address: 1 << 32, Size: 64 * mib, Requested: 64 * mib, Step: event.NoStep})
	region := event.Region{Address: 1 << 32, Size: 64 * mib}
	e(event.Event{Kind: event.StepBegin, Time: 1000, Step: 0, Size: 8})
	for i := range uint64(8) {
		c := event.Activation
		if i%2 == 0 {
			c = event.Parameter
		}
		e(event.Event{Kind: event.Alloc, Time: 1000 + int64(i), Address: 1<<32 + i*8*mib, Size: 8 * mib, Requested: 8*mib - 100, Op: strs.ID("dense/MatMul"), Category: c})
		region.Chunks = append(region.Chunks, event.Chunk{Address: 1<<32 + i*8*mib, Size: 8 * mib, Requested: 8*mib - 100, InUse: i%2 == 0})
	}
	for i := uint64(1); i < 8; i += 2 {
		e(event.Event{Kind: event.Free, Time: 2000, Address: 1<<32 + i*8*mib, Size: 8 * mib})
	}
	e(event.Event{Kind: event.TransferBegin, Time: 2100, Size: 4096, ID: 1, Cause: uint8(event.CauseInput)})
	e(event.Event{Kind: event.TransferEnd, Time: 2200, Size: 4096, ID: 1, Cause: uint8(event.CauseInput)})
	e(event.Event{Kind: event.StallBegin, Time: 2300, ID: 4})
	e(event.Event{Kind: event.StallEnd, Time: 5300, ID: 4})
	e(event.Event{Kind: event.StepEnd, Time: 6000, Step: 0})
	e(event.Event{
		Kind: event.OutOfMemory, Time: 7000, Size: 16 * mib, Requested: 16*mib - 5, Op: strs.ID("dense/MatMul_grad"), Step: 1,
		Cause: uint8(event.OOMFragmented), Text: strs.ID(event.ChunkMap{region}.Encode()),
	})
	e(event.Event{Kind: event.End, Time: 7001, Cause: uint8(event.EndOutOfMemory), Step: event.NoStep})
}

func TestFromEvents(t *testing.T) {
	var strs event.Strings
	var events []event.Event
	growing(&strs, func(e *event.Event) { events = append(events, *e) })
	seq := func(yield func(*event.Event) bool) {
		for i := range events {
			if !yield(&events[i]) {
				return
			}
		}
	}
	var out bytes.Buffer
	if err := FromEvents("run", seq, &strs, &out, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"run: 1 step in 7µs", "ended: out of memory", "peak in use 64.00 MiB", "transfers, input: 1, 4.00 KiB", "waiting for input: 1×, 3µs",
		"step 2 (1 done): GPU_0_bfc ran out of memory", "Fragmented: 32.00 MiB are free and 16.00 MiB were asked for",
		"largest hole      8.00 MiB", "32.00 MiB  parameter (4 blocks)", "dense/MatMul (4 blocks)", "by op dense/MatMul_grad",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := FromEvents("run", seq, &strs, &out, Options{JSON: true}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Run struct {
			Steps      int
			Allocators []map[string]any
		}
		Failures []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(got.Failures) != 1 || got.Failures[0]["verdict"] != "fragmented" || got.Failures[0]["kind"] != "holes" ||
		got.Failures[0]["fragmentation"] != 0.75 || got.Run.Steps != 1 || got.Run.Allocators[0]["peak_in_use_bytes"] != 67108864.0 {
		t.Errorf("%s", out.String())
	}
}

func TestGzip(t *testing.T) {
	text := read(t, filepath.Join(copies, "07-tf-bfc-2021-limit-55-mb", "input.log"))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(text)
	w.Close()
	if got, want := explain(t, "a", z.Bytes(), Options{}), explain(t, "a", text, Options{}); got != want {
		t.Errorf("compressed:\n%s\nplain:\n%s", got, want)
	}
	var twice bytes.Buffer
	w = gzip.NewWriter(&twice)
	w.Write(z.Bytes())
	w.Close()
	if err := Explain("a", &twice, &z, Options{}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("compressed twice: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"empty":      {"", "an empty file"},
		"binary":     {"\x00\x01\x02\x03\x04", "binary data"},
		"json":       {`{"a": 1}`, "JSON, but there is no out-of-memory text"},
		"zip":        {"PK\x03\x04abc", "ZIP archive"},
		"other text": {"Epoch 1/10\nloss 0.1\n", "text, but there is no out-of-memory text"},
		"picture":    {"\x89PNG\r\n\x1a\n", "a picture"},
	} {
		var out bytes.Buffer
		err := Explain(name, strings.NewReader(c.text), &out, Options{})
		var u *ingest.UnsupportedError
		if !errors.As(err, &u) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "Tideline opens .tideline files; logs") {
			t.Errorf("%s: %v", name, err)
		}
		if out.Len() > 0 {
			t.Errorf("%s: wrote %q", name, out.String())
		}
	}
}

func TestAFullPoolGetsNoAllocatorSetting(t *testing.T) {
	text := read(t, filepath.Join(golden.Cases(t), "01-tf-bfc-2017-alexnet-small-limit", "input.log"))
	got := explain(t, "a", text, Options{})
	for _, never := range []string{"cuda_malloc_async", "TF_GPU_ALLOCATOR", "growth"} {
		if strings.Contains(got, never) {
			t.Errorf("advises %s for a full pool:\n%s", never, got)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(got), " "), "first dimension of 114 instead of 128") {
		t.Errorf("no fitting batch is named:\n%s", got)
	}
}

// failing is a writer that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestWriteErrorsAreTold(t *testing.T) {
	text := read(t, filepath.Join(copies, "07-tf-bfc-2021-limit-55-mb", "input.log"))
	if err := Explain("a", bytes.NewReader(text), failing{}, Options{}); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("%v", err)
	}
}

// TestNothingKnownIsNoRow: an amount that the text lacks has no row.
func TestNothingKnownIsNoRow(t *testing.T) {
	got := explain(t, "x", []byte("ResourceExhaustedError: OOM when allocating tensor with shape[8,4] and type float on /device:GPU:0 by allocator GPU_0_bfc\n"), Options{})
	if strings.Contains(got, "  limit") || !strings.Contains(got, "  device         /device:GPU:0\n") || !strings.Contains(got, "What to do") {
		t.Errorf("the report is\n%s", got)
	}
}
