package launch

import (
	"errors"
	"fmt"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
	"tideline/shared/sim"
	"tideline/shared/zoo"
)

// Runner is a run that its caller steps, so that a page stays responsive and
// a run can be stopped between steps. Call Finish in any case, once.
type Runner struct {
	w     api.Workload
	o     Options
	rt    *exec.Runtime
	hw    *hardware
	feed  *feed
	rules []place.Rule
	plans []concrete // by index in w.Batch; equal batches share one
	done  int
	// retraces are of the step's function; eager execution has none.
	retraces retraces

	reason  event.EndReason
	message string
	err     error
	over    bool
	metrics []Metric
}

// concrete is the program for one batch size, ready to run.
type concrete struct {
	program *program.Program
	plan    *exec.Plan
}

// Start checks the workload, makes its devices and tells what they are. An
// error is api.Problems where the workload is at fault.
func Start(w api.Workload, o Options) (*Runner, error) {
	if o.Machine == nil {
		o.Machine = device.NewMachine(nil)
	}
	known := Known()
	for _, p := range o.Machine.Real() {
		known.Presets = append(known.Presets, p.Name)
	}
	if p := append(w.Validate(known), beyond(&w)...); len(p) > 0 {
		return nil, p
	}
	w = *w.Clone()
	w.Defaults()
	if o.Strings == nil {
		o.Strings = new(event.Strings)
	}
	if o.Backend == nil {
		o.Backend = sim.New()
	}
	hw, err := assemble(&w, o.Machine)
	if err != nil {
		return nil, fmt.Errorf("make devices: %w", err)
	}
	r := &Runner{w: w, o: o, hw: hw}
	if err := r.open(); err != nil {
		hw.release()
		return nil, err
	}
	return r, nil
}

// Known is what this build offers a workload.
func Known() api.Known {
	k := api.Known{Models: zoo.Names()}
	for _, p := range device.Presets() {
		k.Presets = append(k.Presets, p.Name)
	}
	return k
}

// modes are the executors of a workload's modes.
var modes = map[api.Mode]exec.Mode{api.Eager: exec.Eager, api.Graph: exec.Graph, api.Planned: exec.Planned}

func (r *Runner) open() error {
	rt, err := exec.New(exec.Config{
		Mode: modes[r.w.Mode], Devices: r.hw.logical, Backend: r.o.Backend, Strings: r.o.Strings,
		Sink: r.o.Sink, Stop: r.o.Stop, Seed: r.w.Seed,
	})
	if err != nil {
		return err
	}
	r.rt = rt
	e := event.Event{Kind: event.Settings, Text: r.o.Strings.ID(r.hw.settings(&r.w).Fields().Encode()), Step: event.NoStep}
	rt.Emit(&e)
	r.hw.tell(rt, r.o.Strings)
	if err := r.hw.attach(rt, r.o.Backend); err != nil {
		rt.Close()
		return err
	}
	for _, x := range r.w.Placement.Rules {
		r.rules = append(r.rules, place.Rule{Match: x.Match, Device: x.Device})
	}
	r.plans = make([]concrete, len(r.w.Batch))
	p, err := r.build(r.w.Batch[0])
	if err == nil {
		r.feed, err = newFeed(&r.w, p, rt, &r.o)
	}
	if err != nil {
		if r.feed != nil {
			r.feed.close()
		}
		rt.Close()
	}
	return err
}

// Step runs one step and says whether another one follows.
func (r *Runner) Step() (more bool) {
	if r.over || r.done >= r.w.Steps {
		return false
	}
	if err := r.step(); err != nil {
		r.stop(err)
		return false
	}
	r.done++
	if r.o.OnStep != nil {
		r.o.OnStep(r.done)
	}
	return r.done < r.w.Steps
}

func (r *Runner) step() error {
	c, err := r.concrete(r.done % len(r.w.Batch))
	if err != nil {
		return err
	}
	r.feed.serve(c.program)
	m, err := r.rt.Step(c.plan, int32(r.done), r.feed)
	if err != nil {
		return err
	}
	r.metrics = r.metrics[:0]
	for _, x := range m {
		r.metrics = append(r.metrics, Metric(x))
	}
	return nil
}

// concrete is the function for one of the batch sizes, made when a step first
// needs it.
func (r *Runner) concrete(i int) (concrete, error) {
	for j, b := range r.w.Batch {
		if b == r.w.Batch[i] && r.plans[j].plan != nil {
			r.noteCall(false)
			return r.plans[j], nil
		}
	}
	p, err := r.build(r.w.Batch[i])
	if err != nil {
		return concrete{}, err
	}
	plan, err := r.rt.Compile(p, r.rules, *r.w.Placement.Soft)
	if err != nil {
		return concrete{}, err
	}
	r.plans[i] = concrete{p, plan}
	r.noteCall(r.w.Mode == api.Graph)
	return r.plans[i], nil
}

func (r *Runner) build(batch int) (*program.Program, error) {
	opt := zoo.Options{Batch: batch}
	if t := r.w.Train; t != nil {
		opt.Train, opt.Optimizer, opt.LearningRate = true, t.Optimizer, t.LearningRate
	}
	p, err := zoo.Program(r.w.Model, opt)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", r.w.Model, err)
	}
	return p, nil
}

func (r *Runner) stop(err error) {
	r.over = true
	switch {
	case errors.Is(err, exec.ErrOutOfMemory):
		r.reason, r.message = event.EndOutOfMemory, r.oomMessage()
	case errors.Is(err, exec.ErrStopped):
		r.reason, r.message = event.EndStopped, "stopped by request"
	default:
		r.reason, r.message, r.err = event.EndFailed, err.Error(), err
	}
}

func (r *Runner) oomMessage() string {
	o := r.rt.OOM()
	return fmt.Sprintf("out of memory in step %d: op %s asked %s for %s; cause: %s; %s of the pool are free, the largest hole is %s",
		o.Step, o.Op, o.Allocator, event.FormatBytes(o.Requested), o.Verdict.Cause, event.FormatBytes(o.Stats.Free()), event.FormatBytes(o.Stats.LargestFree))
}

// Finish ends the run, stopping it if steps are left, gives all memory back
// and returns what it came to. The error is the one that broke the run.
func (r *Runner) Finish() (Result, error) {
	if !r.over && r.done < r.w.Steps {
		r.reason, r.message = event.EndStopped, "stopped by request"
	}
	r.over = true
	r.feed.close()
	r.rt.End(r.reason, r.message)
	res := r.result()
	r.rt.Close()
	r.hw.release()
	return res, r.err
}

func (r *Runner) result() Result {
	res := Result{
		Reason: r.reason, Message: r.message, Steps: r.done, Nanos: r.rt.Now(), Events: r.rt.Events(), Metrics: r.metrics,
	}
	for i, l := range r.hw.logical {
		st := r.rt.Stats(event.DeviceID(i))
		d := DeviceResult{
			ID: event.DeviceID(i), Name: l.Name.Short(), PeakInUse: st.PeakInUse, PeakReserved: st.PeakPool, Limit: l.Limit,
		}
		if !l.IsHost() && l.FreeNow-l.Reserve == l.Limit {
			d.Total, d.Context, d.Held, d.Reserve = l.Card.Total(), l.Context, l.Held, l.Reserve
		}
		res.Devices = append(res.Devices, d)
	}
	if o := r.rt.OOM(); o != nil {
		res.OOM = &OOM{
			Device: o.Device, Allocator: o.Allocator, Op: o.Op, Requested: o.Requested, Cause: o.Verdict.Cause,
			Free: o.Stats.Free(), Largest: o.Stats.LargestFree,
		}
	}
	return res
}
