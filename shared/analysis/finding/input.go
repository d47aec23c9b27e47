package finding

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/input"
	"tideline/shared/store"
)

// The stages that have something to change, and how many calls a host runs at
// once, by package pipeline's names: a test holds them to it. The package itself
// is no part of the browser's module.
const (
	stageMap        = "map"
	stageInterleave = "interleave"
	hostCores       = 8
)

// leastInput is the time of a step, in nanoseconds, below which its input is not
// worth a word unless it takes a fifth of the step: a small model's steps are
// so short that any input is a twentieth of them.
const leastInput = 1_000_000

// Inputs finds a device that waits for its batches, and names the stage to
// blame. The verdict is that of TensorFlow's profiler, by package input: the
// part of the steps' time in which the device waits for its input or takes it
// over the bus while it does nothing else. The first step, in which buffers
// fill, is told apart.
func Inputs(tl *store.Timeline) []Finding {
	every := steps(tl)
	all := steady(every)
	t0, t1 := window(all)
	if t1 <= t0 || len(all) == 0 {
		return nil
	}
	n := int64(len(all))
	times := stepTimes(tl, all)
	sum := input.Judge(times)
	if sum.Verdict != input.HighlyBound && sum.Verdict != input.ModeratelyBound {
		return nil
	}
	w := waits(tl, t0, t1)
	exposed := times.ByClass[input.HostToDevice]
	if sum.Verdict == input.ModeratelyBound && (w.nanos+exposed)/n < leastInput {
		return nil
	}
	f := Finding{
		ID: InputBound, Kind: "highly_input_bound", Title: "The device waits for its input", Severity: Serious,
		Device: w.device, Culprit: w.stage,
	}
	if sum.Verdict == input.ModeratelyBound {
		f.Kind, f.Severity = "moderately_input_bound", Warning
	}
	share := permyri(times.ByClass[input.HostWaitInput]+exposed, times.Nanos)
	step := (t1 - t0) / n
	f.put("input_percent", share, BasisPoints)
	f.put("step_ns", step, Nanos)
	f.put("wait_ns_per_step", w.nanos/n, Nanos)
	f.put("input_copy_ns_per_step", exposed/n, Nanos)
	if len(every) > 1 {
		first := waits(tl, every[0].Begin, every[0].End)
		f.put("first_step_wait_ns", first.nanos, Nanos)
	}
	f.say(sum.Verdict.String() + ": " + percent(share) + " of a step's " + span(step) + " go to its input. The device waits " + span(w.nanos/n) + " for a batch and " +
		span(exposed/n) + " for its copy.")
	if w.stage != "" {
		f.blame(tl, w.stage, t0, t1, n, step-w.nanos/n)
	}
	if t := tl.Settings().Text("input.prefetch"); w.nanos > 0 && (t == "" || t == "0") {
		f.say("Nothing is prefetched: a batch is made only when the device asks for it, and neither works while the other does.")
		f.try("input.prefetch", "auto")
	}
	if exposed > w.nanos {
		f.Culprit, f.Device = "copy to the device", accelerator(tl)
		f.say("The copy of a batch holds up the step. Batches that are copied ahead, while the device works on the one before, cost no time.")
		f.try("input.prefetch_to_device", "2")
	}
	return []Finding{f}
}

// stepTimes gives the steps' time to the classes of package input. Copies that
// are not of the input are no business of this finding.
func stepTimes(tl *store.Timeline, all []store.Span) (sum input.Step) {
	var spans []input.Span
	var ids []int32
	for _, s := range all {
		spans = spans[:0]
		for _, tr := range tl.Tracks() {
			c := classOf(tl, tr)
			if c == input.Unknown {
				continue
			}
			ids = tr.Overlapping(ids[:0], s.Begin, s.End, 0)
			for _, i := range ids {
				sp := tr.Span(int(i))
				if tr.Kind != store.TransferTrack || event.TransferCause(sp.Class) == event.CauseInput {
					spans = append(spans, input.Span{Begin: sp.Begin, End: sp.End, Class: c})
				}
			}
		}
		sum.Add(input.StepOf(s.Begin, s.End, spans))
	}
	return sum
}

func classOf(tl *store.Timeline, tr *store.Track) input.Class {
	switch host := isHost(tl, tr.Device); {
	case tr.Kind == store.StallTrack:
		return input.HostWaitInput
	case tr.Kind == store.OpTrack && host:
		return input.HostCompute
	case tr.Kind == store.OpTrack:
		return input.DeviceCompute32
	case tr.Kind == store.TransferTrack && host && !isHost(tl, tr.Peer):
		return input.HostToDevice
	}
	return input.Unknown
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

// blame says what the stage costs a step, how many calls at once would keep up
// with the device, and what there is to change.
func (f *Finding) blame(tl *store.Timeline, stage string, t0, t1, n, busy int64) {
	var work, calls int64
	for _, tr := range tl.Tracks() {
		if tr.Kind == store.StageTrack && tl.Text(tr.Op) == stage {
			d, _, c := tr.Sum(t0, t1)
			work, calls = work+d.Total(), calls+int64(c)
		}
	}
	if work == 0 || calls == 0 {
		return
	}
	f.put("stage_ns_per_step", work/n, Nanos)
	f.put("stage_calls_per_step", calls/n, Count)
	f.put("device_ns_per_step", busy, Nanos)
	f.say("The stage to blame is " + stage + ": " + plural(calls/n, "call") + " and " + span(work/n) + " of work for each step, while the device needs " +
		span(busy) + ".")
	s := tl.Settings()
	switch {
	case stage == stageMap:
		now := int64(1)
		if v, err := strconv.Atoi(s.Text("input.map.parallel")); err == nil && v > 0 {
			now = int64(v)
		}
		need := max(now+1, (work/n+busy-1)/max(busy, 1))
		f.put("parallel_calls_needed", need, Count)
		if need <= hostCores {
			f.say("With " + plural(need, "call") + " at once, and prefetching, it would keep up; with " + itoa(now) + " it cannot.")
			f.try("input.map.parallel", itoa(need))
		} else {
			f.say("It would take " + plural(need, "call") + " at once to keep up, more than a host has cores.")
		}
		if need != hostCores {
			f.try("input.map.parallel", itoa(hostCores))
		}
	case stage == stageInterleave || strings.HasPrefix(stage, "from_"):
		f.try("input.interleave.cycle", "4")
		f.try("input.interleave.parallel", "4")
	default:
		return
	}
	if s.Text("input.cache") != "true" {
		f.try("input.cache", "true")
	}
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
