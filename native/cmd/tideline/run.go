package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"tideline/native/agent/record"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/fit"
	"tideline/shared/launch"
)

type runCmd struct {
	Workload []string `arg:"" help:"Workload files, YAML or JSON; - is the standard input. Several take turns step by step on one machine: those that name one card share its memory."`
	Output   []string `short:"o" placeholder:"FILE" help:"Timeline to write; once per workload. Of a run that fails before its first allocation it says why, and keeps the settings to replay it with others." sep:"none"`
	Set      []string `placeholder:"FIELD=VALUE" help:"Change a field of the workloads, such as devices.0.growth=true." sep:"none"`
	JSON     bool     `name:"json" help:"Print the summary as JSON."`
	Quiet    bool     `short:"q" help:"No progress bar."`
	Modelled bool     `help:"Model time only, compute nothing: same memory, no loss or accuracy."`
	Deflate  bool     `help:"Write smaller files, a little slower."`
}

// going is one of the runs of a command.
type going struct {
	computes bool // else only the modelled clock runs
	file     string
	w        *api.Workload
	output   string
	rec      *record.Recording // nil without an output
	disk     record.File
	strs     event.Strings
	timeline *analysis.Timeline
	runner   *launch.Runner
	result   launch.Result
	err      error
	over     bool
}

// Run runs workloads to their end.
func (r *runCmd) Run(ctx context.Context, c *console) error {
	runs, err := r.prepare(c)
	if err != nil {
		return err
	}
	began := time.Now()
	bar := newProgress(c, runs, r.Quiet || r.JSON)
	own := r.cards(c, runs)
	defer own.close()
	r.together(ctx, runs, bar, own)
	bar.finish()
	return r.report(c, runs, time.Since(began))
}

func (r *runCmd) prepare(c *console) ([]*going, error) {
	if len(r.Output) > 0 && len(r.Output) != len(r.Workload) {
		return nil, usage("%s for %s: give -o once per workload, in their order", count(len(r.Output), "output"), count(len(r.Workload), "workload"))
	}
	var runs []*going
	for i, name := range r.Workload {
		w, err := readWorkload(c, name, r.Set)
		if err != nil {
			return nil, err
		}
		w.Defaults()
		g := &going{file: name, w: w}
		if len(r.Output) > 0 {
			g.output = r.Output[i]
		}
		runs = append(runs, g)
	}
	for _, g := range runs { // files only once all workloads are fine
		if err := g.open(r.Deflate); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// open begins the recording.
func (g *going) open(deflate bool) error {
	g.timeline = analysis.NewTimeline(&g.strs)
	if g.output == "" {
		return nil
	}
	if err := replaceable(g.output); err != nil {
		return err
	}
	f, err := record.Create(g.output, true)
	if err != nil {
		return err
	}
	g.disk, g.rec = f, record.New(f, &g.strs, deflate)
	return nil
}

// replaceable keeps a slip of the finger from overwriting something that is
// not a timeline.
func replaceable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return nil // not there, or creating it will say what is wrong
	}
	defer func() { _ = f.Close() }() // it was only read
	if st, err := f.Stat(); err != nil || st.Size() == 0 {
		return nil
	}
	if _, err := timeline.NewStream(f); errors.Is(err, timeline.ErrNotTimeline) {
		return usage("%s exists and is not a timeline: choose another name with -o", name)
	}
	return nil
}

// Emit is the run's sink.
func (g *going) Emit(e *event.Event) {
	g.timeline.Emit(e)
	if g.rec != nil {
		g.rec.Emit(e)
	}
}

func (g *going) start(ctx context.Context, own *cards, modelled bool) {
	o := launch.Options{
		Strings: &g.strs, Sink: g, Machine: own.machine,
		Stop: func() bool {
			if g.rec != nil {
				g.rec.Poll()
			}
			return ctx.Err() != nil
		},
	}
	g.computes = !modelled
	if g.computes {
		g.err = compute(g.w, &o, own)
	}
	if g.err == nil {
		g.runner, g.err = launch.Start(*g.w, o)
	}
	if g.err != nil {
		g.over = true
		g.result = launch.Result{Reason: event.EndFailed, Message: g.err.Error()}
	}
}

// together lets runs take turns, a step each, in the order of the command
// line: on one goroutine, so that who gets which memory is always the same.
func (r *runCmd) together(ctx context.Context, runs []*going, bar *progress, own *cards) {
	for _, g := range runs {
		g.start(ctx, own, r.Modelled)
		// The first step comes before the next start: a program that is there
		// first has its memory first.
		g.step(ctx, bar)
	}
	for more := true; more; {
		more = false
		for _, g := range runs {
			g.step(ctx, bar)
			more = more || !g.over
		}
	}
}

// cards opens this machine's own cards when a workload asks for accelerators,
// and says in one line when a build that could use them finds none.
func (r *runCmd) cards(c *console, runs []*going) *cards {
	for _, g := range runs {
		if g.w.Accelerators() == 0 || r.Modelled {
			continue
		}
		own := openCards()
		if own.problem != "" && !asksForReal(g.w) {
			c.note("%s; running on virtual cards\n", own.problem)
		}
		return own
	}
	return virtualOnly("")
}

// clock says what the run's times are: a virtual card's are always modelled.
func (g *going) clock() string {
	if g.computes && (g.w.Accelerators() == 0 || asksForReal(g.w)) {
		return "measured"
	}
	return "modelled"
}

func (g *going) step(ctx context.Context, bar *progress) {
	if g.over {
		return
	}
	more := ctx.Err() == nil && g.runner.Step()
	bar.step()
	if more {
		return
	}
	g.over = true
	g.result, g.err = g.runner.Finish()
}

// finish closes the recording and returns what was wrong with it.
func (g *going) finish() error {
	if g.rec == nil {
		return nil
	}
	if !g.rec.Ended() { // it never began: its file says why, and what was to run
		if len(g.timeline.Summary().Settings) == 0 {
			settings := event.Event{Kind: event.Settings, Step: event.NoStep, Text: g.strs.ID(g.w.Fields().Encode())}
			g.Emit(&settings)
		}
		end := event.Event{Kind: event.End, Step: event.NoStep, Cause: uint8(event.EndFailed), Text: g.strs.ID(g.result.Message)}
		g.Emit(&end)
	}
	err := g.rec.Finish()
	return errors.Join(err, g.disk.Close())
}

func (r *runCmd) report(c *console, runs []*going, took time.Duration) error {
	var failed, oom bool
	var sums []*runSummary
	for _, g := range runs {
		writeErr := g.finish()
		s := summarise(g, took)
		if s.OOM != nil {
			s.OOM.Explanation = g.leak() + s.OOM.Explanation
		}
		if writeErr != nil {
			failed = true
			s.Error = fmt.Sprintf("the run went on, but %s is incomplete: %v", g.output, writeErr)
		}
		sums = append(sums, s)
		switch {
		case g.result.Reason == event.EndOutOfMemory:
			oom = true
		case g.err != nil || g.result.Reason != event.EndDone:
			failed = true
		}
	}
	number(sums)
	if r.JSON {
		if err := printJSON(c, sums); err != nil {
			return err
		}
	} else {
		for i, s := range sums {
			if i > 0 {
				c.say("\n")
			}
			s.print(c)
		}
	}
	switch {
	case oom:
		return errOutOfMemory
	case failed:
		return errSaid
	}
	return nil
}

// leak says in a paragraph's first words that a leak filled the memory, or
// nothing. Only what a workload keeps can leak, and a rerun tells: the run
// itself keeps sums alone.
func (g *going) leak() string {
	if len(g.w.Keep) == 0 {
		return ""
	}
	found, _ := new(fit.Prober).Diagnose(g.w)
	for i := range found {
		if f := &found[i]; f.ID == finding.OutOfMemory && f.Kind == "leak" && len(f.Text) > 0 {
			return "A leak filled the memory: " + f.Text[0] + " Find what keeps them (here keep: " + strings.Join(g.w.Keep, ", ") + "); a smaller batch only puts the end off. "
		}
	}
	return ""
}
