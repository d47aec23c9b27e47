// Package api holds the types that agent, browser and command line exchange:
// the workload, and the messages of the HTTP interface and the stream.
//
// The types here are plain data with their validation. Reading YAML and JSON
// is package api/workfile's, so that the browser module need not carry those
// readers: it exchanges workloads as flat event.Fields.
package api

// Workload is what is run: a model, how, on which devices. It is the YAML
// file, the body of the HTTP interface, the form on the page and the settings
// event of a timeline, all by the field names in the tags. The zero value of
// an optional field means its default; Defaults fills them in.
type Workload struct {
	Name      string    `field:"name"`      // shown to people; default: the model's name
	Model     string    `field:"model"`     // zoo name: mlp, lenet5
	Mode      Mode      `field:"mode"`      // eager, graph; default graph
	Train     *Train    `field:"train"`     // nil: inference
	Batch     []int     `field:"batch"`     // samples per step; more than one value: steps take them in turn
	Steps     int       `field:"steps"`     // how many steps to run
	Seed      uint64    `field:"seed"`      // of initial weights and shuffling; default 1
	Input     Input     `field:"input"`     //
	Devices   []Device  `field:"devices"`   // accelerators; empty: CPU only. CPU:0 always exists
	Placement Placement `field:"placement"` //
}

// Mode is a way of executing a program.
type Mode string

// The modes.
const (
	Eager Mode = "eager" // op by op, in program order, tensors live as long as somebody holds them
	Graph Mode = "graph" // as a tf.function: pruned, first-in first-out, buffers forwarded
)

// Train says how to train; its absence means inference.
type Train struct {
	Optimizer    string  `field:"optimizer"`     // sgd, adam
	LearningRate float64 `field:"learning_rate"` // default 0.1 for sgd, 0.002 for adam
	Precision    string  `field:"precision"`     // float32
}

// Input is the pipeline that feeds a run.
type Input struct {
	Source   string `field:"source"`   // digits (real), synthetic
	Map      Map    `field:"map"`      // the map stage
	Shuffle  int    `field:"shuffle"`  // elements in the shuffle buffer; 0: none
	Prefetch int    `field:"prefetch"` // batches buffered ahead; 0: none, -1 ("auto"): grows when it ran empty
}

// Map is the map stage of the pipeline.
type Map struct {
	Parallel int   `field:"parallel"` // calls in flight; default 1
	Cost     int64 `field:"cost"`     // nanoseconds an element costs, for the model of time; written as a duration, "300us"
}

// Device is one accelerator that a run asks for.
type Device struct {
	Kind        string  `field:"kind"`         // gpu
	Preset      string  `field:"preset"`       // t4-16g, … : shared/device.Presets
	Card        string  `field:"card"`         // which physical card; default PRESET#N for the N-th device. Runs that name one card share its memory
	Growth      bool    `field:"growth"`       // allocate as needed
	MemoryLimit int64   `field:"memory_limit"` // bytes; a logical device with this limit. Excludes growth
	Logical     []int64 `field:"logical"`      // bytes each: several logical devices on the card. Excludes growth
	Held        int64   `field:"held"`         // bytes that other processes hold on the card
	Allocator   string  `field:"allocator"`    // bfc
}

// Placement says where ops go.
type Placement struct {
	Soft  *bool  `field:"soft"`  // run elsewhere what cannot run where it was put; default true
	Rules []Rule `field:"rules"` // the first that matches an op's name decides
}

// Rule puts the ops whose name matches a pattern on a device. In a pattern *
// stands for any text: "conv2/*".
type Rule struct {
	Match  string `field:"match"`
	Device string `field:"device"` // a device name or part of one: /GPU:1, /CPU:0
}
