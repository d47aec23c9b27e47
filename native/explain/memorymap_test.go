package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/golden"
)

// TestMemoryMaps: a map says what it tells and what it does not; with its log
// behind it, it is explained and replayed as the log's dump.
func TestMemoryMaps(t *testing.T) {
	dir := golden.Dir(t, "bfc")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	alone := read("oom-fragmented.map-1.pb")
	both := append(append(bytes.Clone(alone), '\n'), read("oom-fragmented.log.txt")...)
	for _, c := range []struct {
		name  string
		file  []byte
		words []string
		not   string
	}{
		{"alone", alone, []string{"Not certain: A memory map shows", "asked for unknown", "pool 24.00 MiB", "largest hole 1.40 MiB", "more than the largest hole, 1.40 MiB", "does not tell how much was asked for", "tideline explain MAP LOG"}, "asked for 0"},
		{"both", both, []string{"Fragmented: 12.67 MiB are free and 4.00 MiB were asked for", "the request fails as recorded"}, "Not certain"},
		{"cut", alone[:len(alone)/2], []string{"memory map is cut", "it lacks a part of the chunk list, the statistics"}, "pool 24"},
	} {
		var out bytes.Buffer
		if err := Explain("GPU_0_bfc.1", bytes.NewReader(c.file), &out, Options{}); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := strings.Join(strings.Fields(out.String()), " ")
		for _, w := range c.words {
			if !strings.Contains(got, w) {
				t.Errorf("%s:\n%s\nwant %q", c.name, out.String(), w)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%s:\n%s\nmust not say %q", c.name, out.String(), c.not)
		}
		out.Reset()
		if err := Explain("GPU_0_bfc.1", bytes.NewReader(c.file), &out, Options{JSON: true}); err != nil {
			t.Fatal(err)
		}
		var report struct {
			Kind     string
			Failures []map[string]any
		}
		if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.Kind != "tf-bfc-oom" || len(report.Failures) != 1 {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if f := report.Failures[0]; c.name == "alone" && (f["requested_bytes"] != nil || f["limit_bytes"] != nil || f["in_use_bytes"] == nil || f["trials"] != nil) {
			t.Errorf("%s: %v", c.name, f)
		}
		out.Reset()
		if err := Explain("GPU_0_bfc.1", bytes.NewReader(c.file), &out, Options{HTML: true}); err != nil || !strings.Contains(out.String(), "GPU_0_bfc") {
			t.Errorf("%s: the page: %v", c.name, err)
		}
	}
}
