package chrometrace

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"tideline/shared/golden"
	"tideline/shared/ingest/unzip"
)

func TestTheRealTensorFlowTrace(t *testing.T) {
	inputs, description := golden.Case(t, "36-chrome-trace-tf-2020-copies")
	for _, b := range inputs {
		tr, err := Read(bytes.NewReader(b), 0)
		if err != nil {
			t.Fatal(err)
		}
		r := tr.Reading()
		golden.CheckCase(t, description, r.AppendJSON(nil))
	}
}

// kineto is a small trace in the layout of PyTorch's profiler.
const kineto = `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "totalGlobalMem": 100}],
"traceEvents": [
 {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "args": {"name": "python"}},
 {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 7, "tid": 7, "ts": 1738780410636311.250, "dur": 5, "args": {"bytes": 99}},
 {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 1738780410636312.125, "dur": 2,
  "args": {"External id": 12, "device": 0, "bytes": 4000, "memory bandwidth (GB/s)": 2.0}},
 {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "pid": 0, "tid": "stream 7", "ts": "20", "dur": "1", "args": {"bytes": "4000"}},
 {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 30,
  "args": {"Total Reserved": 2097152, "Total Allocated": 512, "Bytes": 512, "Addr": 140000000000000, "Device Id": 0, "Device Type": 1, "Ev Idx": 3}},
 {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 31,
  "args": {"Total Reserved": 2097152, "Total Allocated": 0, "Bytes": -512, "Addr": 140000000000000, "Device Id": 0, "Device Type": 1}},
 {"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 32, "args": {"Bytes": 64, "Addr": 5, "Device Id": -1, "Device Type": 0}},
 {"ph": "i", "s": "t", "name": "[memory]", "pid": 7, "tid": 7, "ts": 33, "args": {"Bytes": -9, "Addr": 6, "Device Id": -1, "Device Type": 0}},
 {"ph": "C", "name": "GPU memory", "pid": 7, "ts": 34, "args": {"used": 12.5, "note": "x"}}
]}`

func TestPyTorchTrace(t *testing.T) {
	tr, err := Read(strings.NewReader(kineto), 0)
	if err != nil {
		t.Fatal(err)
	}
	if tr.Flavour != PyTorch || len(tr.Copies) != 2 || len(tr.Memory) != 4 || len(tr.Counters) != 1 || tr.Events != 10 {
		t.Fatalf("%v, %d copies, %d memory, %d counters, %d events", tr.Flavour, len(tr.Copies), len(tr.Memory), len(tr.Counters), tr.Events)
	}
	if c := tr.Copies[0]; c.Start != 1738780410636312125 || c.Duration != 2000 || c.Bytes != 4000 || !c.Device {
		t.Errorf("%+v", c)
	}
	if c := tr.Copies[1]; c.Start != 20000 || c.Bytes != 4000 {
		t.Errorf("%+v", c)
	}
	d := tr.Devices()
	want := []Device{
		{Type: 1, Allocations: 1, Frees: 1, Allocated: 512, Freed: 512, Peak: 512, PeakReserved: 2097152, First: 512, LargestBytes: 512},
		{ID: -1, Allocations: 1, Frees: 1, Allocated: 64, Freed: 9, Peak: -1, PeakReserved: -1, First: -1, Last: -1, LargestBytes: 64, Live: 1, LiveBytes: 64, UnmatchedFree: 1},
	}
	if len(d) != 2 || d[0] != want[0] || d[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", d, want)
	}
	r := tr.Reading()
	var m map[string]any
	if err := json.Unmarshal(r.AppendJSON(nil), &m); err != nil {
		t.Fatal(err)
	}
	if m["h2d_gb_s"] != 2.667 || m["host_side_duplicate_events"] != 0.0 {
		t.Errorf("%v %v", m["h2d_gb_s"], m["host_side_duplicate_events"])
	}
}

// On ROCm the copies have names of their own; the row's name ends in a blank.
func TestCopiesOnROCm(t *testing.T) {
	s := strings.ReplaceAll(kineto, "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice")
	s = strings.ReplaceAll(s, "Memcpy HtoD (Pinned -> Device)", "CopyDeviceToHost")
	tr, err := Read(strings.NewReader(s), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := tr.Reading()
	if v, _ := r.Facts.Get("h2d_gb_s"); string(v.AppendJSON(nil)) != "2" || !strings.HasSuffix(r.Why, " on stream 7.") {
		t.Errorf("%s GB/s to the device; %s", v.AppendJSON(nil), r.Why)
	}
}

// A trace without a copy says what else it tells.
func TestWithoutCopies(t *testing.T) {
	for s, has := range map[string]string{
		`{"traceEvents":[{"ph":"i","name":"[memory]","pid":1,"ts":1,"args":{"Total Reserved":4096,"Total Allocated":2048,"Bytes":2048,"Addr":1,"Device Id":0,"Device Type":1}}]}`: "2.00 KiB are allocated on gpu:0",
		`{"traceEvents":[{"ph":"C","name":"memory","pid":1,"ts":1,"args":{"used":5}}]}`:                                                                                           "has counters (values: 1)",
		`[{"name":"conv2d","ph":"X","ts":1.5,"dur":2.25,"tid":0,"pid":"CPU functions","args":{}}]`:                                                                                "says nothing of memory",
	} {
		tr, err := Read(strings.NewReader(s), 0)
		if err != nil {
			t.Fatal(err)
		}
		if r := tr.Reading(); !strings.Contains(r.Why, has) {
			t.Errorf("%s: %q", s, r.Why)
		}
	}
}

func TestABareArrayAndABrokenEnd(t *testing.T) {
	tr, err := Read(strings.NewReader(`[{"ph":"X","name":"MemcpyH2D","pid":1,"tid":2,"ts":1.0005,"dur":0.001,"args":{"memcpy_details":"size:12 dest:0"}},
		{"ph":"M","name":"process_name","pid":1,"args":{"name":"/device:GPU:0"}}]`), 0)
	if err != nil || len(tr.Copies) != 1 || tr.Copies[0].Bytes != 12 || !tr.Copies[0].Device || tr.Copies[0].Start != 1001 {
		t.Fatalf("%+v, %v", tr, err)
	}
	// Old PyTorch traces can have quotes that nobody escaped.
	begin, _, _ := strings.Cut(kineto, ` {"ph": "C"`)
	tr, err = Read(strings.NewReader(begin+` {"name": "a "quoted" name"}]}`), 0)
	if err == nil || tr == nil || len(tr.Memory) != 4 {
		t.Errorf("%+v, %v", tr, err)
	}
	tr, err = Read(strings.NewReader(begin), 0)
	if err == nil || tr == nil || len(tr.Memory) != 4 {
		t.Errorf("cut: %+v, %v", tr, err)
	}
}

func TestOtherJSONSaysWhatItIs(t *testing.T) {
	for s, want := range map[string]string{
		`{"a":1,"b":[]}`: `["a" "b"]`, `12`: "single value", `[1,2]`: "no objects",
	} {
		_, err := Read(strings.NewReader(s), 0)
		if !errors.Is(err, ErrNoTrace) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestABombStopsAtTheLimit(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte(`{"traceEvents":[`))
	for range 1000 {
		_, _ = w.Write(bytes.Repeat([]byte(" "), 10_000))
	}
	w.Close()
	_, err := Read(&z, 1<<20)
	var e *unzip.LimitError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Error(err)
	}
}

func FuzzTrace(f *testing.F) {
	f.Add([]byte(kineto))
	f.Add([]byte(`[{"ph":"X","name":"MemcpyH2D","args":{"memcpy_details":"size:99999999999999999999"}},{}]`))
	if b, err := os.ReadFile("testdata/cases/36/trace.json.gz"); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		tr, _ := Read(bytes.NewReader(b), 1<<20)
		if tr == nil {
			return
		}
		r := tr.Reading()
		if j := r.AppendJSON(nil); !json.Valid(j) {
			t.Errorf("%s", j)
		}
	})
}

// TestTheKeptCase is for machines that have only the repository.
func TestTheKeptCase(t *testing.T) {
	const dir = "testdata/cases/36/"
	description, err := os.ReadFile(dir + "case.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Read(bytes.NewReader(b), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := x.Reading()
	golden.CheckCase(t, description, r.AppendJSON(nil))
}

func BenchmarkRead(b *testing.B) {
	var file bytes.Buffer
	file.WriteString(`{"schemaVersion":1,"traceEvents":[`)
	inner := kineto[strings.Index(kineto, "\n {\"ph\""):strings.LastIndex(kineto, "]")]
	for i := range 5000 {
		if i > 0 {
			file.WriteByte(',')
		}
		file.WriteString(inner)
	}
	file.WriteString("]}")
	b.SetBytes(int64(file.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(file.Bytes()), 0); err != nil {
			b.Fatal(err)
		}
	}
}
