package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tideline/shared/golden"
	"tideline/shared/ingest/snapshot/synthetic"
)

func file(name string, b []byte) File {
	return File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// ranksFiles are snapshots of five ranks, of which the fourth has larger blocks and
// the last ran out of memory, and a file that is none.
func ranksFiles(t *testing.T) []File {
	t.Helper()
	var list []File
	for i, most := range []int64{8 << 20, 8 << 20, 8 << 20, 16 << 20} {
		var b bytes.Buffer
		if _, err := synthetic.Write(&b, synthetic.Shape{Requests: 2000, Live: 100, Most: most, Seed: 3}); err != nil {
			t.Fatal(err)
		}
		list = append(list, file(fmt.Sprintf("out/rank_%d.pickle", i), b.Bytes()))
	}
	return append(list, file("out/rank_10.pickle", oomSnapshot(t, 1000)), file("out/rank_11.pickle", []byte("\x80\x04\x95")))
}

func several(t *testing.T, files []File, o Options) string {
	t.Helper()
	o.NoReruns = true
	var b bytes.Buffer
	if err := Several(files, &b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSeveral: ranks are put side by side by their numbers; what fails or stands
// out is told of in full, and the rest is not.
func TestSeveral(t *testing.T) {
	got := several(t, ranksFiles(t), Options{})
	flat := strings.Join(strings.Fields(got), " ")
	at := -1
	for _, want := range []string{
		"rank peak", "rank 0 ", "rank 1 ", "rank 2 ", "rank 3 ", "rank 10 ", "1000.00 MiB", "Out of memory", "rank 11 - - - - Cannot be read:", "A request failed in rank 10, in the others none.",
		"Rank 10 peaks at 1000.00 MiB", "Rank 3 peaks at ", "In full: rank 10, rank 3.", "out/rank_10.pickle: PyTorch memory snapshot", "out/rank_3.pickle: PyTorch memory snapshot",
	} {
		i := strings.Index(flat, want)
		if i < 0 || i < at && !strings.HasPrefix(want, "Rank") {
			t.Fatalf("%q is at %d, after %d:\n%s", want, i, at, got)
		}
		at = i
	}
	if strings.Contains(got, "out/rank_2.pickle") {
		t.Errorf("what does not stand out is told of in full:\n%s", got)
	}
	for line := range strings.SplitSeq(got, "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("%q ends in blanks", line)
		}
	}
}

// TestSeveralJSON: the table's figures are those of each file's own report.
func TestSeveralJSON(t *testing.T) {
	files := ranksFiles(t)
	var got struct {
		Side struct {
			Median int64 `json:"median_peak_bytes"`
			Words  []string
			Files  []struct {
				File, Rank, Problem string
				Peak                *int64 `json:"peak_in_use_bytes"`
				Out                 int64  `json:"stands_out_bytes"`
				Failed              bool
				Verdict             *string
			}
		} `json:"side_by_side"`
		Reports []struct {
			File     string
			Readings []struct {
				Held []struct {
					At    string
					Bytes int64
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(several(t, files, Options{JSON: true})), &got); err != nil {
		t.Fatal(err)
	}
	rows := got.Side.Files
	if len(rows) != 6 || len(got.Reports) != 5 || rows[5].Problem == "" || rows[5].Peak != nil {
		t.Fatalf("%+v", got.Side)
	}
	if *rows[0].Peak != *rows[2].Peak || got.Side.Median != *rows[0].Peak || rows[3].Out != *rows[3].Peak-*rows[0].Peak || rows[3].Out <= 0 || rows[0].Out != 0 {
		t.Errorf("%+v", rows)
	}
	if r := rows[4]; r.Rank != "rank 10" || *r.Peak != 1000<<20 || !r.Failed || r.Verdict == nil || rows[0].Failed || rows[0].Verdict != nil {
		t.Errorf("%+v", r)
	}
	for i, r := range got.Reports {
		if r.File != rows[i].File {
			t.Errorf("report %d is of %s, row of %s", i, r.File, rows[i].File)
		}
	}
	if red := several(t, files, Options{JSON: true, Redact: true}); strings.Contains(red, "out/") || strings.Contains(red, "function_") || !strings.Contains(red, `"rank 10"`) {
		t.Errorf("not redacted:\n%s", red)
	}
}

// TestTwoFiles: two are told one after the other, and one that is none is an error.
func TestTwoFiles(t *testing.T) {
	files := ranksFiles(t)
	got := several(t, files[:2], Options{})
	if !strings.HasPrefix(got, "out/rank_0.pickle: PyTorch") || !strings.Contains(got, "\nout/rank_1.pickle: PyTorch") || strings.Contains(got, "median") {
		t.Errorf("two files:\n%s", got)
	}
	var b bytes.Buffer
	if err := Several([]File{files[0], files[5]}, &b, Options{NoReruns: true}); err == nil || b.Len() > 0 {
		t.Errorf("%v, wrote %q", err, b.String())
	}
	gone := File{Name: "gone", Open: func() (io.ReadCloser, error) { return nil, errors.New("open gone: no such file") }}
	if err := Several([]File{gone, gone, gone}, &b, Options{}); err == nil || !strings.Contains(err.Error(), "open gone") {
		t.Errorf("none can be read: %v", err)
	}
}

// TestLogsOfRanks: logs are told apart by their names' ranks, with what each says.
func TestLogsOfRanks(t *testing.T) {
	log := read(t, filepath.Join(golden.Cases(t), "05-tf-bfc-2023-cifar-fragmented", "input.log"))
	smi := read(t, filepath.Join(golden.Cases(t), "29-smi-2019-held-but-no-process", "smi.txt"))
	got := several(t, []File{file("rank0.log", log), file("rank1.log", log), file("rank2.log", smi)}, Options{})
	if !strings.Contains(got, "Out of memory: fragmented\n") || !strings.Contains(got, "A request failed in rank 0 and rank 1, in the others none.") || !strings.Contains(got, "532.88 MiB") || !strings.Contains(got, "rank0.log: GPU_0_bfc ran out of memory") {
		t.Errorf("%s", got)
	}
	if s := strings.Join(strings.Fields(got), " "); !strings.Contains(s, "rank 0 3.06 GiB ################ - 561.92 MiB 532.88 MiB Out of memory: fragmented") {
		t.Errorf("the figures are not those of the log:\n%s", got)
	}
	// A message tells what was in use when it failed, and its verdict counts.
	torch := read(t, filepath.Join(golden.Cases(t), "17-torch-2023-others-hold-the-card", "input.txt"))
	got = several(t, []File{file("rank0.log", torch), file("rank1.log", torch), file("rank2.log", smi)}, Options{JSON: true})
	for _, want := range []string{`"peak_in_use_bytes": 681542943`, `"verdict": "other_process"`, `"verdict": "hidden_holder"`, `"peak_in_use_bytes": null`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, c := range []struct {
		names string
		heads [][]byte
		want  bool
	}{
		{"a.log b.log", [][]byte{log, smi}, false},
		{"a.log b.log c.log", [][]byte{log, log, smi}, false},
		{"rank0.log rank1.log", [][]byte{log, log}, false},
		{"rank0.log rank1.log rank2.log", [][]byte{log, log, log}, true},
		{"a.log b.pickle", [][]byte{log, oomSnapshot(t, 10)}, true},
		{"a.log b.tideline", [][]byte{log, []byte("\x89TIDE\r\n\x1a")}, true},
	} {
		if got := Separate(strings.Fields(c.names), c.heads); got != c.want {
			t.Errorf("%s: %v", c.names, got)
		}
	}
}

// TestSeveralIsDescribed holds what is emitted against docs/formats/report.md, both
// ways.
func TestSeveralIsDescribed(t *testing.T) {
	page := described(t)
	const top, row = severalFiles, severalRows
	emitted := map[place]bool{}
	check := func(section, name string, v any) {
		at := place{section, name}
		emitted[at] = true
		if types, ok := page[at]; !ok {
			t.Errorf("%v is not described", at)
		} else if !fits(v, types) {
			t.Errorf("%v is %T, described as %v", at, v, types)
		}
	}
	files := ranksFiles(t)
	var cut bytes.Buffer
	if _, err := synthetic.Write(&cut, synthetic.Shape{Requests: 2000}); err != nil {
		t.Fatal(err)
	}
	files = append(files, file("out/rank_12.pickle", cut.Bytes()[:cut.Len()/2]))
	d := json.NewDecoder(strings.NewReader(several(t, files, Options{JSON: true})))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	for name, x := range v {
		check(top, name, x)
	}
	side := v["side_by_side"].(map[string]any)
	for name, x := range side {
		check(top, "side_by_side."+name, x)
	}
	for _, r := range side["files"].([]any) {
		for name, x := range r.(map[string]any) {
			check(row, name, x)
		}
	}
	var stale []string
	for at := range page {
		if (at.section == top || at.section == row) && !emitted[at] {
			stale = append(stale, at.name)
		}
	}
	slices.Sort(stale)
	if len(stale) > 0 {
		t.Errorf("described and not emitted: %v", stale)
	}
}
