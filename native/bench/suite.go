package bench

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"time"

	"tideline/shared/yardstick"
)

// Line is one measurement.
type Line struct {
	Group  string  `json:"group"`
	What   string  `json:"what"`
	Nanos  float64 `json:"nanos"`            // for one of Per, at the quietest
	Per    string  `json:"per,omitempty"`    // "" for a line that is but a Note
	Second float64 `json:"per_second"`       // how many of Per are done in a second
	Allocs float64 `json:"allocs"`           // heap allocations for one of Per; -1: not counted
	Ratio  float64 `json:"ratio,omitempty"`  // of Nanos to those of To
	To     string  `json:"to,omitempty"`     // "" is nothing
	Rounds int     `json:"rounds,omitempty"` // that it ran
	Note   string  `json:"note,omitempty"`
}

// Options say what to measure.
type Options struct {
	Rounds int            // of each task, at least 1
	Only   *regexp.Regexp // matches a group or a name; nil is everything
	Events int            // length of the made-up timeline
	// Goldens is the folder of recorded truth, with goldens/ in it; "" is none.
	Goldens string
	// WASM is the command that runs wasm/bench once and prints its figures;
	// nil is none.
	WASM []string
}

// task is a yardstick's, timed.
type task struct {
	yardstick.Task
	group  string
	once   bool // is long enough to tell in one round
	ran    bool
	nanos  float64 // the quietest, see yardstick.Stopwatch
	allocs float64 // the fewest of a run
	watch  *yardstick.Stopwatch
	rounds int
	beside func() string // the note that needs the time
	both   bool          // is measured as WebAssembly too
}

func (t *task) note() string {
	switch {
	case t.beside != nil:
		return t.beside()
	case t.Note != nil:
		return t.Note()
	}
	return ""
}

// group makes tasks of one subject.
type group struct {
	name string
	make func(o *Options) ([]*task, []Line, error) // Lines are remarks
}

var groups = []group{
	{"kernels", kernels},
	{"eager dispatch", dispatch},
	{"training", training},
	{"modelled steps", steps},
	{"allocators", allocators},
	{"planners", planners},
	{"timelines", timelines},
	{"readers", readers},
}

// Run measures. It ends early with an error when ctx is done.
func Run(ctx context.Context, o Options) ([]Line, error) {
	s := suite{o: o}
	for _, g := range asked(o.Only) {
		tasks, remarks, err := g.make(&o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		s.add(g.name, tasks, remarks)
	}
	s.choose()
	if len(s.tasks) == 0 {
		return nil, fmt.Errorf("nothing is named like %q", o.Only)
	}
	if o.Only != nil && !o.Only.MatchString(wasmGroup) {
		o.WASM = nil
	}
	w := newWASM(o.WASM)
	for round := range o.Rounds {
		for _, t := range s.tasks {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if t.once && round > 0 {
				continue
			}
			if err := t.measure(); err != nil {
				return nil, fmt.Errorf("%s: %w", t.Name, err)
			}
		}
		if err := w.round(ctx); err != nil {
			return nil, err
		}
	}
	return append(s.lines(), w.lines(&s)...), nil
}

// asked are the groups of which an expression names at least one, or all: some
// take a while to make.
func asked(only *regexp.Regexp) []group {
	if only == nil {
		return groups
	}
	named := slices.Clone(groups)
	named = slices.DeleteFunc(named, func(g group) bool { return !only.MatchString(g.name) })
	if len(named) == 0 || only.MatchString(wasmGroup) {
		return groups
	}
	return named
}

// steps are the portable tasks, with what a whole step takes.
func steps(*Options) ([]*task, []Line, error) {
	list, err := yardstick.Steps()
	if err != nil {
		return nil, nil, err
	}
	tasks := both(list...)
	for _, t := range tasks {
		t.beside = func() string {
			return fmt.Sprintf("%.2f million ops a second, %.3f ms a step, %s", 1e3/t.nanos, t.nanos*float64(t.N)/yardstick.StepsPerRun/1e6, t.Note())
		}
	}
	return tasks, nil, nil
}

// both are tasks that are measured as WebAssembly too.
func both(list ...yardstick.Task) []*task {
	out := plain(list...)
	for _, t := range out {
		t.both = !t.Plain
	}
	return out
}

func plain(list ...yardstick.Task) []*task {
	out := make([]*task, len(list))
	for i := range list {
		out[i] = &task{Task: list[i]}
	}
	return out
}

// suite is all tasks of a run.
type suite struct {
	o       Options
	tasks   []*task
	remarks []Line
}

func (s *suite) add(group string, tasks []*task, remarks []Line) {
	for _, t := range tasks {
		t.group = group
		s.tasks = append(s.tasks, t)
	}
	for i := range remarks {
		remarks[i].Group, remarks[i].Allocs = group, -1
		s.remarks = append(s.remarks, remarks[i])
	}
}

// choose keeps what Options.Only asks for, with what that is compared with.
func (s *suite) choose() {
	if s.o.Only == nil {
		return
	}
	keep := map[string]bool{}
	for _, t := range slices.Backward(s.tasks) { // what is compared with comes before
		if keep[t.Name] || s.o.Only.MatchString(t.group) || s.o.Only.MatchString(t.Name) || t.both && s.o.Only.MatchString(wasmGroup) {
			keep[t.Name] = true
			if t.To != "" {
				keep[t.To] = true
			}
		}
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return !keep[t.Name] })
	s.remarks = slices.DeleteFunc(s.remarks, func(l Line) bool { return !s.o.Only.MatchString(l.Group) && !s.o.Only.MatchString(l.What) })
}

// What a round gives a short task: as many runs as go into a time, within
// bounds, since a single one of a few microseconds tells little.
const (
	roundTime = 30 * time.Millisecond
	mostRuns  = 100
)

// measure runs a task for another round.
func (t *task) measure() error {
	spent := time.Duration(0)
	for n := 0; n == 0 || n < mostRuns && spent < roundTime && !t.once; n++ {
		took, err := t.run()
		if err != nil {
			return err
		}
		spent += took
	}
	t.rounds++
	return nil
}

var start = time.Now()

func clock() int64 { return int64(time.Since(start)) }

// run runs it once; the best of the runs counts, stretch by stretch.
func (t *task) run() (time.Duration, error) {
	if t.Prepare != nil {
		if err := t.Prepare(); err != nil {
			return 0, err
		}
	}
	if t.watch == nil {
		t.watch = yardstick.NewStopwatch(clock)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	took, err := t.watch.Run(&t.Task)
	if err != nil {
		return 0, err
	}
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / float64(t.N)
	t.nanos = float64(t.watch.Quietest()) / float64(t.N)
	if !t.ran || allocs < t.allocs {
		t.allocs = allocs
	}
	t.ran = true
	return time.Duration(took), nil
}

func (s *suite) find(name string) *task {
	for _, t := range s.tasks {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// lines are the results, group by group.
func (s *suite) lines() []Line {
	var out []Line
	for _, g := range groups {
		for _, t := range s.tasks {
			if t.group != g.name {
				continue
			}
			l := Line{Group: t.group, What: t.Name, Nanos: t.nanos, Per: t.Per, Second: 1e9 / t.nanos, Allocs: t.allocs, Note: t.note(), Rounds: t.rounds}
			if y := s.find(t.To); y != nil {
				l.To, l.Ratio = y.Name, t.nanos/y.nanos
			}
			out = append(out, l)
		}
		for _, l := range s.remarks {
			if l.Group == g.name {
				out = append(out, l)
			}
		}
	}
	return out
}
