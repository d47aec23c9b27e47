package bench

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tideline/shared/golden"
	"tideline/shared/yardstick"
)

func names(lines []Line) []string {
	var out []string
	for i := range lines {
		out = append(out, lines[i].What)
	}
	return out
}

func TestOneGroupAloneIsMeasured(t *testing.T) {
	lines, err := Run(context.Background(), Options{Rounds: 2, Events: 2000, Only: regexp.MustCompile("timelines")})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"copy of events in memory", "encode", "encode, deflated", "record", "decode", "store: columns and pyramids", "rerun of the demo, modelled", "the same, recorded"}
	if got := names(lines); !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range lines {
		l := &lines[i]
		if l.Group != "timelines" || l.Nanos <= 0 || l.Second <= 0 || l.Per != "event" || l.Rounds != 2 || l.Allocs < 0 {
			t.Errorf("%+v", l)
		}
		if (l.To == "") != (l.Ratio == 0) {
			t.Errorf("%s has ratio %v to %q", l.What, l.Ratio, l.To)
		}
	}
}

func TestWhatATaskIsComparedWithIsMeasuredToo(t *testing.T) {
	s := suite{o: Options{Only: regexp.MustCompile("c$")}}
	none := func() error { return nil }
	s.add("group", plain(
		yardstick.Task{Name: "a", N: 1, Run: none}, yardstick.Task{Name: "b", To: "a", N: 1, Run: none},
		yardstick.Task{Name: "c", To: "b", N: 1, Run: none}, yardstick.Task{Name: "d", N: 1, Run: none},
	), []Line{{What: "remark"}, {What: "remark on c"}})
	s.choose()
	var got []string
	for _, x := range s.tasks {
		got = append(got, x.Name)
	}
	if !slices.Equal(got, []string{"a", "b", "c"}) || len(s.remarks) != 1 {
		t.Errorf("kept %q and %v", got, s.remarks)
	}
}

func TestTheFastestRoundCounts(t *testing.T) {
	calls := 0
	x := &task{Task: yardstick.Task{Name: "x", N: 10, Run: func() error {
		calls++
		if calls == 1 {
			sink = make([]byte, 1<<16)
		}
		return nil
	}}}
	for range 3 {
		if err := x.measure(); err != nil {
			t.Fatal(err)
		}
	}
	if x.rounds != 3 || x.allocs != 0 || calls < 3 || calls > 3*mostRuns {
		t.Errorf("%d rounds, %v heap allocations in the best", x.rounds, x.allocs)
	}
	failing := errors.New("failing")
	for _, bad := range []yardstick.Task{
		{N: 1, Run: func() error { return failing }},
		{N: 1, Prepare: func() error { return failing }, Run: func() error { return nil }},
	} {
		if err := (&task{Task: bad}).measure(); !errors.Is(err, failing) {
			t.Errorf("error %v", err)
		}
	}
}

var sink []byte

func TestFiguresOfWebAssembly(t *testing.T) {
	w := newWASM([]string{"node"})
	for _, out := range []string{"a, b\t4\t30\t52\nc\t1\t7\n", "a, b\t4\t40\t11\nc\t1\t9\n"} {
		if err := w.read([]byte(out)); err != nil {
			t.Fatal(err)
		}
	}
	s := suite{tasks: []*task{{Task: yardstick.Task{Name: "a, b", Per: "op"}, nanos: 4.1}}}
	lines := w.lines(&s)
	if len(lines) != 1 || lines[0].Nanos != 10.25 || lines[0].Ratio != 2.5 || lines[0].Note != "0.40 of the native speed" || lines[0].Group != wasmGroup {
		t.Errorf("%+v", lines)
	}
	for _, out := range []string{"no tab", "a\t5", "a\tfast\t4", "a\t0\t3", "a\t3\t-1", "a\t3\tNaN"} {
		if err := newWASM(nil).read([]byte(out)); err == nil {
			t.Errorf("%q was taken", out)
		}
	}
	if lines := newWASM(nil).lines(&suite{}); len(lines) != 1 || !strings.Contains(lines[0].Note, "go run ./build bench") {
		t.Errorf("without a command: %+v", lines)
	}
	if err := newWASM([]string{filepath.Join(t.TempDir(), "missing")}).round(context.Background()); err == nil {
		t.Error("a command that is not there ran")
	}
}

// The tasks as WebAssembly are those of the native groups, by name.
func TestEveryPortableTaskIsInAGroup(t *testing.T) {
	tasks, err := yardstick.Portable()
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, g := range groups {
		if g.name == "kernels" || g.name == "training" {
			continue
		}
		list, _, err := g.make(&Options{Events: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			known = append(known, x.Name)
		}
	}
	for i := range tasks {
		if !slices.Contains(known, tasks[i].Name) {
			t.Errorf("%s is measured as WebAssembly only", tasks[i].Name)
		}
	}
}

func TestRecordedTracesAndProblemsAreRead(t *testing.T) {
	root := filepath.Join(golden.Dir(t, "bfc"), "..", "..")
	trace, build, plainOne, err := recorded(filepath.Join(root, "goldens", "bfc", "basic-20.trace.gz"), "basic-20")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range yardstick.BFC(trace, build, plainOne) {
		if err := errors.Join(x.Prepare(), x.Run()); err != nil || x.N != len(trace.Ops) || x.N == 0 {
			t.Errorf("%s, %d operations: %v", x.Name, x.N, err)
		}
	}
	p, err := published(root, "A")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.measure(); err != nil || !strings.Contains(p.note(), "proven lowest") {
		t.Errorf("A: %q, %v", p.note(), err)
	}
	graphs, err := static(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"70 of 70", "the goal is 50 ms"} {
		if err := graphs[i].measure(); err != nil || !strings.Contains(graphs[i].note(), want) {
			t.Errorf("%s: %q, %v; want %q", graphs[i].Name, graphs[i].note(), err, want)
		}
	}
	for _, err := range []error{
		func() error { _, err := static(t.TempDir()); return err }(),
		func() error { _, err := published(t.TempDir(), "A"); return err }(),
		func() error {
			_, _, _, err := recorded(filepath.Join(root, "goldens", "bfc", "README.md"), "x")
			return err
		}(),
		func() error { _, _, _, err := recorded(filepath.Join(t.TempDir(), "x"), "x"); return err }(),
	} {
		if err == nil {
			t.Error("what is no recording was read")
		}
	}
}

func TestKernelsAndTrainingRun(t *testing.T) {
	run, err := convolution(8, 3, 4, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	product, err := product(extents{8, 9, 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(run(), product()); err != nil {
		t.Error(err)
	}
	tasks, _, err := training(&Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := tasks[0].Run(); err != nil {
		t.Error(err)
	}
}

func TestOnlyWhatIsThere(t *testing.T) {
	_, err := Run(context.Background(), Options{Rounds: 1, Events: 1000, Only: regexp.MustCompile("no such thing in planners")})
	if err == nil || !strings.Contains(err.Error(), "nothing is named") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, Options{Rounds: 1, Events: 1000, Only: regexp.MustCompile("timelines")}); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
