package blame

import (
	"bytes"
	"strings"
	"testing"

	"tideline/shared/analysis/reading"
	"tideline/shared/golden"
	"tideline/shared/ingest"
	"tideline/shared/ingest/snapshot/synthetic"
)

// read opens a case's input and fills its first reading.
func read(t *testing.T, id, name string) *reading.Reading {
	t.Helper()
	files, _ := golden.Case(t, id)
	in, err := ingest.Open(name, bytes.NewReader(files[name]), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	Fill(in, Options{})
	return in.Readings[0]
}

// TestCases: who holds the memory of what people have; the sums are those that
// the cases are known for.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		id, file, at  string
		bytes         int64
		name, caller  string
		most, unknown int64
		growth        string
	}{
		{
			"24-torch-snapshot-2025-small-model", "snapshot.pickle", "end", 48760832,
			"generate_counterfactuals counterfactuals.py:102", "<module> counterfactuals.py:218", 15728640, 17301504, reading.TooShort,
		},
		{"25-torch-snapshot-2025-llm-full-step", "snapshot.pickle", "end", 54798180864, "step optimizers.py:84", "wrapper optimizer.py:493", 13627238400, 27428229120, reading.KeptWhole},
		{"34-tf-xspace-2020-alexnet-step", "plugins_profile_run_host.xplane.pb", "peak", 1573133568, "gradient_tape/alex_net_3/conv2d_19/Conv2D/Conv2DBackpropInput", "", 386138112, 102457344, reading.TooShort},
		{"35-tf-xspace-2020-resnet-near-limit", "plugins_profile_run_host.xplane.pb.gz", "peak", 0, "model_1/pool1_pad/Pad", "", 553779200, 0, reading.TooShort},
		{"27-rmm-2019-old-columns", "rmm.csv", "peak", 0, "blocks of 22.17 MiB", "", 23246208, 0, reading.TooShort},
		{"37-jax-device-memory-pprof", "memory.prof", "instant", 0, "__call__", "wrapper profiler.py:314", 0, 0, ""},
	} {
		r := read(t, c.id, c.file)
		found := false
		for i := range r.Held {
			h := &r.Held[i]
			sum := h.Unknown + h.MoreBytes
			for k := range h.Holders {
				sum += h.Holders[k].Bytes
			}
			if sum != h.Bytes {
				t.Errorf("%s: %s at the %s: %d in all of %d", c.id, h.Pool, h.At, sum, h.Bytes)
			}
			if h.At != c.at || found {
				continue
			}
			found = true
			x := h.Holders[0]
			if x.Name != c.name || x.Caller != c.caller || c.most != 0 && x.Bytes != c.most || c.bytes != 0 && h.Bytes != c.bytes || c.unknown != 0 && h.Unknown != c.unknown {
				t.Errorf("%s: %d bytes, %d unknown, most by %+v", c.id, h.Bytes, h.Unknown, x)
			}
		}
		if !found {
			t.Errorf("%s: nobody holds anything at the %s", c.id, c.at)
		}
		if verdict := growthOf(r); verdict != c.growth {
			t.Errorf("%s: growth %q, want %q", c.id, verdict, c.growth)
		}
	}
}

func growthOf(r *reading.Reading) string {
	if len(r.Growth) == 0 {
		return ""
	}
	return r.Growth[0].Verdict
}

func TestCopiesOfTheCases(t *testing.T) {
	r := read(t, "34-tf-xspace-2020-alexnet-step", "plugins_profile_run_host.xplane.pb")
	if c := r.Copies; c == nil || c.Longest != "IteratorGetNext" || c.LongestBytes != 100663296 || !c.ToDevice || c.Count != 10 {
		t.Errorf("%+v", c)
	}
	r = read(t, "36-chrome-trace-tf-2020-copies", "trace.json.gz")
	if c := r.Copies; c == nil || c.LongestBytes != 100663296 || c.LongestTime/1000 != 25008 {
		t.Errorf("%+v", c)
	}
}

// TestHeldIsInTheReports: the same in every form.
func TestHeldIsInTheReports(t *testing.T) {
	r := read(t, "24-torch-snapshot-2025-small-model", "snapshot.pickle")
	json := string(r.AppendJSON(nil))
	for _, want := range []string{
		`"held":[{"allocator":"GPU_0_torch","at":"peak"`, `{"name":"d_image counterfactuals.py:42","caller":"forward counterfactuals.py:35","bytes":7864832,"blocks":2,"share":0.0726,"stacks":2}`,
		`"growth":[{"allocator":"GPU_0_torch","verdict":"too_short","repeats":0`, `"copy_time":null`,
	} {
		if !strings.Contains(json, want) {
			t.Errorf("%s is not in %.3000s", want, json)
		}
	}
	var rows []string
	for _, row := range r.Added() {
		rows = append(rows, row.Label+"|"+row.Value)
	}
	if all := strings.Join(rows, "\n"); !strings.HasPrefix(all, "Who holds 103.26 MiB of GPU_0_torch at the peak|15.00 MiB, 15 % in 2 blocks: generate_counterfactuals") {
		t.Error(all)
	}
	if last := r.Open[len(r.Open)-1]; !strings.Contains(last, "4 blocks made while it was recorded") {
		t.Error(last)
	}
	if r.Heading() != "" || r.Headline() != r.Why {
		t.Errorf("a recording is headed %q", r.Headline())
	}
}

func TestFillStopsWhenItIsTold(t *testing.T) {
	in, err := ingest.Open("x", bytes.NewReader(snapshotOf(t, 40_000)), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	Fill(in, Options{Stop: func() bool { asked++; return true }})
	if r := in.Readings[0]; asked != 1 || r.Held != nil || r.Growth != nil {
		t.Errorf("asked %d times: %d held", asked, len(r.Held))
	}
	Fill(in, Options{Stop: func() bool { asked++; return false }})
	if r := in.Readings[0]; asked < 3 || r.Held == nil {
		t.Errorf("asked %d times: %d held", asked, len(r.Held))
	}
}

func snapshotOf(tb testing.TB, requests int) []byte {
	tb.Helper()
	var b bytes.Buffer
	if _, err := synthetic.Write(&b, synthetic.Shape{Requests: requests}); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func BenchmarkSnapshot(b *testing.B) {
	in, err := ingest.Open("x", bytes.NewReader(snapshotOf(b, 100_000)), ingest.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Fill(in, Options{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/event")
}
