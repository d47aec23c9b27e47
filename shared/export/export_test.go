package export_test

import (
	"bytes"
	stdcsv "encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/export"
	"tideline/shared/export/chrome"
	"tideline/shared/export/csv"
	"tideline/shared/export/pprof"
	"tideline/shared/ingest"
	"tideline/shared/ingest/chrometrace"
	readpprof "tideline/shared/ingest/pprof"
	"tideline/shared/launch"
	"tideline/shared/plan"
)

// recording is a run's events and what they amount to.
type recording struct {
	strs   *event.Strings
	events []event.Event
	sum    *analysis.Summary
}

func record(t *testing.T, fields ...event.Field) *recording {
	t.Helper()
	f, err := event.ParseFields("model=lenet5\ntrain=on\nbatch=64\nsteps=3\ninput.prefetch=2\ndevices.0.preset=lab-256m\ndevices.0.growth=true\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range fields {
		f.Set(x.Key, x.Value)
	}
	w, problems := api.FromFields(f)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := &recording{strs: new(event.Strings)}
	sums := analysis.NewTimeline(r.strs)
	if _, err := launch.Run(*w, launch.Options{Strings: r.strs, Sink: event.SinkFunc(func(e *event.Event) {
		sums.Emit(e)
		r.events = append(r.events, *e)
	})}); err != nil {
		t.Fatal(err)
	}
	r.sum = sums.Summary()
	return r
}

type closer interface {
	event.Sink
	Close() error
}

func (r *recording) write(t *testing.T, w closer) {
	t.Helper()
	for i := range r.events {
		w.Emit(&r.events[i])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func (r *recording) pool(t *testing.T, name string) *analysis.AllocatorSummary {
	t.Helper()
	for i := range r.sum.Allocators {
		if r.sum.Allocators[i].Name == name {
			return &r.sum.Allocators[i]
		}
	}
	t.Fatalf("no allocator %s in %+v", name, r.sum.Allocators)
	return nil
}

// TestTraceReadsBack: what our own reader of traces finds in a trace of ours is
// what the run did.
func TestTraceReadsBack(t *testing.T) {
	r := record(t)
	var file bytes.Buffer
	r.write(t, chrome.NewWriter(&file, r.strs))
	tr, err := chrometrace.Read(bytes.NewReader(file.Bytes()), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := r.pool(t, "GPU_0_bfc")
	found := false
	for _, d := range tr.Devices() {
		if d.Type != 1 {
			continue
		}
		found = true
		if d.Peak != want.PeakInUse || int64(d.Allocations) != want.Allocs || int64(d.Frees) != want.Frees || d.LiveBytes != want.InUse || d.PeakReserved != want.PeakReserved {
			t.Errorf("read %+v, want %+v", d, want)
		}
	}
	if !found || tr.LastEmpty {
		t.Errorf("devices %+v", tr.Devices())
	}
	copies, bytes := 0, int64(0)
	for _, x := range tr.Traffic() {
		copies += x.Count
		bytes += x.Bytes
	}
	var wantCopies, wantBytes int64
	for _, x := range r.sum.Transfers {
		wantCopies += x.Count
		wantBytes += x.Bytes
	}
	if int64(copies) != wantCopies || bytes != wantBytes || wantCopies == 0 {
		t.Errorf("%d copies of %d bytes, want %d of %d", copies, bytes, wantCopies, wantBytes)
	}
	// As a timeline again it has the same peak.
	strs := new(event.Strings)
	back := analysis.NewTimeline(strs)
	tr.Emit(strs, back)
	peak := int64(0)
	for _, a := range back.Summary().Allocators {
		if strings.Contains(a.Device, "GPU") {
			peak = a.PeakInUse
		}
	}
	if peak != want.PeakInUse {
		t.Errorf("told again, the peak is %d, want %d", peak, want.PeakInUse)
	}
	counters(t, tr, "GPU_0_bfc in use", want.PeakInUse)
	counters(t, tr, "GPU_0_bfc reserved", want.PeakReserved)
}

func counters(t *testing.T, tr *chrometrace.Trace, name string, want int64) {
	t.Helper()
	highest := 0.0
	for _, c := range tr.Counters {
		if tr.Text(c.Name) == name {
			highest = max(highest, c.Value)
		}
	}
	if int64(highest) != want {
		t.Errorf("the counter %s reaches %g, want %d", name, highest, want)
	}
}

// TestTraceIsWellFormed holds the rules that viewers need: valid JSON, known
// phases, and spans of one thread that lie within or apart, never across.
func TestTraceIsWellFormed(t *testing.T) {
	r := record(t, event.Field{Key: "batch", Value: "60000"}) // runs out of memory: spans stay open
	var file bytes.Buffer
	r.write(t, chrome.NewWriter(&file, r.strs))
	var trace struct {
		TraceEvents []struct {
			Ph, Name, S string
			Pid, Tid    int64
			Ts, Dur     json.Number
			Args        map[string]any
		}
	}
	if err := json.Unmarshal(file.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	type row struct{ pid, tid int64 }
	ends := map[row]int64{}
	named := map[row]bool{}
	failures, spans := 0, 0
	for _, e := range trace.TraceEvents {
		k := row{e.Pid, e.Tid}
		switch e.Ph {
		case "M":
			named[k] = true
		case "X":
			spans++
			from, length := nanos(t, e.Ts), nanos(t, e.Dur)
			if from < ends[k] && from+length > ends[k] {
				t.Fatalf("%s at %d crosses the span before it on %v", e.Name, from, k)
			}
			ends[k] = max(ends[k], from+length)
			if !named[k] {
				t.Errorf("%v has no name", k)
			}
		case "i":
			if strings.HasPrefix(e.Name, "out of memory") {
				failures++
				if e.S != "g" || e.Args["allocator"] != "GPU_0_bfc" {
					t.Errorf("%+v", e)
				}
			}
		case "C":
			for name, v := range e.Args {
				if _, ok := v.(float64); !ok {
					t.Errorf("counter %s %s is %v", e.Name, name, v)
				}
			}
		default:
			t.Errorf("phase %q", e.Ph)
		}
		if e.Pid == 0 {
			t.Errorf("process 0 is hidden: %+v", e)
		}
	}
	if failures != len(r.sum.Failures) || failures == 0 || spans < 20 {
		t.Errorf("%d failures of %d, %d spans", failures, len(r.sum.Failures), spans)
	}
}

func nanos(t *testing.T, n json.Number) int64 {
	t.Helper()
	whole, frac, _ := strings.Cut(n.String(), ".")
	x, err := strconv.ParseInt(whole+frac, 10, 64)
	if err != nil || len(frac) != 3 {
		t.Fatalf("time %s: %v", n, err)
	}
	return x
}

// TestProfileReadsBack: the profile holds the peak, by our reader and by go
// tool pprof.
// TestNamesReadBack: what was converted opens again through the one door, and
// who holds what at the peak is still known: names, categories, sizes asked for.
func TestNamesReadBack(t *testing.T) {
	r := record(t)
	for name, c := range map[string]struct {
		write  func(w io.Writer) closer
		kind   string
		tensor bool // names of tensors, too
	}{
		"trace":   {func(w io.Writer) closer { return chrome.NewWriter(w, r.strs) }, "chrome-trace", true},
		"profile": {func(w io.Writer) closer { return pprof.NewWriter(w, r.strs, pprof.Options{At: -1}) }, "jax-pprof", false},
	} {
		var file bytes.Buffer
		r.write(t, c.write(&file))
		in, err := ingest.Open(name, &file, ingest.Limits{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if in.Kind != c.kind {
			t.Errorf("%s: read as %s", name, in.Kind)
		}
		type holder struct {
			op       string
			category event.Category
		}
		was, asks, is := map[holder]bool{}, map[holder]bool{}, map[holder]bool{}
		tensors, asked := 0, 0
		for i := range r.events {
			switch e := &r.events[i]; e.Kind {
			case event.Alloc:
				asks[holder{r.strs.At(e.Op), e.Category}] = true
				fallthrough
			case event.Forward: // takes a block over
				was[holder{r.strs.At(e.Op), e.Category}] = true
			default:
			}
		}
		strs := new(event.Strings)
		if err := in.Emit(strs, event.SinkFunc(func(e *event.Event) {
			if e.Kind != event.Alloc {
				return
			}
			is[holder{strs.At(e.Op), e.Category}] = true
			if e.Tensor != 0 {
				tensors++
			}
			if e.Requested < e.Size {
				asked++
			}
		})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for h := range is {
			if !was[h] {
				t.Errorf("%s: %+v was not in the timeline", name, h)
			}
		}
		if len(is) < 10 || c.tensor && (len(is) < len(asks) || tensors == 0 || asked == 0) {
			t.Errorf("%s: %d holders of %d, %d tensors, %d sizes asked for", name, len(is), len(asks), tensors, asked)
		}
	}
}

func TestProfileReadsBack(t *testing.T) {
	r := record(t)
	want := r.pool(t, "GPU_0_bfc")
	var file bytes.Buffer
	r.write(t, pprof.NewWriter(&file, r.strs, pprof.Options{At: -1, Device: want.Device}))
	p, err := readpprof.Read(bytes.NewReader(file.Bytes()), 0)
	if err != nil {
		t.Fatal(err)
	}
	totals := p.Totals()
	if len(totals) != 1 || totals[0].Bytes != want.PeakInUse || totals[0].Device != want.Device {
		t.Errorf("totals %+v, want %d on %s", totals, want.PeakInUse, want.Device)
	}
	by := map[string]int64{}
	for i := range p.Samples {
		by[p.Samples[i].Label("category")] += p.Samples[i].Values[1]
	}
	for c, n := range want.PeakByCategory {
		if by[event.Category(c).String()] != n {
			t.Errorf("%s: %d, want %d", event.Category(c), by[event.Category(c).String()], n)
		}
	}
	if runtime.GOOS == "js" {
		return // no program can be started there; the file's bytes are the same
	}
	path := filepath.Join(t.TempDir(), "x.pb.gz")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-unit=B", "-nodecount=1000", path).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof: %v\n%s", err, out)
	}
	for _, part := range []string{"Type: space", fmt.Sprintf("of %dB total", want.PeakInUse), "conv1/"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("go tool pprof -top lacks %q:\n%s", part, out)
		}
	}
}

// TestProfileOfAMoment: against the events themselves, at times drawn at random.
func TestProfileOfAMoment(t *testing.T) {
	r := record(t)
	last := r.events[len(r.events)-1].Time
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		at := rng.Int64N(last)
		live := map[export.Key]int64{}
		for i := range r.events {
			e := &r.events[i]
			if e.Time > at {
				continue
			}
			switch e.Kind {
			case event.Alloc:
				live[export.Key{Pool: e.Allocator, Address: e.Address}] = e.Size
			case event.Free:
				delete(live, export.Key{Pool: e.Allocator, Address: e.Address})
			default:
			}
		}
		want := int64(0)
		for _, n := range live {
			want += n
		}
		var file bytes.Buffer
		r.write(t, pprof.NewWriter(&file, r.strs, pprof.Options{At: at}))
		p, err := readpprof.Read(&file, 0)
		if err != nil {
			t.Fatal(err)
		}
		got := int64(0)
		for _, x := range p.Totals() {
			got += x.Bytes
		}
		if got != want {
			t.Errorf("at %d: %d bytes, want %d", at, got, want)
		}
	}
	var w bytes.Buffer
	none := pprof.NewWriter(&w, r.strs, pprof.Options{At: -1, Device: "/GPU:7"})
	for i := range r.events {
		none.Emit(&r.events[i])
	}
	if err := none.Close(); err == nil || !strings.Contains(err.Error(), "/device:GPU:0") || w.Len() > 0 {
		t.Errorf("%v, %d bytes", err, w.Len())
	}
}

// TestTableAddsUp: rows are the allocations, and their lives give the peak.
func TestTableAddsUp(t *testing.T) {
	r := record(t)
	want := r.pool(t, "GPU_0_bfc")
	var file bytes.Buffer
	r.write(t, csv.NewWriter(&file, r.strs))
	rows, err := stdcsv.NewReader(&file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var allocs, frees, alive int64
	for _, row := range rows[1:] {
		get := func(name string) string { return row[column[name]] }
		if get("allocator") != "GPU_0_bfc" {
			continue
		}
		if get("begun_by") == "alloc" {
			allocs++
		}
		switch get("ended_by") {
		case "free":
			frees++
		case "":
			n, _ := strconv.ParseInt(get("size"), 10, 64)
			alive += n
			if get("free_ns") != "" {
				t.Errorf("%v", row)
			}
		}
	}
	if allocs != want.Allocs || frees != want.Frees || alive != want.InUse {
		t.Errorf("%d allocations, %d frees, %d bytes alive; want %+v", allocs, frees, alive, want)
	}
}

// TestBuffersAreAPlansInput: the planner reads the table, and its load is the
// run's peak.
func TestBuffersAreAPlansInput(t *testing.T) {
	r := record(t)
	var file bytes.Buffer
	r.write(t, csv.NewBuffers(&file, r.strs, ""))
	p, err := plan.ReadCSV(&file)
	if err != nil {
		t.Fatal(err)
	}
	want := r.pool(t, "GPU_0_bfc")
	if int64(len(p.Buffers)) != want.Allocs {
		t.Errorf("%d buffers of %d allocations", len(p.Buffers), want.Allocs)
	}
	change := map[int64]int64{}
	for _, b := range p.Buffers {
		change[b.Lower] += b.Size
		change[b.Upper] -= b.Size
	}
	now, peak := int64(0), int64(0)
	for at := int64(0); at <= int64(2*len(p.Buffers))+1; at++ {
		now += change[at]
		peak = max(peak, now)
	}
	if peak != want.PeakInUse {
		t.Errorf("load %d, want the peak %d", peak, want.PeakInUse)
	}
	none := csv.NewBuffers(&file, r.strs, "nobody")
	for i := range r.events {
		none.Emit(&r.events[i])
	}
	if err := none.Close(); err == nil || !strings.Contains(err.Error(), "GPU_0_bfc") {
		t.Error(err)
	}
}

func TestStacks(t *testing.T) {
	for _, c := range []struct{ op, tensor, want string }{
		{"conv1/Conv2D", "conv1/Conv2D", "conv1 > conv1/Conv2D"},
		{"", "dense/kernel", "dense > dense/kernel"},
		{"", "", "(activation)"},
		{"map buffer", "map buffer", "map buffer"},
		{"f m.py:3", "main /a b/x.py:1\nf m.py:3", "main /a@b/x.py:1 > f@m.py:3"},
		{"f m.py:3", "f m.py:3", "f@m.py:3"},
	} {
		var got []string
		for _, f := range export.Stack(nil, c.op, c.tensor, event.Activation) {
			s := f.Name
			if f.File != "" {
				s += "@" + f.File + ":" + strconv.FormatInt(f.Line, 10)
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " > "); s != c.want {
			t.Errorf("%q %q: %s, want %s", c.op, c.tensor, s, c.want)
		}
	}
}

// FuzzWriters: no sequence of events breaks a writer, or its trace's JSON.
func FuzzWriters(f *testing.F) {
	f.Add([]byte{4, 1, 1, 4, 1, 2, 5, 1, 0, 6, 2, 9, 27, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		strs := new(event.Strings)
		hostile := strs.ID("\x00\xff\"</script>\n=1+1 x:3\u2028")
		var trace, profile, table bytes.Buffer
		sinks := []closer{chrome.NewWriter(&trace, strs), pprof.NewWriter(&profile, strs, pprof.Options{At: -1}), csv.NewWriter(&table, strs), csv.NewBuffers(&bytes.Buffer{}, strs, "allocator 0")}
		now := int64(0)
		for ; len(b) >= 3; b = b[3:] {
			now += int64(b[1] >> 4)
			e := event.Event{
				Kind: event.Kind(b[0]), Time: now, Address: uint64(b[1] & 3), Size: int64(b[2]), Requested: int64(b[2]), ID: uint64(b[1] & 7), Op: hostile,
				Tensor: hostile, Text: hostile, Step: int32(b[2]) - 1, Device: event.DeviceID(b[1]) * 300, Allocator: event.AllocatorID(b[2]&1) * 9999,
				Category: event.Category(b[2]), Cause: b[2],
			}
			for _, s := range sinks {
				s.Emit(&e)
			}
		}
		for i, s := range sinks {
			if err := s.Close(); err != nil && i < 3 {
				t.Fatal(err)
			}
		}
		if !json.Valid(trace.Bytes()) {
			t.Fatalf("no JSON: %s", trace.Bytes())
		}
		if _, err := readpprof.Read(&profile, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := stdcsv.NewReader(&table).ReadAll(); err != nil {
			t.Fatal(err)
		}
	})
}
