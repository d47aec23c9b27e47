package finding

import (
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// The verdicts of TensorFlow's profiler on how much of a step goes to its
// input, in hundredths of a percent.
const (
	highlyBound     = 2000
	moderatelyBound = 500
)

// Inputs finds a device that waits for its batches, and names the stage to
// blame. The verdict's words and bounds are those of TensorFlow's profiler:
// the share of the steps' time in which the device waits for its input or
// takes it over the bus while it does nothing else. The first step, in which
// buffers fill, is told apart.
func Inputs(tl *store.Timeline) []Finding {
	every := steps(tl)
	all := steady(every)
	t0, t1 := window(all)
	if t1 <= t0 {
		return nil
	}
	n := int64(len(all))
	w := waits(tl, t0, t1)
	exposed := exposedInput(tl, t0, t1)
	share := permyri(w.nanos+exposed, t1-t0)
	if share < moderatelyBound {
		return nil
	}
	f := Finding{
		ID: InputBound, Kind: "highly_input_bound", Title: "The device waits for its input", Severity: Serious,
		Device: w.device, Culprit: w.stage,
	}
	if share < highlyBound {
		f.Kind, f.Severity = "moderately_input_bound", Warning
	}
	step := (t1 - t0) / n
	f.put("input_percent", share, BasisPoints)
	f.put("step_ns", step, Nanos)
	f.put("wait_ns_per_step", w.nanos/n, Nanos)
	f.put("input_copy_ns_per_step", exposed/n, Nanos)
	if len(every) > 1 {
		first := waits(tl, every[0].Begin, every[0].End)
		f.put("first_step_wait_ns", first.nanos, Nanos)
	}
	f.say(percent(share) + " of a step's " + millis(step) + " go to its input: the device waits " + millis(w.nanos/n) + " for a batch and " +
		millis(exposed/n) + " for its copy.")
	if w.stage != "" {
		inputStages(tl, &f, w.stage, t0, t1, n, step-w.nanos/n)
	}
	if t := tl.Settings().Text("input.prefetch"); w.nanos > 0 && (t == "" || t == "0") {
		f.say("Nothing is prefetched: a batch is made only when the device asks for it, and neither works while the other does.")
		f.try("input.prefetch", "2")
	}
	if exposed > w.nanos {
		f.Culprit, f.Device = "copy to the device", accelerator(tl)
		f.say("The copy of a batch holds up the step. Batches that are copied ahead, while the device works on the one before, cost no time.")
		f.try("input.prefetch_to_device", "2")
	}
	return []Finding{f}
}

// waited is the time that devices waited, and for what.
type waited struct {
	nanos         int64
	device, stage string
}

func waits(tl *store.Timeline, t0, t1 int64) (w waited) {
	byStage := map[event.StringID]int64{}
	var most int64
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.StallTrack {
			continue
		}
		for _, i := range tr.Overlapping(nil, t0, t1, 0) {
			sp := tr.Span(int(i))
			if sp.End == store.Alive || sp.Begin < t0 {
				continue
			}
			d := min(sp.End, t1) - sp.Begin
			w.nanos += d
			byStage[sp.Op] += d
			if byStage[sp.Op] > most {
				most, w.stage, w.device = byStage[sp.Op], tl.Text(sp.Op), short(tl, tr.Device)
			}
		}
	}
	return w
}

// inputStages says what the stage costs a step, how many calls at once would
// keep up with the device, and what that leaves.
func inputStages(tl *store.Timeline, f *Finding, stage string, t0, t1, n, busy int64) {
	var work, bytes, calls int64
	for _, tr := range tl.Tracks() {
		if tr.Kind == store.StageTrack && tl.Text(tr.Op) == stage {
			d, v, c := tr.Sum(t0, t1)
			work, bytes, calls = work+d.Total(), bytes+v.Total(), calls+int64(c)
		}
	}
	if work == 0 || calls == 0 {
		return
	}
	f.put("stage_ns_per_step", work/n, Nanos)
	f.put("stage_calls_per_step", calls/n, Count)
	f.put("device_ns_per_step", busy, Nanos)
	f.say("The stage to blame is " + stage + ": " + plural(calls/n, "call") + " and " + millis(work/n) + " of work for each step, while the device needs " +
		millis(busy) + ".")
	if stage != "map" {
		return
	}
	now := int64(1)
	if v, err := strconv.Atoi(tl.Settings().Text("input.map.parallel")); err == nil && v > 0 {
		now = int64(v)
	}
	need := max(now+1, (work/n+busy-1)/max(busy, 1))
	f.put("parallel_calls_needed", need, Count)
	if need <= 64 {
		f.say("With " + plural(need, "call") + " at once, and prefetching, it keeps up; with " + itoa(now) + " it cannot.")
		f.try("input.map.parallel", itoa(need))
	}
	if need < 64 {
		f.try("input.map.parallel", itoa(2*need))
	}
	f.try("input.cache", "true")
}

// exposedInput is the time of input copies to accelerators in which the device
// does nothing else.
func exposedInput(tl *store.Timeline, t0, t1 int64) (n int64) {
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.TransferTrack || !isHost(tl, tr.Device) || isHost(tl, tr.Peer) {
			continue
		}
		for _, i := range tr.Overlapping(nil, t0, t1, 0) {
			sp := tr.Span(int(i))
			if sp.End == store.Alive || sp.Begin < t0 || event.TransferCause(sp.Class) != event.CauseInput {
				continue
			}
			n += sp.End - sp.Begin - working(tl, tr.Peer, sp.Begin, sp.End)
		}
	}
	return n
}

// working is how much of a time a device's ops cover. Ops of one stream do not
// overlap.
func working(tl *store.Timeline, dev event.DeviceID, t0, t1 int64) int64 {
	var most int64
	for _, tr := range tl.Tracks() {
		if tr.Kind != store.OpTrack || tr.Device != dev {
			continue
		}
		var n int64
		for _, i := range tr.Overlapping(nil, t0, t1, 0) {
			sp := tr.Span(int(i))
			n += min(sp.End, t1) - max(sp.Begin, t0)
		}
		most = max(most, n)
	}
	return min(most, t1-t0)
}

// accelerator is the first one that takes batches.
func accelerator(tl *store.Timeline) string {
	for _, tr := range tl.Tracks() {
		if tr.Kind == store.TransferTrack && isHost(tl, tr.Device) && !isHost(tl, tr.Peer) {
			return short(tl, tr.Peer)
		}
	}
	return ""
}
