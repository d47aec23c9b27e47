package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"tideline/native/replay"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/torch/rows"
	"tideline/shared/analysis"
	"tideline/shared/launch"
)

type replayCmd struct {
	File string   `arg:"" optional:"" help:"Timeline to rerun."`
	Set  []string `placeholder:"FIELD=VALUE" help:"Change a setting, such as devices.0.growth=false or batch=48; with --allocator, an option of the allocator, such as expandable_segments=true." sep:"none"`

	Allocator     string `placeholder:"NAME" help:"Replay the requests for memory alone, of a timeline or an allocation trace, through another allocator: bfc, torch, ort, async, rmm-pool, rmm-binning, rmm-arena, system or direct."`
	Matrix        bool   `help:"Replay the requests through all allocators, side by side."`
	Options       bool   `help:"With --allocator: list the options that --set takes."`
	Of            string `placeholder:"NAME" help:"With --allocator or --matrix: whose requests, such as GPU_0_bfc; otherwise the device allocator that held most."`
	Best          bool   `help:"Search the best setting of --allocator for these requests, by default of the one that made them, and say what it saves."`
	TorchVersion  string `placeholder:"X.Y" help:"With --best: leave options away that this version of PyTorch lacks, such as 2.8."`
	SmallestLimit bool   `help:"With --allocator or --matrix: the smallest limit that serves all requests."`
	Limit         string `placeholder:"SIZE" help:"With --allocator or --matrix: the most that the allocator may take; otherwise the recorded limit."`

	Start string `enum:"recorded,fresh" default:"recorded" help:"With --allocator or --matrix, where a recording begins in the middle: in the state that it shows, holes included (recorded), or with what was live in an allocator that has held nothing before (fresh)."`

	Answers string `placeholder:"TRACE" help:"Answer an allocation trace, gzipped or plain (-: standard input), with the BFC allocator's addresses; or a table op,id,size,stream with those of PyTorch's allocator, on a device of --limit, with its options by --set."`
	Profile string `enum:"current,classic" default:"current" help:"With --answers: which generation of TensorFlow's allocator (current, classic)."`
	Log     string `placeholder:"FILE" help:"With --answers: write what the allocator logs."`
	Op      string `placeholder:"NAME" help:"With --answers: name of the running op in the log."`
	Maps    string `placeholder:"PREFIX" help:"With --answers: write memory maps to PREFIX-0.pb and so on."`
	Output  string `short:"o" placeholder:"FILE" help:"Write the rerun as a timeline."`
	JSON    bool   `name:"json" help:"Print the comparison as JSON."`
}

// Run reruns a timeline or answers a trace.
func (r *replayCmd) Run(ctx context.Context, c *console) error {
	switch {
	case r.TorchVersion != "" && (!r.Best || !isVersion(r.TorchVersion)):
		return usage("--torch-version is a version such as 2.8, and goes with --best; it is %q", r.TorchVersion)
	case (r.Best || r.SmallestLimit) && !r.Options:
		return r.tune(ctx, c)
	case r.Allocator != "" || r.Matrix:
		return r.contest(c)
	case r.Of != "":
		return usage("--of goes with --allocator NAME or --matrix")
	case r.Limit != "" && r.Answers == "":
		return usage("--limit goes with --allocator NAME or --matrix; of a rerun set a device's own limit, such as --set devices.0.memory_limit=%s", r.Limit)
	case r.Answers != "" && r.File != "":
		return usage("give a timeline to rerun or --answers TRACE, not both")
	case r.Answers != "":
		return r.answer(c)
	case r.File == "":
		return usage("give a timeline to rerun, or an allocation trace with --answers TRACE")
	}
	before, err := summaryOf(c, "replay", r.File)
	if err != nil {
		return err
	}
	w, err := r.changed(before)
	if err != nil {
		return err
	}
	after, err := r.rerun(ctx, w)
	if err != nil {
		return err
	}
	if !r.JSON {
		c.say("The original is %s; the rerun has modelled times.\n", r.File)
	}
	if err := compare(before, after).print(c, r.JSON, [3]string{"original", "rerun", "rerun − original"}); err != nil {
		return err
	}
	switch {
	case len(after.Failures) > 0 && after.End == event.EndOutOfMemory:
		return errOutOfMemory
	case after.End != event.EndDone:
		return fmt.Errorf("the rerun ended early: %s %s", after.End, after.EndText)
	}
	return nil
}

// changed is the timeline's workload with the settings applied.
func (r *replayCmd) changed(s *analysis.Summary) (*api.Workload, error) {
	if s.Settings.Text("model") == "" { // those of an allocator name no model, either
		return nil, usage("%s does not say what was run: only timelines of Tideline's own runs can be rerun; its requests for memory alone can be replayed through other allocators with --allocator NAME or --matrix", r.File)
	}
	w, problems := api.FromFields(s.Settings)
	if len(problems) > 0 {
		return nil, &fileProblems{r.File, problems}
	}
	if err := applySets(w, r.Set); err != nil {
		return nil, err
	}
	if problems := w.Validate(launch.Known()); len(problems) > 0 {
		return nil, usageError{problems}
	}
	w.Defaults()
	return w, nil
}

// rerun runs a workload on the modelled backend.
func (r *replayCmd) rerun(ctx context.Context, w *api.Workload) (*analysis.Summary, error) {
	g := &going{file: r.File, w: w, output: r.Output}
	if r.Output != "" && same(r.File, r.Output) {
		return nil, usage("%s would be overwritten by its own rerun: choose another name with -o", r.File)
	}
	if err := g.open(true); err != nil {
		return nil, err
	}
	cmd := runCmd{Modelled: true}
	cmd.together(ctx, []*going{g}, &progress{}, virtualOnly(""))
	if err := errors.Join(g.err, g.finish()); err != nil {
		return nil, fmt.Errorf("rerun %s: %w", r.File, err)
	}
	return g.timeline.Summary(), nil
}

func (r *replayCmd) answer(c *console) (err error) {
	in := c.in
	if r.Answers != "-" {
		f, err := os.Open(r.Answers)
		if err != nil {
			return fmt.Errorf("open the trace %s: %w", r.Answers, without(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	o := replay.Options{OpName: r.Op, MapPrefix: r.Maps}
	if r.Limit != "" || len(r.Set) > 0 {
		o.Torch = r.table
	}
	if r.Profile == bfc.Classic.String() {
		o.Profile = bfc.Classic
	}
	if r.Log != "" {
		f, createErr := os.Create(r.Log)
		if createErr != nil {
			return fmt.Errorf("write the allocator's log: %w", createErr)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.Log = f
	}
	if err := replay.Answers(in, c.out, o); err != nil {
		if _, wrong := errors.AsType[usageError](err); wrong || errors.Is(err, replay.ErrOptions) {
			return usageError{err}
		}
		return fmt.Errorf("answer %s: %w", r.Answers, err)
	}
	return nil
}

// table is what --limit and --set say of the device and the allocator that
// answer a table of PyTorch's requests.
func (r *replayCmd) table() (o rows.Options, err error) {
	if o.Capacity, err = r.limit(); err != nil {
		return o, err
	}
	k, err := kinds.ByName("torch")
	if err != nil {
		return o, err
	}
	var list []kinds.Setting
	for _, text := range r.Set {
		s, err := kinds.ParseSetting(text)
		if err != nil {
			return o, usageError{err}
		}
		list = append(list, s)
	}
	if err := k.Check(list); err != nil {
		return o, usageError{err}
	}
	for _, s := range list {
		if s.Name == "memory_fraction" {
			o.Fraction, err = strconv.ParseFloat(s.Value, 64)
		} else {
			err = o.Settings.Set(strings.ToLower(s.Name), s.Value)
		}
		if err != nil {
			return o, usageError{err}
		}
	}
	if err := o.Settings.Validate(); err != nil {
		return o, usageError{err}
	}
	return o, nil
}
