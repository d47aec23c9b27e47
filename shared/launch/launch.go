package launch

import (
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/pipeline"
	"tideline/shared/program"
)

// Options say where a run's events go and what it computes with.
type Options struct {
	// Strings is the run's string table; nil makes one.
	Strings *event.Strings
	// Sink takes the events, in order; nil drops them. Emit is called on the
	// goroutine that calls Start, Step and Finish.
	Sink event.Sink
	// Backend does the work; nil is the modelled one, which only counts time.
	// A Backend serves one run.
	Backend exec.Backend
	// Data is the content of the input, for a Backend that computes. Nil leaves
	// batches as zeros.
	Data Data
	// Input makes a pipeline that reads and maps for real, on its own clock; it
	// brings its own Data. Nil is the modelled schedule.
	Input func(s pipeline.Settings, p *program.Program, sink event.Sink, strings *event.Strings) (Input, error)
	// Machine is the physical cards, shared by the runs that name one card;
	// nil makes fresh ones from the workload, with what others hold on them.
	Machine *device.Machine
	// Remark is a line for the log at the start, such as why a run is modelled
	// that might have been computed; "" is none.
	Remark string
	// Stop is polled about once per op; true ends the run with EndStopped.
	// Nil never stops.
	Stop func() bool
	// OnStep is called after every finished step with the number of steps
	// done. Nil is not called.
	OnStep func(done int)
}

// Input is a running input pipeline with what it delivers.
type Input interface {
	pipeline.Pipeline
	// Data gives the content of the batch that Next gave last.
	Data
	Close()
}

// Result is what a run comes to.
type Result struct {
	Reason   event.EndReason
	Message  string // for people: why it ended; "" when done
	Steps    int    // finished
	Nanos    int64  // on the run's clock
	Events   uint64 // emitted
	Devices  []DeviceResult
	Metrics  []Metric // last value of each, in order of first appearance; empty on a Backend that computes nothing
	Warnings []string // the first different ones, such as a rule that matches nothing
	OOM      *OOM     // set when Reason is EndOutOfMemory
}

// DeviceResult is what one logical device came to. Bytes.
type DeviceResult struct {
	ID           event.DeviceID
	Name         string // /GPU:0
	PeakInUse    int64
	PeakReserved int64
	Limit        int64 // 0 for the host, which has none
	// What the limit was worked out from, all 0 where it was configured and for
	// the host: the card, the driver's context, what others held, and what is
	// left to libraries.
	Total, Context, Held, Reserve int64
}

// Metric is a number that the run reported.
type Metric struct {
	Name  string
	Value float64
}

// OOM is a failed request.
type OOM struct {
	Device    event.DeviceID
	Allocator string
	Op        string
	Requested int64 // bytes
	Cause     event.OOMCause
	Free      int64 // bytes of the pool not in use
	Largest   int64 // largest free chunk
}

// Run runs a workload to its end. An error means that it could not start or
// broke; out of memory and being stopped are Results.
func Run(w api.Workload, o Options) (Result, error) {
	r, err := Start(w, o)
	if err != nil {
		return Result{Reason: event.EndFailed, Message: err.Error()}, err
	}
	for r.Step() {
	}
	return r.Finish()
}
