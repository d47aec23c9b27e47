package explain

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/launch"
)

// rerun is one change of a run's settings and what came of running it again
// with modelled times.
type rerun struct {
	field, value string
	shown        string // for people, where the value is long
	passed       bool
	steps        int
	peak         int64 // bytes in use, on the device that ran out
	nanos        int64
}

// maxEvents bounds all reruns of a report together, so that a long run is
// explained in seconds. A bound on time would make reports differ.
const maxEvents = 6_000_000

// verifier reruns one run under changed settings.
type verifier struct {
	w       *api.Workload
	device  string // that ran out, as events name it
	entry   int    // of the workload's devices; -1 for none
	events  int
	out     []rerun
	unknown string // why nothing was rerun
}

// verify tries what may help a run of Tideline's own that ran out of memory.
// Nothing is tried unless a rerun without changes fails in the same place:
// else the reruns would prove nothing about this run.
func verify(run *analysis.Summary) *verifier {
	n := len(run.Failures)
	if n == 0 || len(run.Settings) == 0 || run.End != event.EndOutOfMemory || run.Failures[n-1].Reading == nil {
		return nil
	}
	v := &verifier{device: run.Failures[n-1].Reading.Device}
	w, problems := api.FromFields(run.Settings)
	if len(problems) == 0 {
		problems = w.Validate(launch.Known())
	}
	if len(problems) > 0 {
		v.unknown = "it was not rerun: " + problems[0].String()
		return v
	}
	v.w = w
	v.entry = v.entryOf()
	last := &run.Failures[n-1]
	base, ok := v.run(w)
	switch {
	case !ok:
		v.unknown = "it is too long to be rerun here"
	case base.OOM == nil || base.Steps != int(last.Step) || base.OOM.Requested != last.Reading.Requested.N:
		v.unknown = "a rerun with modelled times does not fail in the same place, so nothing was tried"
	default:
		v.settings(last.Reading)
		v.batches()
	}
	return v
}

// entryOf finds the entry of the workload whose logical device ran out.
func (v *verifier) entryOf() int {
	_, number, _ := strings.Cut(v.device, "GPU:")
	gpu, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	for i := range v.w.Devices {
		gpu -= max(1, len(v.w.Devices[i].Logical))
		if gpu < 0 {
			return i
		}
	}
	return -1
}

// settings tries what changes neither the model nor its batches.
func (v *verifier) settings(r *analysis.Reading) {
	if v.entry >= 0 {
		d := &v.w.Devices[v.entry]
		at := "devices." + strconv.Itoa(v.entry) + "."
		switch {
		case d.MemoryLimit > 0 && r.Obtainable.Known && r.Obtainable.N > d.MemoryLimit:
			v.try(at+"memory_limit", strconv.FormatInt(r.Obtainable.N>>20, 10)+"MiB")
		case d.MemoryLimit == 0 && len(d.Logical) == 0:
			v.try(at+"growth", strconv.FormatBool(!d.Growth))
		}
	}
	if v.w.Mode == api.Eager {
		v.try("mode", string(api.Graph))
	}
}

// batches tries smaller ones, until one passes.
func (v *verifier) batches() {
	for _, part := range [][2]int{{3, 4}, {1, 2}, {1, 4}, {1, 8}} {
		list := make([]string, len(v.w.Batch))
		for i, n := range v.w.Batch {
			list[i] = strconv.Itoa(max(1, n*part[0]/part[1]))
		}
		value := strings.Join(list, ",")
		if len(list) > 1 {
			value = "[" + value + "]"
		}
		passed := v.try("batch", value)
		if n := len(v.out); n > 0 && len(list) > 6 && v.out[n-1].value == value {
			v.out[n-1].shown = fmt.Sprintf("batch x %d/%d, of every step", part[0], part[1])
		}
		if passed {
			return
		}
	}
}

// try reruns with one field changed and says whether that passes.
func (v *verifier) try(field, value string) bool {
	w := v.w.Clone()
	if w.Set(field, value) != nil || len(w.Validate(launch.Known())) > 0 {
		return false
	}
	w.Defaults()
	if slices.Equal(w.Fields(), v.w.Fields()) {
		return false
	}
	res, ok := v.run(w)
	if !ok {
		return false
	}
	x := rerun{field: field, value: value, passed: res.Reason == event.EndDone, steps: res.Steps, nanos: res.Nanos}
	for _, d := range res.Devices {
		if strings.HasSuffix(v.device, strings.TrimPrefix(d.Name, "/")) {
			x.peak = d.PeakInUse
		}
	}
	v.out = append(v.out, x)
	return x.passed
}

// run is false when the bound on events ended it.
func (v *verifier) run(w *api.Workload) (launch.Result, bool) {
	res, err := launch.Run(*w, launch.Options{
		Sink: event.SinkFunc(func(*event.Event) { v.events++ }),
		Stop: func() bool { return v.events > maxEvents },
	})
	return res, err == nil && res.Reason != event.EndStopped
}

// text lists what passed with its cost, and names what did not.
func (v *verifier) text(w *bufio.Writer, width int) {
	if v.unknown != "" {
		fmt.Fprintln(w)
		wrap(w, width, "", "Nothing is verified: "+v.unknown+".")
		return
	}
	var good, bad []string
	for _, x := range v.out {
		set := x.shown
		if set == "" {
			set = x.field + "=" + x.value
		}
		if !x.passed {
			bad = append(bad, fmt.Sprintf("%s (fails in step %d)", set, x.steps+1))
			continue
		}
		good = append(good, fmt.Sprintf("%s: all %s, peak %s, %s modelled", set, plural(int64(x.steps), "step"), bytesOf(x.peak), duration(x.nanos)))
	}
	list(w, width, "Verified by rerun", good)
	if len(bad) > 0 {
		fmt.Fprintln(w)
		wrap(w, width, "", "Rerun as well, and no help: "+strings.Join(bad, ", ")+".")
	}
}

func (v *verifier) json(o *object) {
	if v.unknown != "" {
		o.text("not_rerun", v.unknown)
		return
	}
	o.array("reruns", len(v.out), func(i int, o *object) {
		x := &v.out[i]
		o.text("field", x.field)
		o.text("value", x.value)
		o.member("passed", strconv.FormatBool(x.passed))
		o.integer("steps", int64(x.steps))
		o.integer("peak_in_use_bytes", x.peak)
		o.integer("duration_ns", x.nanos)
	})
}
