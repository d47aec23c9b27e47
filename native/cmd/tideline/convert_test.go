package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/golden"
)

// TestConvertWritesEachFormat: by ending and by --to, packed where the ending
// says so.
func TestConvertWritesEachFormat(t *testing.T) {
	line, dir := recorded(t, small), t.TempDir()
	for _, c := range [][3]string{
		{"a.json", `{"displayTimeUnit"`, "a trace for Perfetto and Chrome"},
		{"a.json.gz", "\x1f\x8b", "a trace for Perfetto and Chrome"},
		{"a.pb.gz", "\x1f\x8b", "a pprof profile"},
		{"a.xplane.pb", "\x0a", "a profile for TensorFlow's profiler"},
		{"a.xplane.pb.gz", "\x1f\x8b", "a profile for TensorFlow's profiler"},
		{"a.csv", "device,allocator,address", "a table of allocations"},
		{"a.TXT", "# tideline text", "a timeline as text"},
		{"a.tideline", "\x89TIDE", "a timeline"},
	} {
		name, head, what := c[0], c[1], c[2]
		out := filepath.Join(dir, name)
		code, stdout, stderr := tideline(t, "convert", line, out)
		b, err := os.ReadFile(out)
		if said := fmt.Sprintf("%s: %s, %s\n", out, what, size(int64(len(b)))); code != exitDone || stdout != "" || stderr != said {
			t.Errorf("%s: says %q and %q, want %q", name, stdout, stderr, said)
		}
		if err != nil || !strings.HasPrefix(string(b), head) {
			t.Errorf("%s: %v, begins with %.20q", name, err, b)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	code, stdout, stderr := tideline(t, "convert", line, "-", "--to", "csv", "--csv", "buffers")
	if rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll(); code != exitDone || err != nil || len(rows) < 10 {
		t.Errorf("%d %v %s: %d rows", code, err, stderr, len(rows))
	}
	// A packed trace opens again.
	if code, stdout, stderr := tideline(t, "explain", filepath.Join(dir, "a.json.gz")); code != exitDone || !strings.Contains(stdout, "peak allocated") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", filepath.Join(dir, "a.pb.gz")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Type: space") {
		t.Errorf("go tool pprof: %v\n%s", err, out)
	}
}

func TestConvertSaysWhatIsWrong(t *testing.T) {
	line := recorded(t, small)
	out := filepath.Join(t.TempDir(), "x.csv")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{line, out, "--to", "xml"}, exitUsage, "write tideline, txt, json, pprof, xspace or csv"},
		{[]string{line, "x.png"}, exitUsage, "the ending says what to write, or --to does"},
		{[]string{line, out, "--at", "3ms"}, exitUsage, "--at is for pprof, and csv is written"},
		{[]string{line, out, "--of", "GPU_0_bfc"}, exitUsage, "--csv buffers"},
		{[]string{line, out, "--csv", "buffers", "--of", "nobody"}, exitFailed, "GPU_0_bfc"},
		{[]string{line, "-", "--to", "pprof", "--device", "/GPU:9"}, exitFailed, "/device:GPU:0"},
		{[]string{filepath.Join(t.TempDir(), "no.tideline"), out}, exitFailed, "no.tideline"},
		{[]string{line, filepath.Join(t.TempDir(), "no", "x.csv")}, exitFailed, "no such file"},
	} {
		code, stdout, stderr := tideline(t, append([]string{"convert"}, c.args...)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d, %q, %s", c.args, code, stdout, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a file was left behind")
	}
}

// TestConvertReadsWhateverExplainReads: every case becomes a timeline that
// opens.
func TestConvertReadsWhateverExplainReads(t *testing.T) {
	cases := golden.Cases(t)
	inputs := 0
	folders, err := filepath.Glob(filepath.Join(cases, "*", "case.json"))
	if err != nil || len(folders) < 30 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	for _, f := range folders {
		files, _ := golden.Case(t, filepath.Base(filepath.Dir(f)))
		for name := range files {
			in := filepath.Join(filepath.Dir(f), name)
			if strings.Contains(in, "25-torch") && testing.Short() {
				continue
			}
			out := filepath.Join(t.TempDir(), "x.tideline")
			if code, _, stderr := tideline(t, "convert", in, out); code != exitDone {
				t.Errorf("%s: %s", in, stderr)
				continue
			}
			inputs++
			events, s := readAll(t, out)
			if len(events) < 2 || len(s.Damage()) > 0 {
				t.Errorf("%s: %d events, %v", in, len(events), s.Damage())
			}
		}
	}
	if inputs < 30 {
		t.Errorf("%d inputs", inputs)
	}
}

// TestConvertRefusesWhatWouldBeEmpty: words alone are kept by timelines, and are no
// table, trace or profile.
func TestConvertRefusesWhatWouldBeEmpty(t *testing.T) {
	in, dir := "../../../examples/files/others-hold.txt", t.TempDir()
	for _, name := range []string{"x.json", "x.json.gz", "x.xplane.pb", "x.pb.gz", "x.csv"} {
		out := filepath.Join(dir, name)
		code, stdout, stderr := tideline(t, "convert", in, out)
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "it tells of no allocation") || !strings.Contains(stderr, ".tideline, which keeps what it means") {
			t.Errorf("%s: %d %q %s", name, code, stdout, stderr)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, to := range []string{"json", "xspace", "pprof", "csv"} {
		if code, stdout, _ := tideline(t, "convert", in, "-", "--to", to, "--redact"); code != exitFailed || stdout != "" {
			t.Errorf("%s: %d %q", to, code, stdout)
		}
	}
	for _, name := range []string{"x.tideline", "x.txt"} {
		if code, _, stderr := tideline(t, "convert", in, filepath.Join(dir, name)); code != exitDone {
			t.Errorf("%s: %d %s", name, code, stderr)
		}
	}
}

// TestConvertRedacts: names go, figures stay.
func TestConvertRedacts(t *testing.T) {
	line := recorded(t, small)
	for _, to := range []string{"txt", "json", "csv", "tideline"} {
		code, plain, _ := tideline(t, "convert", line, "-", "--to", to, "--no-deflate")
		code2, red, stderr := tideline(t, "convert", line, "-", "--to", to, "--no-deflate", "--redact")
		if code != exitDone || code2 != exitDone {
			t.Fatal(stderr)
		}
		if !strings.Contains(plain, "SparseSoftmax") || strings.Contains(red, "Softmax") || !strings.Contains(red, "/op-") || !strings.Contains(red, "GPU_0_bfc") {
			t.Errorf("%s: redacted wrongly: %.2000s", to, red)
		}
	}
	var a, b bytes.Buffer
	for _, x := range []struct {
		to   *bytes.Buffer
		args []string
	}{{&a, nil}, {&b, []string{"--redact"}}} {
		_, stdout, _ := tideline(t, append([]string{"convert", line, "-", "--to", "csv"}, x.args...)...)
		rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows { // all but the names
			x.to.WriteString(strings.Join(append(append([]string{}, r[2:5]...), r[7:]...), ",") + "\n")
		}
	}
	if a.String() != b.String() || a.Len() < 1000 {
		t.Error("redaction changed figures")
	}
}

// TestExplainAsAPage: into a file, to the standard output, without names; and
// what excludes each other.
func TestExplainAsAPage(t *testing.T) {
	line := recorded(t, small)
	out := filepath.Join(t.TempDir(), "report.html")
	code, stdout, stderr := tideline(t, "explain", line, "--html", out, "--no-reruns")
	b, err := os.ReadFile(out)
	if code != exitDone || stdout != "" || !strings.Contains(stderr, "report.html: written") || err != nil || !strings.Contains(string(b), "GPU_0_bfc") {
		t.Errorf("%d %q %s %v: %.200s", code, stdout, stderr, err, b)
	}
	code, stdout, _ = tideline(t, "explain", line, "--html", "-", "--no-reruns", "--redact")
	if code != exitDone || !strings.HasPrefix(stdout, "<!doctype html>") || strings.Contains(stdout, "SparseSoftmax") || strings.Contains(stdout, filepath.Dir(line)) {
		t.Errorf("%d %.300s", code, stdout)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{line, "--html", line}, "written while it is read"},
		{[]string{line, "--html", out, "--json"}, "exclude each other"},
		{[]string{line, "--profiler", "--redact"}, "--profiler is text"},
	} {
		if code, _, stderr := tideline(t, append([]string{"explain"}, c.args...)...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: %d %s", c.args, code, stderr)
		}
	}
	bad := file(t, "b.png", "\x89PNG\r\n\x1a\n")
	gone := filepath.Join(t.TempDir(), "no.html")
	if code, _, stderr := tideline(t, "explain", bad, "--html", gone); code != exitFailed || !strings.Contains(stderr, "a picture") {
		t.Errorf("%d %s", code, stderr)
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("a page of nothing was left behind")
	}
}

// TestExplainTellsOfBothFiles: of two files each has its report, whichever comes
// first, and the same one twice, too.
func TestExplainTellsOfBothFiles(t *testing.T) {
	const snapshot, log = "../../../examples/files/small-model.pickle", "../../../examples/files/cifar-2023.log"
	heads := map[string]string{snapshot: "small-model.pickle: PyTorch memory snapshot\n", log: "cifar-2023.log: GPU_0_bfc ran out of memory\n"}
	for _, files := range [][]string{{snapshot, snapshot}, {log, snapshot}, {snapshot, log}} {
		code, stdout, stderr := tideline(t, append([]string{"explain", "--no-reruns"}, files...)...)
		first := strings.Index(stdout, heads[files[0]])
		second := strings.LastIndex(stdout, heads[files[1]])
		if code != exitDone || first < 0 || second <= first {
			t.Errorf("%v: exit %d, heads at %d and %d: %s%s", files, code, first, second, stdout, stderr)
		}
		code, stdout, _ = tideline(t, append([]string{"explain", "--no-reruns", "--json"}, files...)...)
		var got struct{ Reports []map[string]any }
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != exitDone || len(got.Reports) != 2 {
			t.Errorf("%v: exit %d, %d reports, %v", files, code, len(got.Reports), err)
		}
	}
}
