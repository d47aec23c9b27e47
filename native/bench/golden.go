package bench

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/reference"
	"tideline/shared/alloc/trace"
	"tideline/shared/plan"
	"tideline/shared/yardstick"
)

// noGoldens is the remark where recorded data is missing.
const noGoldens = "--goldens FOLDER adds the recorded ones"

// quickest are the nanoseconds an operation of TensorFlow's own C++ allocator,
// the fastest of four builds, on a machine of two shared cores at its quietest.
var quickest = map[string]float64{"bench-dnn": 45, "bench-eager": 56, "bench-nlp": 70, "bench-loguniform": 128}

// torchGoal is the speed of the C++ derived from PyTorch's allocator, in
// million operations a second on such a machine.
const torchGoal = 2.9

// allocators are the portable tasks and the recorded traces.
func allocators(o *Options) ([]*task, []Line, error) {
	list, err := yardstick.Allocators()
	if err != nil {
		return nil, nil, err
	}
	tasks := both(list...)
	for _, t := range tasks {
		if t.Name == yardstick.TorchName {
			t.beside = func() string {
				return fmt.Sprintf("%.2f million operations a second, 4,000 blocks live; C++ derived from PyTorch's, elsewhere: %.1f", 1e3/t.nanos, torchGoal)
			}
		}
	}
	if o.Goldens == "" {
		return tasks, []Line{{What: "recorded traces", Note: noGoldens}}, nil
	}
	for _, name := range []string{"bench-dnn", "bench-eager", "bench-nlp", "bench-loguniform"} {
		t, build, plainOne, err := recorded(filepath.Join(o.Goldens, "goldens", "bfc", name+".trace.gz"), name)
		if err != nil {
			return nil, nil, err
		}
		list := plain(yardstick.BFC(t, build, plainOne)...)
		for _, ours := range list[1:] {
			ours.beside = func() string {
				return fmt.Sprintf("%.2f of TensorFlow's C++ elsewhere, at its quietest: %.0f ns", ours.nanos/quickest[name], quickest[name])
			}
		}
		tasks = append(tasks, list...)
	}
	return tasks, nil, nil
}

// recorded reads a trace with the allocators that its head describes.
func recorded(path, name string) (*yardstick.Trace, func() (*bfc.Allocator, error), func() (*reference.Allocator, error), error) {
	fail := func(err error) (*yardstick.Trace, func() (*bfc.Allocator, error), func() (*reference.Allocator, error), error) {
		return nil, nil, nil, fmt.Errorf("recorded trace %s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return fail(err)
	}
	r, err := trace.NewReader(z)
	if err != nil {
		return fail(err)
	}
	t := &yardstick.Trace{Name: name}
	for {
		op, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fail(err)
		}
		switch op.Kind {
		case trace.Alloc:
			t.Ops = append(t.Ops, yardstick.Op{Slot: int32(op.ID), Bytes: op.Bytes, Align: op.Align})
		case trace.Free:
			t.Ops = append(t.Ops, yardstick.Op{Slot: int32(op.ID)})
		default:
			continue
		}
		t.Slots = max(t.Slots, int(op.ID)+1)
	}
	head := r.Options
	build := func() (*bfc.Allocator, error) { return head.Build(bfc.Current, nil) }
	plainOne := func() (*reference.Allocator, error) {
		s, err := alloc.NewSpace(alloc.SpaceOptions{Base: head.Base, Joins: head.Joins, Card: alloc.NewCard(head.Capacity)})
		if err != nil {
			return nil, err
		}
		return reference.New(s, reference.Options{Limit: head.Limit, Growth: head.Growth, Collect: head.GC, Fragmentation: head.Frag}), nil
	}
	return t, build, plainOne, nil
}

// hard are the published problems that are hard to pack.
const hard = "A B C D E F G H I J K"

// hardest are those without a known plan at their load, and the height that is
// the goal for them.
var hardest = map[string]int64{"D": 1_031_168, "J": 1_036_288}

// budget of the search in decisions.
const budget = 6 << 20

// planners are the portable tasks and the published problems. Those take
// seconds, so that one round is enough.
func planners(o *Options) ([]*task, []Line, error) {
	list, err := yardstick.Planners()
	if err != nil {
		return nil, nil, err
	}
	tasks := both(list...)
	if o.Goldens == "" {
		return tasks, []Line{{What: "MiniMalloc's problems and large graphs", Note: noGoldens}}, nil
	}
	var proven []*task
	for name := range strings.FieldsSeq(hard) {
		t, err := published(o.Goldens, name)
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, t)
		if hardest[name] == 0 {
			proven = append(proven, t)
		}
	}
	last := proven[len(proven)-1]
	alone := last.beside
	last.beside = func() string {
		sum := 0.0
		for _, t := range proven {
			sum += t.nanos
		}
		return fmt.Sprintf("%s; all but D and J together %.3f s", alone(), sum/1e9)
	}
	graphs, err := static(o.Goldens)
	return append(tasks, graphs...), nil, err
}

func published(goldens, name string) (*task, error) {
	p, err := problem(filepath.Join(goldens, "goldens", "minimalloc", "challenging", name+".1048576.csv"))
	if err != nil {
		return nil, err
	}
	return search("MiniMalloc's "+name, p, plan.Options{Nodes: budget, Goal: hardest[name]}), nil
}

// search is planning of one problem, which takes seconds.
func search(name string, p *plan.Problem, o plan.Options) *task {
	var best *plan.Result
	t := &task{once: true, Task: yardstick.Task{Name: name, Per: "plan", N: 1, Run: func() error {
		var err error
		best, err = plan.Minimize(p, o)
		return err
	}}}
	t.beside = func() string {
		s := fmt.Sprintf("%.3f s, %d buffers, height %d, %.3f %% above the load", t.nanos/1e9, len(p.Buffers), best.Height, above(best.Height, best.Load))
		if best.Proven() {
			s += ", proven lowest"
		}
		if o.Goal > 0 {
			s += fmt.Sprintf(", the goal was %d", o.Goal)
		}
		return s
	}
	return t
}
