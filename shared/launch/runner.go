package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc/kinds"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/pipeline"
	"tideline/shared/place"
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
	place place.Options
	plans []concrete // in the order in which they were traced
	built *concrete  // the first, before its plan is made
	done  int
	left  int64 // elements that the input still has; -1: without end
	// sent counts the batches that were asked for ahead of their steps, and
	// sentLeft is left after them.
	sent     int
	sentLeft int64
	// retraces are of the step's function; eager execution has none.
	retraces retraces

	reason  event.EndReason
	message string
	err     error
	over    bool
	metrics []Metric
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
	if p := w.Validate(known); len(p) > 0 {
		return nil, p
	}
	w = *w.Clone()
	if w.Input.Source == "" {
		w.Input.Source = defaultSource(w.Model)
	}
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
	k := api.Known{Models: zoo.Names(), Allocators: kinds.Names(), More: beyondFields}
	for _, list := range [][]device.Preset{device.Presets(), device.TPUs()} {
		for i := range list {
			k.Presets = append(k.Presets, list[i].Name)
		}
	}
	return k
}

// beyondFields finds what follows from the models and from how runs go.
func beyondFields(w *api.Workload) api.Problems {
	return slices.Concat(checkSource(w), checkExtents(w), checkAllocators(w), checkJAX(w))
}

var modes = map[api.Mode]exec.Mode{api.Eager: exec.Eager, api.Graph: exec.Graph, api.Planned: exec.Planned}

var policies = map[api.CopyPolicy]exec.CopyPolicy{
	api.CopySilent: exec.CopySilent, api.CopySilentForInt32: exec.CopySilentForInt32, api.CopyWarn: exec.CopyWarn, api.CopyExplicit: exec.CopyExplicit,
}

func (r *Runner) open() error {
	w := &r.w.Runtime
	c := exec.Config{
		Mode: modes[r.w.Mode], Devices: r.hw.Devices, Backend: r.o.Backend, Strings: r.o.Strings,
		Sink: r.o.Sink, Stop: r.o.Stop, Seed: r.w.Seed, Keep: r.w.Keep, Copies: policies[r.w.CopyPolicy],
		PrefetchToDevice: r.w.Input.PrefetchToDevice, WorkspaceLimit: r.workspaceLimit(),
		Async: w.Async, FreeTapeGradually: w.FreeTapeGradually, DeferredDeletion: w.DeferredDeletion,
		Autotune: w.Autotune, ForceGPUCompatible: w.ForceGPUCompatible,
	}
	if v, _ := r.w.Variable("TF_CUDNN_USE_AUTOTUNE"); v == "1" {
		c.Autotune = true
	}
	if w.TimestampedAllocator {
		c.Timestamps = new(exec.Timestamps)
	}
	rt, err := exec.New(c)
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
	if r.o.Remark != "" {
		rt.Log(0, 0, r.o.Remark)
	}
	r.place = place.Options{Soft: *r.w.Placement.Soft, Eager: r.w.Mode == api.Eager}
	for _, x := range r.w.Placement.Rules {
		r.place.Rules = append(r.place.Rules, place.Rule{Match: x.Match, Device: x.Device})
	}
	if v, _ := r.w.Variable("TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING"); v == "1" || v == "true" {
		r.place.PinSmall = true
	}
	r.left = -1
	first := r.shape(0, r.left)
	p, err := r.build(first)
	r.built = &concrete{shape: first, program: p}
	if err == nil {
		var idle []string
		idle, err = place.CheckRules(p, r.place.Rules)
		r.warn(idle)
	}
	if err == nil {
		r.feed, r.left, err = newFeed(&r.w, p, rt, &r.o)
		r.sentLeft = r.left
		if r.feed != nil && r.w.Input.PrefetchToDevice > 0 {
			r.feed.next = r.nextSent
		}
	}
	if err != nil {
		if r.feed != nil {
			r.feed.close()
		}
		rt.Close()
	}
	return err
}

// workspaceLimit is cuDNN's by the workload or by the environment, in bytes; 0
// when nothing readable is said.
func (r *Runner) workspaceLimit() int64 {
	if n := r.w.Runtime.WorkspaceLimit; n > 0 {
		return n
	}
	v, _ := r.w.Variable("TF_CUDNN_WORKSPACE_LIMIT_IN_MB")
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	return max(1, n<<20) // 0 MiB allows none
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
	s := r.shape(r.done, r.left)
	if s.batch == 0 || s.batch < r.w.Batch[r.done%len(r.w.Batch)] && r.w.Input.DropRemainder {
		return pipeline.ErrEnd
	}
	c, err := r.call(s)
	if err != nil {
		return err
	}
	r.feed.serve(c.program)
	m, err := r.rt.Step(c.plan, int32(r.done), r.feed)
	if err != nil {
		return err
	}
	if r.left >= 0 {
		r.left -= int64(s.batch)
	}
	r.metrics = r.metrics[:0]
	for _, x := range m {
		r.metrics = append(r.metrics, Metric(x))
	}
	return nil
}

func (r *Runner) stop(err error) {
	r.over = true
	switch {
	case errors.Is(err, pipeline.ErrEnd):
		r.reason, r.message = event.EndDone, fmt.Sprintf("the input is exhausted after %d steps", r.done)
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
	where := "outside of steps"
	if o.Step != event.NoStep {
		where = fmt.Sprintf("in step %d", o.Step+1) // people count from 1
	}
	return fmt.Sprintf("out of memory %s: op %s asked %s for %s; cause: %s; %s of the pool are free, the largest hole is %s",
		where, o.Op, o.Allocator, event.FormatBytes(o.Requested), o.Verdict.Cause, event.FormatBytes(o.Stats.Free()), event.FormatBytes(o.Stats.LargestFree))
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
		Reason: r.reason, Message: r.message, Steps: r.done, Nanos: r.rt.Now(), Events: r.rt.Events(), Metrics: r.metrics, Warnings: r.rt.Warnings(),
	}
	for i, l := range r.hw.Devices {
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
