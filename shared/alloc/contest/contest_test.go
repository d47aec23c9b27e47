package contest_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/golden"
)

func entry(tb testing.TB, name string, settings ...string) contest.Entry {
	tb.Helper()
	k, err := kinds.ByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	e := contest.Entry{Kind: k}
	for _, s := range settings {
		x, err := kinds.ParseSetting(s)
		if err != nil {
			tb.Fatal(err)
		}
		e.Settings = append(e.Settings, x)
	}
	return e
}

func parse(tb testing.TB, text string) *contest.Trace {
	tb.Helper()
	x, err := contest.FromTrace(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// judged replays under a judge and fails on the first thing that cannot be.
func judged(t *testing.T, x *contest.Trace, e contest.Entry, o contest.Options) contest.Result {
	t.Helper()
	rules := check.Rules{Granule: 64, Limit: x.Limit}
	if e.Kind.Name == "async" || e.Kind.Name == "torch" {
		rules.Page = 2 << 20
	}
	if e.Kind.Name == "ort" {
		rules.SizeGranule = 1
	}
	j := check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return rules }, nil)
	o.Sink = j
	r := x.Run(e, o)
	if err := j.Err(); err != nil {
		t.Fatalf("%s: %v", e.Title(), err)
	}
	if r.Err != nil {
		return r
	}
	pool, inUse, peak, blocks := j.Totals(0, 0)
	if pool != 0 || inUse != 0 || blocks != 0 || peak != r.PeakInUse {
		t.Errorf("%s: after the end %d bytes are held, %d in use; the peak was %d, and %d is told", e.Title(), pool, inUse, peak, r.PeakInUse)
	}
	if r.PeakReserved < r.PeakInUse || r.PeakInUse < r.Requested || r.External < 0 || r.External > 1 || r.Internal() < 0 {
		t.Errorf("%s: %+v", e.Title(), r)
	}
	if r.OutOfMemory == 0 && r.Requested != 0 && r.PeakInUse < x.Floor {
		t.Errorf("%s: the peak of %d is below what was wanted at once, %d", e.Title(), r.PeakInUse, x.Floor)
	}
	return r
}

func load(tb testing.TB, name string) *contest.Trace {
	tb.Helper()
	f, err := os.ReadFile(filepath.Join(golden.Dir(tb, "bfc"), name+".trace.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(f))
	if err != nil {
		tb.Fatal(err)
	}
	x, err := contest.FromTrace(z)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func TestEveryAllocatorReplaysRecordedTraces(t *testing.T) {
	for _, name := range []string{"dnn-cnn", "dnn-cnn-oom", "nlp-varlen", "inference", "loguniform-1gib", "growth-ladder", "oom-fragmented"} {
		x := load(t, name)
		for _, e := range contest.Matrix() {
			r := judged(t, x, e, contest.Options{})
			if r.Err != nil {
				t.Errorf("%s, %s: %v", name, e.Title(), r.Err)
			}
			if r.Err == nil && testing.Verbose() {
				t.Logf("%-14s %-38s in use %12d reserved %12d util %.3f ext %.3f oom %d calls %d", name, e.Title(), r.PeakInUse, r.PeakReserved, r.Utilisation(), r.External, r.OutOfMemory, r.DriverCalls)
			}
		}
	}
}

func TestEveryAllocatorReplaysARunsEvents(t *testing.T) {
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	synthetic.Generate(synthetic.Options{Events: 30000, Seed: 3, Dynamic: true}, &strs, rec)
	traces := rec.Traces()
	if len(traces) == 0 {
		t.Fatal("no allocator was heard of")
	}
	for _, x := range traces {
		for _, e := range contest.Matrix() {
			r := judged(t, x, e, contest.Options{Unlimited: x.Limit == 0})
			if r.Err != nil && x.Limit > 0 {
				t.Errorf("%s, %s: %v", x.Name, e.Title(), r.Err)
			}
		}
	}
}

// A recorded run replayed through its own allocator is that run.
func TestAReplayThroughTheSameAllocatorIsTheRun(t *testing.T) {
	x := load(t, "dnn-cnn")
	e := entry(t, "bfc")
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	first := x.Run(e, contest.Options{Sink: rec})
	again := rec.Traces()[0]
	if again.Floor != x.Floor || again.Allocs != x.Allocs {
		t.Errorf("floor %d, %d allocations; recorded anew %d, %d", x.Floor, x.Allocs, again.Floor, again.Allocs)
	}
	if o := again.Original; o.PeakInUse != first.PeakInUse || o.PeakReserved != first.PeakReserved || o.OutOfMemory != first.OutOfMemory ||
		o.Requested != first.Requested || o.DriverCalls != first.DriverCalls+1 { // and the end's
		t.Errorf("recorded as %+v, was %+v", o, first)
	}
	second := again.Run(e, contest.Options{Limit: x.Limit})
	second.Calls = first.Calls // the recording has the end's frees, too
	if fmt.Sprint(first) != fmt.Sprint(second) {
		t.Errorf("%+v\n%+v", first, second)
	}
}

func TestMeasures(t *testing.T) {
	t.Run("internal waste", func(t *testing.T) { // the specification's 1,000 requests of 257 bytes
		var b strings.Builder
		b.WriteString("bfc-trace 1\no limit 4194304\n")
		for i := range 1000 {
			fmt.Fprintf(&b, "a %d 257\n", i)
		}
		x := parse(t, b.String())
		for _, name := range []string{"bfc", "torch"} {
			r := judged(t, x, entry(t, name), contest.Options{Limit: 4 << 20})
			if r.PeakInUse != 512000 || r.Requested != 257000 || r.Internal() != 255.0/512 {
				t.Errorf("%s: %+v", name, r)
			}
		}
	})
	t.Run("external fragmentation", func(t *testing.T) { // 50 holes of 2 MiB
		var b strings.Builder
		b.WriteString("bfc-trace 1\no limit 209715200\n")
		for i := range 100 {
			fmt.Fprintf(&b, "a %d 2097152\n", i)
		}
		for i := 0; i < 100; i += 2 {
			fmt.Fprintf(&b, "f %d\n", i)
		}
		b.WriteString("a 200 3145728\n")
		x := parse(t, b.String())
		if r := judged(t, x, entry(t, "bfc"), contest.Options{}); r.OutOfMemory != 1 || r.FirstBytes != 3<<20 || r.FirstFailed != 151 || r.Missing != 3<<20 {
			t.Errorf("bfc: %+v", r)
		}
		if r := judged(t, x, entry(t, "async"), contest.Options{}); r.OutOfMemory != 0 {
			t.Errorf("async puts pages together: %+v", r)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		r := judged(t, parse(t, "bfc-trace 1\no limit 1048576\n"), entry(t, "bfc"), contest.Options{})
		if r.Utilisation() != 1 || r.Fragmentation() != 0 || r.External != 0 || r.Internal() != 0 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("growth rounding", func(t *testing.T) { // case 13
		x := parse(t, "bfc-trace 1\no limit 1073741824\na 0 160000\na 1 19888128\n")
		if r := judged(t, x, entry(t, "ort"), contest.Options{}); r.PeakReserved != 34603008 || r.Cost(x) != 34603008-20048128 {
			t.Errorf("doubling: %+v", r)
		}
		if r := judged(t, x, entry(t, "ort", "arena_extend_strategy=same_as_requested"), contest.Options{}); r.PeakReserved != 20048128 || r.DriverCalls != 2 {
			t.Errorf("same as requested: %+v", r)
		}
	})
	t.Run("driver calls", func(t *testing.T) {
		x := parse(t, "bfc-trace 1\no limit 1048576\na 0 1000\nf 0\na 1 1000\nf 1\n")
		if r := judged(t, x, entry(t, "direct"), contest.Options{}); r.DriverCalls != 4 || r.PeakReserved != 1024 || r.Reserved != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// What failed in the original is asked of the others, and leaves no trace.
func TestAFailureOfTheOriginalIsTriedElsewhere(t *testing.T) {
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	for _, e := range []event.Event{
		{Kind: event.AllocatorFacts, Size: 1 << 20, Text: strs.ID(event.Fields{{Key: "name", Value: "GPU_0_bfc"}, {Key: "kind", Value: "bfc"}}.Encode())},
		{Kind: event.Alloc, Address: 4096, Size: 1024, Requested: 1000, Category: event.Parameter},
		{Kind: event.OutOfMemory, Size: 1 << 19, Requested: 1 << 19},
		{Kind: event.StepEnd},
		{Kind: event.Free, Address: 4096, Size: 1024},
		{Kind: event.Free, Address: 8192, Size: 1024}, // from before the recording
	} {
		rec.Emit(&e)
	}
	x := rec.Traces()[0]
	if x.Name != "GPU_0_bfc" || x.Kind != "bfc" || x.Limit != 1<<20 || x.OutOfMem != 1 || x.Len() != 4 || x.Slots != 2 {
		t.Fatalf("%+v", x)
	}
	r := judged(t, x, entry(t, "ort", "use_device_allocator_for_initializers=true", "enable_memory_arena_shrinkage=true"), contest.Options{})
	if r.OutOfMemory != 0 || r.PeakReserved != 1000+1<<20-256-768 && r.PeakReserved < 1<<19 || r.Requested != 1000+1<<19 {
		t.Errorf("%+v", r)
	}
}

// What one stream freed serves another after a wait, and the wait is an event.
func TestAWaitIsAnEvent(t *testing.T) {
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	for _, e := range []event.Event{
		{Kind: event.AllocatorFacts, Size: 4 << 20},
		{Kind: event.Alloc, Address: 1 << 20, Size: 3 << 20, Requested: 3 << 20, Stream: event.StreamH2D},
		{Kind: event.Free, Address: 1 << 20, Size: 3 << 20, Stream: event.StreamH2D},
		{Kind: event.Alloc, Address: 1 << 20, Size: 3 << 20, Requested: 3 << 20, Stream: event.StreamCompute},
	} {
		rec.Emit(&e)
	}
	for name, want := range map[string]string{
		"rmm-pool":  "stream 0 waits for what stream 1 freed",
		"async":     "stream 0 waits for what stream 1 freed",
		"rmm-arena": "the host waits for stream 1 to free a block elsewhere",
	} {
		var told []string
		sink := event.SinkFunc(func(e *event.Event) {
			if e.Kind == event.Log {
				told = append(told, strs.At(e.Text))
			}
		})
		r := rec.Traces()[0].Run(entry(t, name), contest.Options{Limit: 8 << 20, Sink: sink, Strings: &strs})
		found := false
		for _, text := range told {
			found = found || text == want
		}
		if !found || int64(len(told)) < r.Waits+r.Syncs || r.OutOfMemory > 0 {
			t.Errorf("%s: %q, %d waits and %d synchronisations, want %q", name, told, r.Waits, r.Syncs, want)
		}
	}
}

func TestAnAllocatorThatCannotBeMadeIsARow(t *testing.T) {
	x := parse(t, "bfc-trace 1\no limit 1048576\na 0 1000\n")
	rows := x.Compare(contest.Matrix(), contest.Options{Unlimited: true})
	bad := 0
	for _, r := range rows {
		if r.Err != nil {
			bad++
		} else if r.PeakInUse < 1000 {
			t.Errorf("%s: %+v", r.Title(), r)
		}
	}
	if len(rows) != len(contest.Matrix()) || bad == 0 || bad > 3 {
		t.Errorf("%d rows, %d of them not made", len(rows), bad)
	}
}

func TestReadErrorsNameTheLine(t *testing.T) {
	if _, err := contest.FromTrace(strings.NewReader("bfc-trace 1\no limit 5\nx\n")); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Error(err)
	}
	if _, err := contest.FromTrace(io.LimitReader(strings.NewReader(""), 0)); err == nil {
		t.Error("nothing was taken for a trace")
	}
}

func BenchmarkReplay(b *testing.B) {
	x := load(b, "dnn-cnn")
	for _, e := range contest.Matrix() {
		b.Run(e.Title(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.Run(e, contest.Options{})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(x.Len()), "ns/call")
		})
	}
}
