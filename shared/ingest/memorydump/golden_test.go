package memorydump

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/analysis"
	"tideline/shared/golden"
	"tideline/shared/ingest/bfclog"
)

// answer is what a golden case says at one of its samples of the map.
type answer struct {
	lines  []string // r, k and b lines
	metric string   // fragmentation, in single precision
	stats  []string // fields of an s line of the same state; nil for none
	failed int      // the operation that failed in that state; 0 for none
}

// answers walks trace and answers side by side; the K-th map is at K-1.
func answers(t *testing.T, base string) (out []answer) {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(contents(t, base+".answer.gz")))
	lines.Buffer(nil, 1<<20)
	next := func(tag string) []string {
		for lines.Scan() {
			if f := strings.Fields(lines.Text()); len(f) > 0 && f[0] == tag {
				return f
			}
		}
		t.Fatalf("%s: answers end early", base)
		return nil
	}
	op, failed, since := 0, 0, 0 // since: first map of the present state
	var stats []string
	for line := range strings.SplitSeq(string(contents(t, base+".trace.gz")), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" || f[0] == "o" || f[0] == "bfc-trace" {
			continue
		}
		op++
		switch f[0] {
		case "a", "n":
			if failed, since, stats = 0, len(out), nil; next("a")[1] == "oom" {
				failed = op
			}
		case "s":
			stats = next("s")
			for i := since; i < len(out); i++ {
				out[i].stats = stats
			}
		case "m":
			m := answer{failed: failed, stats: stats}
			m.metric = next("m")[3]
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "w ") {
				m.lines = append(m.lines, lines.Text())
			}
			out = append(out, m)
		case "q":
			next("q")
		default:
			failed, since, stats = 0, len(out), nil
		}
	}
	return out
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// told words a map as the answers do, without the fields that a map lacks.
func told(m *Map, d *bfclog.Dump) (out []string) {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	at := 0
	for _, r := range d.Regions {
		out = append(out, fmt.Sprintf("r %x %d", r.Address, r.Size))
		for range r.Chunks {
			c := m.Chunks[at]
			at++
			out = append(out, fmt.Sprintf("k %x %d %d %d %d", c.Address, c.Size, c.Requested, flag(c.InUse), c.Bin))
		}
	}
	for i, b := range d.Bins {
		if b.Chunks > 0 {
			out = append(out, fmt.Sprintf("b %d %d %d %d %d %d", i, b.Used.N, b.Allocated.N, b.InUse, b.Chunks, b.Requested.N))
		}
	}
	return out
}

func maps(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(golden.Dir(t, "bfc"), "*.map-*.pb"))
	if err != nil || len(list) < 11 {
		t.Fatalf("%d maps, %v", len(list), err)
	}
	return list
}

// TestMapsTellWhatTheAllocatorAnswered: chunk for chunk, bin for bin, figure for
// figure, as the answers of the same operation have them.
func TestMapsTellWhatTheAllocatorAnswered(t *testing.T) {
	sampled := 0
	for _, file := range maps(t) {
		name := filepath.Base(file)
		base, k, _ := strings.Cut(strings.TrimSuffix(file, ".pb"), ".map-")
		n, _ := strconv.Atoi(k)
		want := answers(t, base)[n-1]
		m, err := Decode(contents(t, file))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := m.Dump(false)
		if !d.ListComplete || d.Truncated || m.Allocator != "GPU_0_bfc" || len(m.Bins) != NumBins {
			t.Errorf("%s is not whole: %q, %q", name, m.Allocator, d.Missing)
		}
		var lines []string
		for _, l := range want.lines {
			if f := strings.Fields(l); f[0] == "k" {
				l = strings.Join(f[:6], " ")
			}
			lines = append(lines, l)
		}
		if got := told(m, d); strings.Join(got, "\n") != strings.Join(lines, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
		r := analysis.FromDump(d)
		checkMetric(t, name, m, r, want.metric)
		if want.stats == nil {
			continue
		}
		sampled++
		for _, c := range []struct {
			what  string
			field int
			got   int64
		}{
			{"allocations", 1, r.Allocs.N},
			{"in use", 2, r.InUse.N},
			{"peak", 3, r.Peak.N},
			{"largest", 4, r.LargestAlloc.N},
			{"largest hole", 10, r.LargestFree.N},
			{"pool", 11, r.Pool.N},
		} {
			if want.stats[c.field] != strconv.FormatInt(c.got, 10) {
				t.Errorf("%s: %s %d, want %s", name, c.what, c.got, want.stats[c.field])
			}
		}
	}
	if sampled < 4 {
		t.Errorf("only %d maps have statistics beside them", sampled)
	}
}

// checkMetric compares the allocator's own fragmentation, and ours, with the answer.
func checkMetric(t *testing.T, name string, m *Map, r *analysis.Reading, want string) {
	t.Helper()
	if f := m.Stats.Fragmentation; f != f {
		if want != "nan" || r.Fragmentation != 0 {
			t.Errorf("%s: fragmentation is no number, want %s, ours %g", name, want, r.Fragmentation)
		}
		return
	}
	if got := strconv.FormatFloat(float64(m.Stats.Fragmentation), 'g', 9, 32); got != want {
		if f, _ := strconv.ParseFloat(want, 32); float32(f) != m.Stats.Fragmentation {
			t.Errorf("%s: fragmentation %s, want %s", name, got, want)
		}
	}
	if math.Abs(r.Fragmentation-float64(m.Stats.Fragmentation)) > 1e-6 {
		t.Errorf("%s: our fragmentation is %g, the allocator's %g", name, r.Fragmentation, m.Stats.Fragmentation)
	}
}

// TestMapsAndLogsAgree: where the same failure is in a log, the map's dump has
// the same chunks, bins and figures, and takes the request from it.
func TestMapsAndLogsAgree(t *testing.T) {
	compared := 0
	for _, file := range maps(t) {
		name := filepath.Base(file)
		base, k, _ := strings.Cut(strings.TrimSuffix(file, ".pb"), ".map-")
		n, _ := strconv.Atoi(k)
		want := answers(t, base)[n-1]
		logs, _ := filepath.Glob(base + ".log*.txt")
		for _, l := range logs {
			text := contents(t, l)
			log, err := bfclog.Read(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range log.Dumps {
				if operation(text, x.Line) != want.failed || want.failed == 0 {
					continue
				}
				m, err := Decode(contents(t, file))
				if err != nil {
					t.Fatal(err)
				}
				compared++
				agree(t, name+" and "+filepath.Base(l), m.Dump(false), x)
				joined(t, name+" and "+filepath.Base(l), append(append(contents(t, file), '\n'), text...), log, x)
			}
		}
	}
	t.Logf("%d maps beside the log of the same failure", compared)
	if compared < 2 {
		t.Errorf("only %d", compared)
	}
}

func operation(text []byte, line int) (op int) {
	for i, s := range strings.Split(string(text), "\n") {
		if n, ok := strings.CutPrefix(s, "@ "); ok && i < line {
			op, _ = strconv.Atoi(n)
		}
	}
	return op
}

func agree(t *testing.T, name string, d, l *bfclog.Dump) {
	t.Helper()
	list := func(d *bfclog.Dump) (out []string) {
		for _, r := range d.Regions {
			for _, c := range r.Chunks {
				out = append(out, fmt.Sprintf("%x %d %v", c.Address, c.Size, c.InUse))
			}
		}
		return out
	}
	if a, b := strings.Join(list(d), "\n"), strings.Join(list(l), "\n"); a != b {
		t.Errorf("%s: chunks\n%s\nwant\n%s", name, a, b)
	}
	for i, b := range d.Bins {
		w := l.Bins[i]
		if b.Chunks != w.Chunks || b.InUse != w.InUse {
			t.Errorf("%s: bin %d has %d chunks, %d in use; want %d, %d", name, i, b.Chunks, b.InUse, w.Chunks, w.InUse)
		}
		for _, x := range [][2]bfclog.Size{{b.Allocated, w.Allocated}, {b.Used, w.Used}, {b.Requested, w.Requested}} {
			if x[0].N < x[1].Lo || x[0].N > x[1].Hi {
				t.Errorf("%s: bin %d: %d, printed as %q", name, i, x[0].N, x[1].Text)
			}
		}
	}
	if fmt.Sprint(d.Summary) != fmt.Sprint(l.Summary) {
		t.Errorf("%s: summary %v, want %v", name, d.Summary, l.Summary)
	}
	if !matches(d, l) {
		t.Errorf("%s: the figures differ", name)
	}
}

// joined: a map with its log behind it reads as the log alone does.
func joined(t *testing.T, name string, file []byte, log *bfclog.Log, want *bfclog.Dump) {
	t.Helper()
	m, err := Decode(file)
	if err != nil || len(m.Rest) == 0 {
		t.Fatalf("%s: %v, %d bytes of text", name, err, len(m.Rest))
	}
	d := m.Dump(false)
	Join(d, log)
	if d.Request.Told && d.Request.Size.N != want.Request.Size.N && len(d.Notes) == 0 {
		t.Errorf("%s: another request was taken: %+v", name, d.Request)
	}
	a, b := analysis.FromDump(d), analysis.FromDump(want)
	if d.Request.Size.N == want.Request.Size.N && (a.Verdict != b.Verdict || a.Rounded != b.Rounded || a.Growth != b.Growth) {
		t.Errorf("%s: %s of %v, want %s of %v", name, a.Verdict, a.Rounded, b.Verdict, b.Rounded)
	}
}
