package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/plan"
)

// buffers have their optimum of 9 one above the load.
const buffers = "id,lower,upper,size\n0,4,7,4\n1,3,5,4\n2,0,2,4\n3,1,4,3\n4,6,7,1\n5,2,4,1\n6,0,1,4\n7,5,7,1\n8,1,3,1\n9,5,7,2\n10,5,6,1\n11,2,3,3\n"

func TestPlan(t *testing.T) {
	dir := t.TempDir()
	in := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, named, bad := in("buffers.csv", buffers), in("n.8.csv", buffers), in("bad.csv", "id,lower,upper,size\na,0,x,2\n")
	fixed := in("fixed.csv", "id,lower,upper,size,offset\na,0,3,2,0\nb,1,2,2,1\n")
	for _, c := range []struct {
		name        string
		args        []string
		code        int
		out, stderr string
	}{
		{"minimize", []string{good, "--minimize"}, 0, "proven", ""},
		{"without a question", []string{good}, 0, "proven", ""},
		{"a capacity that suffices", []string{good, "--capacity", "9"}, 0, "best greedy", ""},
		{"one with a unit", []string{good, "--capacity", "0.5KiB"}, 0, "512 B", ""},
		{"one of no size", []string{good, "--capacity", "large"}, 2, "", "--capacity: \"large\" is not a size"},
		{"one of 0", []string{good, "--capacity", "0"}, 2, "", "--capacity takes a size above 0"},
		{"one that does not", []string{good, "--capacity", "8"}, 1, "height", "no plan fits into 8: none is lower than 9"},
		{"one in the name", []string{named}, 1, "height", "no plan fits into 8"},
		{"the name does not bind", []string{named, "--minimize"}, 0, "proven", ""},
		{"a budget of decisions", []string{good, "--nodes", "4"}, 0, "decision", ""},
		{"both questions", []string{good, "--minimize", "--capacity", "5"}, 2, "", "not both"},
		{"no time", []string{good, "--timeout", "0s"}, 2, "", "--timeout takes"},
		{"no file", nil, 2, "", "expected \"<file>\""},
		{"a file that is not there", []string{filepath.Join(dir, "none.csv")}, 1, "", "open the table"},
		{"a bad table", []string{bad}, 1, "", "line 2, column 5: upper \"x\""},
		{"fixed offsets that conflict", []string{fixed}, 1, "", "buffers a and b overlap"},
		{"JSON and the table at one place", []string{good, "--json", "-o", "-"}, 2, "", "both want the standard output"},
		{"over itself", []string{good, "-o", good}, 2, "", "overwritten"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := tideline(t, append([]string{"plan"}, c.args...)...)
			if code != c.code || !strings.Contains(stdout, c.out) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit %d, want %d\n%s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

// TestPlanWritesOffsets: what -o writes is the plan that --json tells of.
func TestPlanWritesOffsets(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv")
	if err := os.WriteFile(file, []byte(buffers), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := tideline(t, "plan", file, "--minimize", "--json", "-o", out)
	var said planned
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || code != exitDone {
		t.Fatalf("exit %d: %v\n%s%s", code, err, stdout, stderr)
	}
	if !said.Proven || said.Height != 9 || said.Load != 8 || said.Floor != 9 || said.Buffers != 12 || said.Greedy == "" {
		t.Errorf("said %+v, want height 9 proven above the load 8", said)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.ReadCSV(f)
	if err != nil {
		t.Fatal(err)
	}
	got := plan.Plan{Height: said.Height}
	for _, b := range p.Buffers {
		got.Offsets = append(got.Offsets, b.Offset)
		if !b.Fixed {
			t.Errorf("buffer %s has no offset", b.ID)
		}
	}
	if err := plan.Check(p, got); err != nil {
		t.Error(err)
	}
}

// TestPlanWritesTheTableToAPipe: -o - is the standard output, as everywhere,
// and the table is all that is there.
func TestPlanWritesTheTableToAPipe(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("two.csv", []byte("lower,size,id,upper\n0,8,a,4\n2,3,b,6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := tideline(t, "plan", "two.csv", "--minimize", "-o", "-")
	if want := "id,lower,upper,size,offset\na,0,4,8,0\nb,2,6,3,8\n"; code != exitDone || stdout != want || stderr != "" {
		t.Errorf("exit %d, wrote %q, want %q; said %q", code, stdout, want, stderr)
	}
	if code, stdout, stderr = tideline(t, "plan", "two.csv", "--capacity", "10", "-o", "-"); code != exitFailed || stdout != "" || !strings.Contains(stderr, "none is lower than 11") {
		t.Errorf("exit %d, wrote %q, said %q: want nothing written and the reason", code, stdout, stderr)
	}
	if _, err := os.Stat("-"); err == nil {
		t.Error("a file named - was made")
	}
}
