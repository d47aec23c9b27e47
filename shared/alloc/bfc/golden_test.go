package bfc_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/memdump"
	"tideline/shared/alloc/trace"
	"tideline/shared/golden"
)

// goldenCase is one entry of MANIFEST.json.
type goldenCase struct {
	Name     string
	Files    []struct{ File string }
	Versions map[string]string
}

func manifest(tb testing.TB, dir string) []goldenCase {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		tb.Fatal(err)
	}
	var m struct{ Cases []goldenCase }
	if err := json.Unmarshal(raw, &m); err != nil {
		tb.Fatal(err)
	}
	if len(m.Cases) == 0 {
		tb.Fatalf("%s lists no case", dir)
	}
	return m.Cases
}

// read returns a file of the case, unpacked; ok is false when it has none.
func read(tb testing.TB, path string) (data []byte, ok bool) {
	tb.Helper()
	if raw, err := os.ReadFile(path); err == nil {
		return raw, true
	}
	f, err := os.Open(path + ".gz")
	if err != nil {
		return nil, false
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	data, err = io.ReadAll(z)
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return data, true
}

// firstDifference names the first line in which two texts differ.
func firstDifference(got, want []byte) string {
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := 0; i < len(g) && i < len(w); i++ {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got  %s\n want %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

func compare(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: %s", what, firstDifference(got, want))
	}
}

// answer plays a trace and returns answers, log and serialised maps.
func answer(t *testing.T, in []byte, p bfc.Profile) (out, log []byte, maps [][]byte) {
	t.Helper()
	var o, l bytes.Buffer
	err := trace.Answer(bytes.NewReader(in), &o, trace.AnswerOptions{
		Profile: p, Log: &l, OpName: "golden_op",
		Map: func(_ int, m bfc.Map) error {
			maps = append(maps, memdump.Append(nil, &m))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o.Bytes(), l.Bytes(), maps
}

func checkCurrent(t *testing.T, dir, name string) {
	t.Helper()
	in, ok := read(t, filepath.Join(dir, name+".trace"))
	if !ok {
		t.Fatalf("%s has no trace", name)
	}
	want, ok := read(t, filepath.Join(dir, name+".answer"))
	if !ok {
		t.Fatalf("%s has no answers", name)
	}
	out, log, maps := answer(t, in, bfc.Current)
	compare(t, "answers", out, want)
	if want, ok := read(t, filepath.Join(dir, name+".log.txt")); ok {
		compare(t, "log", log, want)
	}
	for k, got := range maps {
		if want, ok := read(t, filepath.Join(dir, fmt.Sprintf("%s.map-%d.pb", name, k+1))); ok && !bytes.Equal(got, want) {
			t.Errorf("map %d: got %x, want %x", k+1, got, want)
		}
	}
}

func TestEveryRecordedAnswerIsReproduced(t *testing.T) {
	dir := golden.Dir(t, "bfc")
	for _, c := range manifest(t, dir) {
		if testing.Short() && strings.HasPrefix(c.Name, "bench-") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			files := 0
			for _, f := range c.Files {
				if strings.Contains(f.File, ".map-") {
					files++
				}
			}
			checkCurrent(t, dir, c.Name)
		})
	}
}

var differs = regexp.MustCompile(`^differs at answer line (\d+)`)

// masked leaves out fields 8 and 10 of sample lines, which the code of 2024
// does not fill in.
func masked(text []byte) []string {
	lines := strings.Split(string(text), "\n")
	for i, l := range lines {
		if f := strings.Split(l, " "); f[0] == "s" && len(f) == 15 {
			f[8], f[10] = "-", "-"
			lines[i] = strings.Join(f, " ")
		}
	}
	return lines
}

func TestTheClassicProfileAnswersAsIn2024(t *testing.T) {
	dir := golden.Dir(t, "bfc")
	for _, c := range manifest(t, dir) {
		verdict := c.Versions["2024"]
		if verdict == "does not end" || strings.HasPrefix(c.Name, "bench-") {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			in, _ := read(t, filepath.Join(dir, c.Name+".trace"))
			want, _ := read(t, filepath.Join(dir, c.Name+".answer"))
			out, log, _ := answer(t, in, bfc.Classic)
			g, w := masked(out), masked(want)
			if at := differs.FindStringSubmatch(verdict); at != nil {
				n, _ := strconv.Atoi(at[1])
				if len(g) >= n && g[n-1] == w[n-1] {
					t.Errorf("line %d should differ from the new answer %q", n, w[n-1])
				}
				g, w = g[:n-1], w[:n-1]
			} else if verdict != "same" {
				t.Fatalf("unknown verdict %q", verdict)
			}
			compare(t, "answers", []byte(strings.Join(g, "\n")), []byte(strings.Join(w, "\n")))
			if want, ok := read(t, filepath.Join(dir, c.Name+".log-2024.txt")); ok {
				compare(t, "log", log, want)
			}
		})
	}
}
