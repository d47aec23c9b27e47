package bfclog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/golden"
)

// answers is what a golden case says about the state after each operation.
type answers struct {
	stats map[int][]string // fields of the sample right after a failed request
	maps  map[int][]string // region and chunk lines of the map after it
}

// TestGoldenLogsReadBack reads the logs that TensorFlow's own allocator wrote,
// in both wordings, and compares with the answers of the same operation.
func TestGoldenLogsReadBack(t *testing.T) {
	dir := golden.Dir(t, "bfc")
	files, err := filepath.Glob(filepath.Join(dir, "*.log*.txt*"))
	if err != nil {
		t.Fatal(err)
	}
	dumps, compared, mapped := 0, 0, 0
	for _, f := range files {
		name := filepath.Base(f)
		base, _, _ := strings.Cut(name, ".log")
		a := readAnswers(t, filepath.Join(dir, base))
		text := readAll(t, f)
		log, err := Read(bytes.NewReader(text))
		if err != nil {
			if errors.Is(err, ErrNothing) && !bytes.Contains(text, []byte("ran out of memory")) {
				continue // garbage collection that helped
			}
			t.Fatalf("%s: %v", name, err)
		}
		if want := bytes.Count(text, []byte("BFCAllocator dump for")); want > 0 && want != len(log.Dumps) {
			t.Errorf("%s: %d dumps, want %d", name, len(log.Dumps), want)
			continue
		}
		ops := operations(text)
		for _, d := range log.Dumps {
			if d.Request.Short {
				continue
			}
			dumps++
			checkGolden(t, name, d, &a, ops[d.Line], &compared, &mapped)
		}
	}
	t.Logf("%d logs, %d dumps, %d compared with statistics, %d chunk for chunk", len(files), dumps, compared, mapped)
	if dumps < 100 || compared < 60 || mapped < 20 {
		t.Errorf("too little was compared: %d dumps, %d statistics, %d maps", dumps, compared, mapped)
	}
}

func checkGolden(t *testing.T, name string, d *Dump, a *answers, op int, compared, mapped *int) {
	t.Helper()
	if d.Truncated || !d.ListComplete {
		t.Errorf("%s, operation %d: taken for cut: %q", name, op, d.Missing)
		return
	}
	if !d.Request.Rounded.Known || d.Allocator == "" || !d.HasStats || !d.HasBar {
		t.Errorf("%s, operation %d: head or tail not read", name, op)
	}
	_, used, _, free := d.Listed()
	if s := a.stats[op]; s != nil {
		*compared++
		for _, c := range []struct {
			what  string
			field int
			got   int64
		}{{"in use", 2, used}, {"pool", 11, used + free}, {"largest free", 10, largestFree(d)}} {
			if want, _ := strconv.ParseInt(s[c.field], 10, 64); want != c.got {
				t.Errorf("%s, operation %d: %s %d, want %d", name, op, c.what, c.got, want)
			}
		}
		for _, c := range []struct {
			what  string
			field int
			got   Size
		}{
			{"allocations", 1, d.Allocs},
			{"in use", 2, d.InUse},
			{"peak", 3, d.Peak},
			{"largest", 4, d.LargestAlloc},
			{"limit", 5, d.Limit},
			{"pool", 11, d.Pool},
		} {
			want, _ := strconv.ParseInt(s[c.field], 10, 64)
			if !c.got.Known || want < c.got.Lo || want > c.got.Hi {
				t.Errorf("%s, operation %d: printed %s %+v does not allow %d", name, op, c.what, c.got, want)
			}
		}
	}
	if m := a.maps[op]; m != nil {
		*mapped++
		if got := mapLines(d); strings.Join(got, "\n") != strings.Join(m, "\n") {
			t.Errorf("%s, operation %d: chunks\n%q\nwant\n%q", name, op, got, m)
		}
	}
}

func largestFree(d *Dump) (n int64) {
	for _, r := range d.Regions {
		for _, c := range r.Chunks {
			if !c.InUse {
				n = max(n, c.Size)
			}
		}
	}
	return n
}

func mapLines(d *Dump) []string {
	lines := []string{}
	for _, r := range d.Regions {
		lines = append(lines, "r "+strconv.FormatUint(r.Address, 16)+" "+strconv.FormatInt(r.Size, 10))
		for _, c := range r.Chunks {
			used := "0"
			if c.InUse {
				used = "1"
			}
			lines = append(lines, "k "+strconv.FormatUint(c.Address, 16)+" "+strconv.FormatInt(c.Size, 10)+" "+used)
		}
	}
	return lines
}

// operations maps the line on which a dump begins to the number of the
// operation that it belongs to.
func operations(text []byte) map[int]int {
	ops := map[int]int{}
	op := 0
	for i, line := range strings.Split(string(text), "\n") {
		if n, ok := strings.CutPrefix(line, "@ "); ok {
			op, _ = strconv.Atoi(n)
		}
		ops[i+1] = op
	}
	return ops
}

// readAnswers walks trace and answers side by side.
func readAnswers(t *testing.T, base string) answers {
	t.Helper()
	a := answers{stats: map[int][]string{}, maps: map[int][]string{}}
	lines := bufio.NewScanner(bytes.NewReader(readAll(t, base+".answer.gz")))
	lines.Buffer(nil, 1<<20)
	next := func(tag string) string { // the next answer line with that tag
		for lines.Scan() {
			if s := lines.Text(); s == tag || strings.HasPrefix(s, tag+" ") {
				return s
			}
		}
		t.Fatalf("%s: answers end early", base)
		return ""
	}
	op, last := 0, 0 // last: failed request whose state still holds
	for line := range strings.SplitSeq(string(readAll(t, base+".trace.gz")), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] == "#" || f[0] == "o" || f[0] == "bfc-trace" {
			continue
		}
		op++
		switch f[0] {
		case "a", "n":
			last = 0
			if next("a") == "a oom" {
				last = op
			}
		case "s":
			if s := strings.Fields(next("s")); last > 0 {
				a.stats[last] = s
			}
		case "m":
			head := strings.Fields(next("m"))
			regions, _ := strconv.Atoi(head[1])
			chunks, _ := strconv.Atoi(head[2])
			out := []string{}
			for len(out) < regions+chunks && lines.Scan() {
				m := strings.Fields(lines.Text())
				switch m[0] {
				case "r":
					out = append(out, lines.Text())
				case "k":
					out = append(out, "k "+m[1]+" "+m[2]+" "+m[4])
				}
			}
			if last > 0 {
				a.maps[last] = out
			}
		case "q":
			next("q")
		default:
			last = 0
		}
	}
	return a
}

func readAll(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
