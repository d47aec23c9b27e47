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
	Nanos  float64 `json:"nanos"`            // for one of Per, in the fastest round
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
	nanos  float64
	allocs float64
	rounds int
	beside func() string // the note that needs the time
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
	{"kernels", kernels}, {"eager dispatch", dispatch}, {"training", training}, {"modelled steps", portable(yardstick.Steps)},
	{"allocators", allocators}, {"planners", planners}, {"timelines", timelines},
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
	if len(named) == 0 {
		return groups
	}
	return named
}

// portable makes a group of a yardstick's tasks.
func portable(f func() ([]yardstick.Task, error)) func(*Options) ([]*task, []Line, error) {
	return func(*Options) ([]*task, []Line, error) {
		list, err := f()
		return plain(list...), nil, err
	}
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
	for i := len(s.tasks) - 1; i >= 0; i-- { // what is compared with comes before
		t := s.tasks[i]
		if keep[t.Name] || s.o.Only.MatchString(t.group) || s.o.Only.MatchString(t.Name) {
			keep[t.Name] = true
			if t.To != "" {
				keep[t.To] = true
			}
		}
	}
	s.tasks = slices.DeleteFunc(s.tasks, func(t *task) bool { return !keep[t.Name] })
	s.remarks = slices.DeleteFunc(s.remarks, func(l Line) bool { return !s.o.Only.MatchString(l.Group) && !s.o.Only.MatchString(l.What) })
}

// measure runs a task once more.
func (t *task) measure() error {
	if t.Prepare != nil {
		if err := t.Prepare(); err != nil {
			return err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if err := t.Run(); err != nil {
		return err
	}
	nanos := float64(time.Since(began)) / float64(t.N)
	runtime.ReadMemStats(&after)
	allocs := float64(after.Mallocs-before.Mallocs) / float64(t.N)
	if t.rounds == 0 || nanos < t.nanos {
		t.nanos = nanos
	}
	if t.rounds == 0 || allocs < t.allocs {
		t.allocs = allocs
	}
	t.rounds++
	return nil
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
