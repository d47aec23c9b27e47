package feed_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"tideline/native/backend/cpu"
	"tideline/native/dataset"
	"tideline/native/feed"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/launch"
)

// memoryHash runs a workload with arithmetic on the CPU, with goroutines for
// its input or the modelled schedule.
func memoryHash(t *testing.T, w api.Workload, data dataset.Data, threads bool) (uint64, launch.Result) {
	t.Helper()
	table := new(event.Strings)
	h := eventhash.New(table)
	b := cpu.New(nil)
	o := launch.Options{Strings: table, Backend: b, Sink: h, Data: data}
	if threads {
		o.Data, o.Input = nil, b.Input(data)
	}
	res, err := launch.Run(w, o)
	if err != nil {
		t.Fatal(err)
	}
	return h.Sum64(), res
}

// Every knob of the input: real goroutines and the modelled schedule deliver
// the same batches, so that the losses are equal to the last bit, and take the
// same memory.
func TestEveryInputKnobIsTheSameForReal(t *testing.T) {
	train, _, err := dataset.Load()
	if err != nil {
		t.Fatal(err)
	}
	data := dataset.Of(train)
	plain := api.Input{Source: "digits"}
	base, _ := memoryHash(t, workload(plain), data, false)
	var baseLoss float64
	for _, c := range []struct {
		name   string
		in     api.Input
		memory bool // it changes what memory is held
	}{
		{"plain", plain, false},
		{"map", api.Input{Map: api.Map{Parallel: 3}}, true},
		{"map auto", api.Input{Map: api.Map{Parallel: api.Auto}}, true},
		{"shuffle", api.Input{Shuffle: 50}, true},
		{"prefetch", api.Input{Prefetch: 2}, true},
		{"cache", api.Input{Cache: true, Take: 40}, true},
		{"cache and shuffle", api.Input{Cache: true, Take: 40, Shuffle: 10, Map: api.Map{Parallel: 2}}, true},
		{"interleave", api.Input{Interleave: api.Interleave{Cycle: 3, Block: 2}}, true},
		{"parallel interleave", api.Input{Interleave: api.Interleave{Cycle: 4, Block: 2, Parallel: 3}, Prefetch: 1}, true},
		{"skip and take", api.Input{Skip: 100, Take: 70}, true},
		{"repeat", api.Input{Take: 30, Repeat: 2}, true},
		{"repeat, whole batches", api.Input{Take: 30, Repeat: 2, DropRemainder: true}, true},
	} {
		c.in.Source = "digits"
		modelled, want := memoryHash(t, workload(c.in), data, false)
		got, res := memoryHash(t, workload(c.in), data, true)
		if got != modelled {
			t.Errorf("%s: memory events %016x for real, %016x modelled", c.name, got, modelled)
		}
		if res.Steps != want.Steps || len(res.Metrics) == 0 || res.Metrics[0] != want.Metrics[0] {
			t.Errorf("%s: %d steps, %v for real; %d, %v modelled", c.name, res.Steps, res.Metrics, want.Steps, want.Metrics)
		}
		if c.memory && modelled == base {
			t.Errorf("%s changes nothing", c.name)
		}
		if c.name == "plain" {
			baseLoss = res.Metrics[0].Value
		}
		if reordered := strings.Contains(c.name, "interleave") || strings.Contains(c.name, "shuffle"); reordered && res.Metrics[0].Value == baseLoss {
			t.Errorf("%s: the same loss as in another order", c.name)
		}
	}
}

func workload(in api.Input) api.Workload {
	return api.Workload{Model: "mlp", Train: &api.Train{Optimizer: "sgd"}, Batch: []int{8}, Steps: 12, Input: in}
}

// broken is a source that fails at one element.
type broken struct {
	dataset.Data
	fail func()
}

func (b broken) Map(element int32, image []float32, size int) (int64, error) {
	if element == 37 {
		b.fail()
	}
	return b.Data.Map(element, image, size)
}

// A stage that panics ends the run with an error that names stage and element;
// the recording ends with it, and no goroutine stays.
func TestAPanickingStageEndsTheRunCleanly(t *testing.T) {
	train, _, err := dataset.Load()
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for _, in := range []api.Input{{}, {Prefetch: 2, Map: api.Map{Parallel: 3}}, {Interleave: api.Interleave{Cycle: 2, Parallel: 2}, Cache: true}} {
		in.Source = "digits"
		table := new(event.Strings)
		var last event.Event
		b := cpu.New(nil)
		res, err := launch.Run(workload(in), launch.Options{
			Strings: table, Backend: b, Input: b.Input(broken{dataset.Of(train), func() { panic("no such page") }}),
			Sink: event.SinkFunc(func(e *event.Event) { last = *e }),
		})
		var at *feed.StageError
		if !errors.As(err, &at) || !errors.Is(err, feed.ErrPanic) || at.Element != 37 || at.Stage != "map" || res.Reason != event.EndFailed {
			t.Errorf("%+v: %v, %v", in, res.Reason, err)
		}
		if text := table.At(last.Text); last.Kind != event.End || !strings.Contains(text, "map element 37: panic: no such page") {
			t.Errorf("%+v: the recording ends with %v %q", in, last.Kind, text)
		}
	}
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}
