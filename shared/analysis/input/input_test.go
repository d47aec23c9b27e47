package input

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/pipeline"
)

const ms = 1_000_000

// stepOf is a step of 100 ms with so many tenths of a millisecond of waiting
// and of unexplained time; the rest is computing.
func stepOf(wait, other int64) Step {
	s := Step{Nanos: 1000}
	s.ByClass[HostWaitInput], s.ByClass[Unknown] = wait, other
	s.ByClass[DeviceCompute32] = 1000 - wait - other
	return s
}

func TestChecklistVerdicts(t *testing.T) {
	for _, c := range []struct {
		wait, other int64
		want        Verdict
		bottleneck  string
	}{
		{200, 0, HighlyBound, "host"},
		{50, 0, ModeratelyBound, "both"},
		{199, 500, ModeratelyBound, "both"},
		{49, 30, PotentiallyBound, "both"},
		{49, 29, NotBound, "device"},
	} {
		got := Judge(stepOf(c.wait, c.other))
		if got.Verdict != c.want || got.Verdict.Bottleneck() != c.bottleneck {
			t.Errorf("waiting %d, other %d of 1000: %v, %s; want %v, %s", c.wait, c.other, got.Verdict, got.Verdict.Bottleneck(), c.want, c.bottleneck)
		}
	}
	if got := Judge(Step{}); got.Verdict != NoData || got.Verdict.Bottleneck() != "unknown" || got.Idle != 0 {
		t.Errorf("no time: %+v", got)
	}
}

// The input's part is waiting, copies to the device and the device's waiting
// for the host; outputs, launches and collectives have thresholds of their own.
func TestSummaryPartsAndLevels(t *testing.T) {
	s := Step{Nanos: 1000}
	s.ByClass[HostWaitInput], s.ByClass[HostToDevice], s.ByClass[DeviceWaitHost] = 10, 20, 30
	s.ByClass[DeviceToHost], s.ByClass[HostPrepare], s.ByClass[DeviceCollectives] = 50, 30, 150
	s.ByClass[DeviceCompute32], s.ByClass[DeviceCompute16] = 300, 200
	s.ByClass[HostCompute] = 210
	got := Judge(s)
	want := Summary{
		Verdict: ModeratelyBound, Input: 6, Output: 5, Compute: 50, Collectives: 15, Launches: 3, Idle: 24,
		OutputLevel: Moderate, LaunchLevel: Moderate, CollectiveLevel: High,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.ByClass[DeviceToHost] = 200
	if got := Judge(s).OutputLevel; got != High {
		t.Errorf("output of 20 %%: %v", got)
	}
	s.ByClass[DeviceToHost], s.ByClass[HostPrepare] = 49, 29
	if got := Judge(s); got.OutputLevel != Low || got.LaunchLevel != Low {
		t.Errorf("%+v", got)
	}
	s.ByClass[DeviceCompute32] = 2000
	if got := Judge(s).Idle; got != 0 {
		t.Errorf("idle %v, never below 0", got)
	}
}

func TestTheGreaterClassHasTheMoment(t *testing.T) {
	s := StepOf(0, 100, []Span{
		{-10, 20, HostToDevice}, {10, 40, DeviceCompute32}, {15, 18, DeviceWaitHost}, {30, 50, HostWaitInput}, {45, 60, HostCompute}, {90, 300, HostCompute},
	})
	want := map[Class]int64{HostToDevice: 10, DeviceCompute32: 27, DeviceWaitHost: 3, HostWaitInput: 10, HostCompute: 20, Unknown: 30}
	for c := range numClasses {
		if s.ByClass[c] != want[c] {
			t.Errorf("%v: %d, want %d", c, s.ByClass[c], want[c])
		}
	}
	if p := []int{Unknown.Priority(), HostCompute.Priority(), HostWaitInput.Priority(), DeviceWaitHost.Priority()}; !slices.Equal(p, []int{0, 10, 110, 170}) {
		t.Errorf("priorities %v", p)
	}
}

// Against a reference that looks at every nanosecond.
func TestStepOfRandomSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var spans []Span
		for range r.IntN(12) {
			b := r.Int64N(60) - 10
			spans = append(spans, Span{b, b + r.Int64N(30), Class(r.IntN(NumClasses))})
		}
		var want [NumClasses]int64
		for at := range int64(50) {
			c := Unknown
			for _, x := range spans {
				if x.Begin <= at && at < x.End {
					c = max(c, x.Class)
				}
			}
			want[c]++
		}
		if got := StepOf(0, 50, spans); got.ByClass != want || got.Nanos != 50 {
			t.Fatalf("%v: %v, want %v", spans, got.ByClass, want)
		}
	}
}

func TestChecklistHostBreakdown(t *testing.T) {
	var raw HostTime
	raw[DemandedRead], raw[Preprocessing] = 5, 10
	got := BreakDown(raw, 10, 10, 40)
	if got != (HostTime{Preprocessing: 20, DemandedRead: 10, Enqueue: 10}) {
		t.Errorf("%v, want 10 of reading and 20 of preprocessing", got)
	}
	if got := BreakDown(raw, 10, 90, 40); got != (HostTime{Enqueue: 10}) {
		t.Errorf("copies longer than the step: %v, want nothing but them", got)
	}
	if got := BreakDown(raw, 10, 0, 40); got[DemandedRead] != 5 || got[Preprocessing] != 10 {
		t.Errorf("without copies: %v, want raw times", got)
	}
}

func TestHostOpsByName(t *testing.T) {
	for name, want := range map[string]HostClass{
		"Iterator::TFRecord":             DemandedRead,
		"TextLineDataset":                DemandedRead,
		"FixedLengthRecordDatasetOp":     DemandedRead,
		"SSTable":                        DemandedRead,
		"RecordIO":                       DemandedRead,
		"Iterator::Prefetch::TFRecord":   AdvancedRead,
		"ParallelInterleaveV4[TFRecord]": AdvancedRead,
		"MemoryReaderTFRecord":           AdvancedRead,
		"Iterator::ParallelMapV2":        Preprocessing,
		"Iterator::BatchV2":              Preprocessing,
		pipeline.StageSource:             DemandedRead,
		pipeline.StageInterleave:         AdvancedRead,
		pipeline.StageMap:                Preprocessing,
		pipeline.StageDevice:             Enqueue,
	} {
		if got := ClassifyHost(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestAsynchronousIterators(t *testing.T) {
	for name, want := range map[string]bool{
		"Iterator::Prefetch": true, "ParallelInterleaveV4": true, "ParallelMapV2": true, "ParseExample": true, "MapAndBatch": true,
		"DataService": true, "LegacyParallelInterleaveV2": true, "ParallelBatch": true, "Iterator::Root::Prefetch[3]": true, "map_and_batch": true,
		"Batch": false, "Map": false, "Iterator::Prefetch::Shuffle": false, "TFRecord": false,
	} {
		if got := IsAsync(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Batch asks a parallel map, whose call on another thread began long before;
// only what the batch waited for counts.
func TestBottleneckIsTheIteratorThatHasTheConsumerWait(t *testing.T) {
	call := Call{"Batch", 1000, 1100 * 1000, 1, []Call{
		{"ParallelMapV2", -5 * ms, 800 * 1000, 2, []Call{{"TFRecord", -5 * ms, -4 * ms, 2, nil}, {"TFRecord", 100 * 1000, 300 * 1000, 2, nil}}},
	}}
	name, self := Blocking(&call)
	if name != "ParallelMapV2" || self != (800-1-200)*1000 {
		t.Errorf("%s, %d", name, self)
	}
	got := Analyse(map[string][]Call{
		"eval":  {{"Prefetch", 0, 40_000, 1, nil}},
		"train": {{"Batch", 0, 10, 1, nil}, call},
		"other": {{"Shuffle", 0, 60_000, 1, []Call{{"Range", 0, 50_000, 1, nil}}}},
	})
	if len(got) != 3 || got[0].Pipeline != "train" || got[0].Slow != 1 || got[0].Calls != 2 || got[0].Bottleneck != "ParallelMapV2" || len(got[0].Advice) == 0 {
		t.Errorf("%+v", got)
	}
	if got[1].Pipeline != "other" || got[1].Bottleneck != "Range" || got[1].Self != 50_000 {
		t.Errorf("%+v", got[1])
	}
	if got[2].Pipeline != "eval" || got[2].Slow != 0 || got[2].Bottleneck != "" {
		t.Errorf("a call of 40 us is not slow: %+v", got[2])
	}
}

func TestAdviceFitsTheStage(t *testing.T) {
	for name, want := range map[string]string{
		pipeline.StageMap:        "map in parallel: num_parallel_calls=AUTOTUNE",
		"Iterator::ParallelMap":  "raise the number of parallel calls",
		pipeline.StageInterleave: "read more files at a time: raise cycle_length and num_parallel_calls",
		pipeline.StageSource:     "interleave several files in parallel",
		"TFRecord":               "interleave several files in parallel",
		pipeline.StageBatch:      "batch in parallel, or fuse map and batch",
		"FiniteTake":             "prefetch at the end of the pipeline, so that it runs beside the step",
	} {
		if got := Advice(name); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %q, want %q first", name, got, want)
		}
	}
}

// A run over a modelled pipeline: the first wait fills the shuffle buffer and
// is warm-up, the others are the slow map's.
func TestRunTellsWarmUpApartAndNamesTheStage(t *testing.T) {
	var strings event.Strings
	r := NewRun(&strings)
	p, err := pipeline.New(pipeline.Settings{
		Elements: 1000, Shuffle: 100, Map: pipeline.Map{Cost: ms}, Batch: []int{10}, Prefetch: 2,
	}, r, &strings)
	if err != nil {
		t.Fatal(err)
	}
	const train = 5 * ms
	now := int64(0)
	for step := range int32(20) {
		p.Advance(now)
		r.Emit(&event.Event{Kind: event.StepBegin, Time: now, Step: step})
		b, err := p.Next(now)
		if err != nil {
			t.Fatal(err)
		}
		if b.Ready > now {
			id := uint64(step) + 1
			r.Emit(&event.Event{Kind: event.StallBegin, Time: now, ID: id, Op: strings.ID(b.Stage), Device: 1, Step: step})
			r.Emit(&event.Event{Kind: event.StallEnd, Time: b.Ready, ID: id, Op: strings.ID(b.Stage), Device: 1, Step: step})
		}
		r.Emit(&event.Event{Kind: event.OpBegin, Time: b.Ready, ID: uint64(step), Device: 1, Step: step})
		now = b.Ready + train
		r.Emit(&event.Event{Kind: event.OpEnd, Time: now, ID: uint64(step), Device: 1, Step: step})
		r.Emit(&event.Event{Kind: event.StepEnd, Time: now, Step: step})
	}
	got := r.Reading()
	if got.Steps != 20 || got.WarmStall != 109*ms || got.Stalled != 19*5*ms {
		t.Errorf("%d steps, warm-up %d ms, stalled %d ms", got.Steps, got.WarmStall/ms, got.Stalled/ms)
	}
	if f := got.StalledFraction(); math.Abs(f-0.5) > 1e-9 || got.Summary.Verdict != HighlyBound || got.Summary.Input != 50 || got.Summary.Compute != 50 {
		t.Errorf("%v, %+v", f, got.Summary)
	}
	if len(got.Stages) != 1 || got.Stages[0] != (Blamed{pipeline.StageMap, 19 * 5 * ms}) {
		t.Errorf("%+v", got.Stages)
	}
	if got.Host[Preprocessing] == 0 || got.Host[DemandedRead] != 0 {
		t.Errorf("host %v: all of it is the map's", got.Host)
	}
}

// A copy that goes on beside the device's work is hidden by it; one that the
// step waits for is the input's.
func TestCopiesCountWhereTheDeviceIdles(t *testing.T) {
	var strings event.Strings
	r := NewRun(&strings)
	at := func(k event.Kind, time int64, id uint64, dev, peer event.DeviceID) {
		r.Emit(&event.Event{Kind: k, Time: time, ID: id, Device: dev, Peer: peer})
	}
	for step := range int64(2) {
		b := step * 100
		at(event.StepBegin, b, 0, 0, 0)
		at(event.TransferBegin, b, 1, 0, 1)
		at(event.OpBegin, b+10, 2, 1, 0)
		at(event.TransferEnd, b+30, 1, 0, 1)
		at(event.TransferBegin, b+80, 3, 1, 0)
		at(event.OpEnd, b+90, 2, 1, 0)
		at(event.TransferEnd, b+100, 3, 1, 0)
		at(event.StepEnd, b+100, 0, 0, 0)
	}
	s := r.Reading().Summary
	if s.Input != 10 || s.Compute != 80 || s.Output != 10 || s.Verdict != ModeratelyBound {
		t.Errorf("%+v", s)
	}
}
