package analysis

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tideline/shared/golden"
	"tideline/shared/ingest/bfclog"
)

// TestCasesReadTheSameInDisguise: how a text was pasted changes no number.
func TestCasesReadTheSameInDisguise(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(golden.Cases(t), "*tf-bfc*", "input.log"))
	if len(files) < 8 {
		t.Fatalf("%d cases", len(files))
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.ReplaceAll(strings.TrimSuffix(string(b), "\n"), "\r", ""), "\n")
		want := valuesOf(t, f, strings.Join(lines, "\n"))
		for name, text := range map[string]string{
			"CRLF":      strings.Join(lines, "\r\n"),
			"quoted":    "> " + strings.Join(lines, "\n> "),
			"collector": "gpu-worker-3 | " + strings.Join(lines, "\ngpu-worker-3 | "),
			"indented":  "    " + strings.Join(lines, "\n    "),
			"with noise": "Epoch 1/2\n" + strings.ReplaceAll(strings.Join(lines, "\n"), "\n20",
				"\n\r 17/390 [>.............................] - ETA: 12s - loss: 2.30\r20") + "\nAborted (core dumped)\n",
		} {
			if got := valuesOf(t, f+" "+name, text); !reflect.DeepEqual(got, want) {
				for i := range want {
					if i < len(got) && !reflect.DeepEqual(got[i], want[i]) {
						t.Errorf("%s, %s: %+v, want %+v", filepath.Base(filepath.Dir(f)), name, got[i], want[i])
					}
				}
			}
		}
	}
}

// valuesOf reads a text with one dump, without what tells line numbers.
func valuesOf(t *testing.T, name, text string) Values {
	t.Helper()
	log, err := bfclog.Read(strings.NewReader(text))
	if err != nil || len(log.Dumps) != 1 {
		t.Errorf("%s: %d dumps, %v", name, len(log.Dumps), err)
		return nil
	}
	var out Values
	for _, v := range FromDump(log.Dumps[0]).Values() {
		if v.Name == "missing" {
			v = Value{Name: v.Name, Int: int64(len(v.Texts))}
		}
		out = append(out, v)
	}
	return out
}

// TestEveryCaseCutAnywhere: whatever part of a real log survives, no figure of
// the allocator's own may change, and a verdict may only become open.
func TestEveryCaseCutAnywhere(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(golden.Cases(t), "*tf-bfc*", "input.log"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(b), "\n")
		whole := valuesOf(t, f, string(b))
		for at := 1; at < len(lines); at += 1 + len(lines)/40 {
			for part, text := range map[string]string{"head": strings.Join(lines[:at], "\n"), "tail": strings.Join(lines[at:], "\n")} {
				log, err := bfclog.Read(strings.NewReader(text))
				if err != nil {
					continue
				}
				for _, d := range log.Dumps {
					compareCut(t, fmt.Sprintf("%s, %s at line %d", filepath.Base(filepath.Dir(f)), part, at), FromDump(d).Values(), whole)
				}
			}
		}
	}
}

func compareCut(t *testing.T, what string, got, whole Values) {
	t.Helper()
	for _, name := range []string{
		"limit_bytes", "pool_bytes", "in_use_bytes", "peak_in_use_bytes", "num_allocs", "largest_alloc_bytes",
		"largest_free_chunk_bytes", "requested_rounded_bytes", "next_region_bytes", "available_bytes", "fragmentation",
	} {
		g, _ := got.Get(name)
		w, _ := whole.Get(name)
		if g.Type != Null && !reflect.DeepEqual(g, w) {
			t.Errorf("%s: %s is %+v, of the whole %+v", what, name, g, w)
		}
	}
}
