package main

import (
	"context"
	"fmt"
	"strings"

	"tideline/protocol/api"
	"tideline/shared/analysis/finding"
	"tideline/shared/fit"
	"tideline/shared/launch"
)

type fitCmd struct {
	Workload string   `arg:"" help:"Workload file, YAML or JSON; - is the standard input."`
	Device   string   `placeholder:"PRESET" help:"The card to fit, one of tideline devices; default the workload's own."`
	Knob     string   `enum:"batch,image,sequence" default:"batch" help:"What to make as large as fits: batch, image or sequence."`
	Most     int      `default:"65536" help:"Where the search for the largest value ends."`
	Set      []string `placeholder:"FIELD=VALUE" help:"Change a field of the workload." sep:"none"`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// fitted is the answer as JSON. Bytes, nanoseconds of modelled time.
type fitted struct {
	Workload      string     `json:"workload"`
	Device        string     `json:"device"`
	Preset        string     `json:"preset"`
	Steps         int        `json:"steps"` // that were run each time
	Fits          bool       `json:"fits"`
	PeakInUse     int64      `json:"peak_in_use_bytes"`
	PeakReserved  int64      `json:"peak_reserved_bytes"`
	Limit         int64      `json:"limit_bytes"`
	Parts         []fitPart  `json:"parts"`
	Low           int64      `json:"estimate_low_bytes"`
	High          int64      `json:"estimate_high_bytes"`
	Runtime       int64      `json:"runtime_bytes"`
	SmallestLimit int64      `json:"smallest_limit_bytes,omitempty"` // as written: with growth, where it grows
	SmallestSet   []string   `json:"smallest_limit_set,omitempty"`   // what sets it
	SmallestWhole int64      `json:"smallest_limit_without_growth_bytes,omitempty"`
	WholeSet      []string   `json:"smallest_limit_without_growth_set,omitempty"`
	Knob          string     `json:"knob"`
	Asked         int        `json:"asked,omitempty"`
	Largest       int        `json:"largest"`
	At            *fitTrial  `json:"at,omitempty"`
	Next          *fitTrial  `json:"next,omitempty"`
	Remedies      []fitTrial `json:"remedies,omitempty"` // where it does not fit
	Why           string     `json:"why,omitempty"`
	Runs          int        `json:"reruns"`
	Divided       *divided   `json:"over_devices,omitempty"` // estimates, where it does not fit
}

type fitPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type fitTrial struct {
	ID        string   `json:"id"`
	Set       []string `json:"set"`
	Passed    bool     `json:"passed"`
	Message   string   `json:"message,omitempty"`
	PeakInUse int64    `json:"peak_in_use_bytes"`
	Nanos     int64    `json:"duration_ns"`
	PerSample int64    `json:"duration_ns_per_sample"`

	short string // Set for people
}

// Run finds out whether a workload fits a card, and what the most is that does.
func (f *fitCmd) Run(ctx context.Context, c *console) error {
	w, err := readWorkload(c, f.Workload, f.Set)
	if err != nil {
		return err
	}
	if err := f.onto(w); err != nil {
		return err
	}
	w.Defaults()
	if !fit.Knob(f.Knob).Has(w) {
		return usage("%s takes no %s: choose another --knob", w.Model, f.Knob)
	}
	if f.Most < 1 {
		return usage("--most %d: expected at least 1", f.Most)
	}
	device := "/" + strings.ToUpper(w.Devices[0].Kind) + ":0"
	p := &fit.Prober{Device: device, MaxEvents: 400_000_000, Stop: func() bool { return ctx.Err() != nil }}
	e, ok := p.Estimate(w, fit.Knob(f.Knob), f.Most)
	if e == nil && p.Err() != nil {
		return fmt.Errorf("fit %s: %w", f.Workload, p.Err())
	}
	if !ok && ctx.Err() != nil {
		return fmt.Errorf("fit %s: the search was stopped", f.Workload)
	}
	if e == nil || !ok {
		return fmt.Errorf("fit %s: too long to be run again and again; try fewer steps or --most", f.Workload)
	}
	out := f.answer(w, device, e)
	if !e.Asked.Passed {
		f.remedies(w, p, out)
		out.Divided = divide(w, out)
	}
	out.Runs = p.Runs()
	if f.JSON {
		if err := printJSON(c, out); err != nil {
			return err
		}
	} else {
		out.print(c, e)
	}
	if !e.Asked.Passed {
		return errOutOfMemory
	}
	return nil
}

// remedies finds what makes a workload fit that does not.
func (f *fitCmd) remedies(w *api.Workload, p *fit.Prober, out *fitted) {
	short := w.Clone()
	short.Steps = fit.ShortSteps(w)
	found, ok := p.Diagnose(short)
	if !ok {
		return
	}
	for i := range found {
		if found[i].ID == finding.OutOfMemory {
			out.Why = strings.Join(append([]string{found[i].Title + "."}, found[i].Text...), " ")
		}
	}
	if a, ok := p.Ask(fit.AskAbout(short, found), nil); ok {
		for _, t := range a.Good {
			x := trial(t)
			x.short = t.Short()
			out.Remedies = append(out.Remedies, *x)
		}
	}
}

// onto puts the workload's accelerators on a card.
func (f *fitCmd) onto(w *api.Workload) error {
	if len(w.Devices) == 0 {
		if f.Device == "" {
			return usage("%s asks for no accelerator: name one with --device PRESET, such as t4-16g", f.Workload)
		}
		w.Devices = []api.Device{{Preset: f.Device}}
	}
	for i := range w.Devices {
		if f.Device == "" {
			continue
		}
		d := &w.Devices[i]
		d.Kind, d.Preset, d.Card = "", f.Device, ""
		if d.Type() == "TPU" { // what only GPUs have
			d.Growth, d.Allocator, d.AllocatorOptions = false, "", nil
		}
	}
	w.Defaults()
	if problems := w.Validate(launch.Known()); len(problems) > 0 {
		return usage("%s on --device %s: %s", f.Workload, f.Device, problems[0])
	}
	return nil
}

func trial(t *fit.Trial) *fitTrial {
	if t == nil {
		return nil
	}
	x := &fitTrial{ID: fmt.Sprintf("%016x", t.ID), Passed: t.Passed, PeakInUse: t.Peak, Nanos: t.Nanos, PerSample: t.NanosPerSample(), Set: []string{}}
	if !t.Passed {
		x.Message = t.Message
	}
	x.Set = append(x.Set, fields(t.Changes)...)
	return x
}

// fields are changes as --set takes them.
func fields(changes []fit.Change) (out []string) {
	for _, c := range changes {
		out = append(out, c.String())
	}
	return out
}

func (f *fitCmd) answer(w *api.Workload, device string, e *fit.Estimate) *fitted {
	knob := fit.Knob(f.Knob)
	out := &fitted{
		Workload: w.Name, Device: device, Preset: w.Devices[0].Preset, Steps: fit.ShortSteps(w), Fits: e.Asked.Passed,
		PeakInUse: e.Need.Peak, PeakReserved: e.Need.Reserved, Limit: e.Asked.Limit, Low: e.Low, High: e.High, Runtime: e.Runtime,
		SmallestLimit: e.SmallestLimit, Knob: f.Knob, Asked: knob.Of(w), Largest: e.Found.Value, At: trial(e.Found.At), Next: trial(e.Found.Next),
	}
	out.SmallestSet = fields(e.Set)
	if e.Whole != nil {
		out.SmallestWhole, out.WholeSet = e.Whole.SmallestLimit, fields(e.Whole.Set)
	}
	if e.Asked.Passed {
		out.PeakReserved = e.Asked.Reserved
	} else {
		out.PeakReserved = 0 // of a run without a bound it says nothing
	}
	for _, p := range e.Need.Parts() {
		out.Parts = append(out.Parts, fitPart(p))
	}
	return out
}

// below says why a limit below the peak suffices.
func below(e *fit.Estimate) string {
	b, ok := e.Below()
	if !ok {
		return ""
	}
	var why []string
	if b.Unasked > 0 {
		why = append(why, size(b.Unasked)+" of the peak are room in chunks beyond what was asked for, which a smaller pool does not hand out")
	}
	if b.Falls {
		why = append(why, "kernels take algorithms with smaller workspaces where a larger one cannot be had")
	}
	s := "The limit may be below the peak: " + strings.Join(why, ", and ")
	if b.Slower > 1.001 {
		s += fmt.Sprintf(". The run then takes %.1f %% longer", 100*(b.Slower-1))
	}
	return s + "."
}

func (o *fitted) print(c *console, e *fit.Estimate) {
	verdict := "fits"
	if !o.Fits {
		verdict = "does not fit"
	}
	c.say("%s %s %s (%s), %s of %s.\n\n", o.Workload, verdict, o.Device, o.Preset, size(o.PeakInUse), size(o.Limit))
	var t table
	t.row("  peak in use", size(o.PeakInUse), "exact, from the allocator")
	if o.PeakReserved > 0 {
		t.row("  peak reserved", size(o.PeakReserved), "of a limit of "+size(o.Limit))
	}
	if o.High > o.Low {
		t.row("  up to", size(o.High), "if libraries take the largest workspace once more")
	}
	t.row("  besides", size(o.Runtime), "the driver's context, outside the limit")
	switch {
	case o.SmallestLimit > 0 && strings.Contains(o.SmallestSet[0], ".fraction="):
		t.row("  smallest limit", size(o.SmallestLimit), "that it runs with as written, with growth; 1 MiB less fails")
		t.row("", "", strings.Join(o.SmallestSet, " "))
	case o.SmallestLimit > 0:
		t.row("  smallest limit", size(o.SmallestLimit), "memory_limit that it runs with; 1 MiB less fails")
	}
	if o.SmallestWhole > 0 {
		t.row("  without growth", size(o.SmallestWhole), "a change: "+strings.Join(o.WholeSet, " "))
	}
	t.print(c)
	if why := below(e); why != "" {
		c.say("\n%s\n", wrap(why, 78))
	}
	if o.Why != "" {
		c.say("\n%s\n", o.Why)
	}
	c.say("\nThe peak consists of\n")
	var parts table
	for _, p := range o.Parts {
		parts.row("  "+p.Name, size(p.Bytes), fmt.Sprintf("%.1f %%", 100*float64(p.Bytes)/float64(max(1, o.PeakInUse))))
	}
	parts.print(c)
	c.say("\n")
	switch {
	case o.Largest == 0:
		c.say("No %s fits, however small.\n", o.Knob)
	case o.Next == nil:
		c.say("Largest %s: %d, where the search ends; peak %s.\n", o.Knob, o.Largest, size(o.At.PeakInUse))
	default:
		c.say("Largest %s: %d, peak %s. The next does not fit: %s.\n", o.Knob, o.Largest, size(o.At.PeakInUse), e.Found.Next.Short())
	}
	if o.Fits {
		return
	}
	if len(o.Remedies) == 0 {
		c.say("Nothing else that was tried makes it fit.\n")
	} else {
		c.say("\nWhat makes it fit, each verified by a run\n")
		var r table
		for _, x := range o.Remedies {
			r.row("  "+x.short, size(x.PeakInUse), span(x.PerSample)+" a sample")
		}
		r.print(c)
	}
	if o.Divided != nil {
		o.Divided.print(c)
	}
}
