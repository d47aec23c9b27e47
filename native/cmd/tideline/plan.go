package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tideline/protocol/event"
	"tideline/shared/plan"
)

type planCmd struct {
	File     string        `arg:"" help:"Table of buffers: id,lower,upper,size and, where wanted, alignment, hint, gaps and offset. -: standard input."`
	Capacity string        `placeholder:"SIZE" help:"Find a plan of at most this height, such as 1048576 or 1MiB. Without it and --minimize, the number in the file's name, as in A.1048576.csv."`
	Minimize bool          `help:"Find the lowest plan, and prove that it is."`
	Timeout  time.Duration `default:"60s" help:"Time to search for; the best plan until then is kept."`
	Nodes    int64         `placeholder:"N" help:"Search for so many decisions at most: the same plan on every machine."`
	Output   string        `short:"o" placeholder:"FILE" help:"Write the table with the plan's offsets. -: to the standard output, in place of the report."`
	JSON     bool          `name:"json" help:"Print JSON."`

	most int64 // the greatest height that will do; 0: any
}

// planned is what is said about a plan.
type planned struct {
	File     string  `json:"file"`
	Buffers  int     `json:"buffers"`
	Capacity int64   `json:"capacity,omitempty"`
	Load     int64   `json:"load"`
	Floor    int64   `json:"floor"` // no plan is lower
	Height   int64   `json:"height"`
	Gap      float64 `json:"gap"` // of the height above the floor, as a fraction
	Proven   bool    `json:"proven"`
	Greedy   string  `json:"greedy"` // the best of the ten
	GreedyAt int64   `json:"greedyHeight"`
	By       string  `json:"by"`
	Nodes    int64   `json:"nodes"`
	Nanos    int64   `json:"nanos"`
}

// Run plans.
func (r *planCmd) Run(ctx context.Context, c *console) error {
	switch {
	case r.Nodes < 0:
		return usage("--nodes takes a number above 0")
	case r.Capacity != "" && r.Minimize:
		return usage("give --capacity SIZE or --minimize, not both")
	case r.Timeout <= 0:
		return usage("--timeout takes a time above 0, such as 60s")
	case r.Output == "-" && r.JSON:
		return usage("--json and -o - both want the standard output: give -o a file's name")
	case r.Output != "" && r.Output != "-" && r.File != "-" && same(r.File, r.Output):
		return usage("%s would be overwritten by its own plan: choose another name with -o", r.File)
	}
	if r.Capacity != "" {
		n, err := event.ParseBytes(r.Capacity)
		switch {
		case err != nil:
			return usage("--capacity: %v", err)
		case n < 1:
			return usage("--capacity takes a size above 0, such as 1048576 or 1MiB")
		}
		r.most = n
	}
	p, err := r.read(c)
	if err != nil {
		return err
	}
	if hint, ok := plan.CapacityFromName(r.File); ok && r.most == 0 && !r.Minimize {
		r.most = hint
	}
	begin := time.Now()
	res, err := r.search(ctx, c, p, begin)
	if err != nil {
		return fmt.Errorf("%s: %w", r.File, err)
	}
	took := time.Since(begin)
	if err := plan.Check(p, res.Plan); err != nil {
		return fmt.Errorf("%s: the planner's own check refuses its plan: %w", r.File, err)
	}
	fits := r.most == 0 || res.Height <= r.most
	if fits && r.Output != "" {
		if err := r.write(c, p, res); err != nil {
			return err
		}
	}
	if r.Output != "-" {
		if err := r.report(c, p, res, took); err != nil {
			return err
		}
	}
	if !fits {
		return r.tooHigh(res)
	}
	return nil
}

func (r *planCmd) read(c *console) (*plan.Problem, error) {
	in := c.in
	if r.File != "-" {
		f, err := os.Open(r.File)
		if err != nil {
			return nil, fmt.Errorf("open the table %s: %w", r.File, without(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	p, err := plan.ReadCSV(in)
	if err != nil {
		return nil, elsewhere("plan", r.File, fmt.Errorf("%s: %w", r.File, err))
	}
	return p, nil
}

func (r *planCmd) search(ctx context.Context, c *console, p *plan.Problem, begin time.Time) (*plan.Result, error) {
	bar := newPlanProgress(c, r.JSON)
	defer bar.finish()
	o := plan.Options{
		Nodes: math.MaxInt64,
		Goal:  r.most,
		Stop: func() bool {
			bar.step()
			return ctx.Err() != nil || time.Since(begin) > r.Timeout
		},
		Progress: func(res *plan.Result) { bar.describe(planWords(res)) },
	}
	if r.Nodes > 0 {
		o.Nodes = r.Nodes
	}
	return plan.Minimize(p, o)
}

func planWords(res *plan.Result) string {
	return fmt.Sprintf("height %d, %.2f %% above the floor", res.Height, 100*res.Gap())
}

func (r *planCmd) write(c *console, p *plan.Problem, res *plan.Result) (err error) {
	if r.Output == "-" {
		return plan.WriteCSV(c.out, p, &res.Plan)
	}
	f, err := os.Create(r.Output)
	if err != nil {
		return fmt.Errorf("write the plan to %s: %w", r.Output, without(err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return plan.WriteCSV(f, p, &res.Plan)
}

func (r *planCmd) report(c *console, p *plan.Problem, res *plan.Result, took time.Duration) error {
	said := planned{
		r.File, len(p.Buffers), r.most, res.Load, res.Floor, res.Height, res.Gap(), res.Proven(),
		res.First.String(), res.Greedy, res.By, res.Nodes, took.Nanoseconds(),
	}
	if r.JSON {
		return printJSON(c, said)
	}
	var t table
	row := func(what string, bytes int64) { t.row(what, fmt.Sprint(bytes), size(bytes)) }
	t.row("buffers", fmt.Sprint(said.Buffers), "")
	if said.Capacity > 0 {
		row("capacity", said.Capacity)
	}
	row("load", said.Load)
	if said.Floor > said.Load {
		row("floor", said.Floor)
	}
	row("height", said.Height)
	t.row("gap", fmt.Sprintf("%.2f %%", 100*said.Gap), "above the floor")
	t.row("optimal", map[bool]string{true: "proven", false: "not proven"}[said.Proven], "found by "+said.By)
	t.row("best greedy", fmt.Sprint(said.GreedyAt), size(said.GreedyAt)+" by "+said.Greedy)
	t.row("time", span(said.Nanos), count(said.Nodes, "decision"))
	t.print(c)
	return nil
}

// tooHigh says why there is no plan within the capacity.
func (r *planCmd) tooHigh(res *plan.Result) error {
	if res.Floor > r.most {
		return fmt.Errorf("%s: no plan fits into %d: none is lower than %d", r.File, r.most, res.Floor)
	}
	return fmt.Errorf("%s: no plan found within %d; the lowest so far is %d, and none is lower than %d: give it more time with --timeout", r.File, r.most, res.Height, res.Floor)
}

// newPlanProgress turns a wheel on the standard error while a person watches.
func newPlanProgress(c *console, quiet bool) *progress {
	f, ok := c.err.(*os.File)
	if quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions(
		-1, progressbar.OptionSetWriter(io.Writer(f)), progressbar.OptionSetDescription("planning"), progressbar.OptionSpinnerType(14),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetElapsedTime(true),
	)}
}

// describe changes the words in front of the bar.
func (p *progress) describe(words string) {
	if p.bar != nil {
		p.bar.Describe(words)
	}
}
