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
	Name          string     `field:"name"`           // shown to people; default: the model's name
	Model         string     `field:"model"`          // zoo name: mlp, lenet5, resnet50, …
	Mode          Mode       `field:"mode"`           // eager, graph, planned; default graph
	Train         *Train     `field:"train"`          // nil: inference
	Precision     string     `field:"precision"`      // of inference: float32, float16, …; training has its own
	Batch         []int      `field:"batch"`          // samples per step; more than one value: steps take them in turn
	Image         []int      `field:"image"`          // side of the square images in pixels, taken in turn; empty: the model's own
	Sequence      []int      `field:"sequence"`       // tokens per sample, taken in turn; empty: the model's own
	Steps         int        `field:"steps"`          // how many steps to run
	Seed          uint64     `field:"seed"`           // of initial weights and shuffling; default 1
	Optimize      *bool      `field:"optimize"`       // rewrite graphs before they run, as TensorFlow's grappler does; default false
	CheckNumerics bool       `field:"check_numerics"` // end the run at the first NaN or infinity that a kernel makes, by the op's name
	Keep          []string   `field:"keep"`           // patterns of op names whose results the program appends to a list that it never clears: a leak
	CopyPolicy    CopyPolicy `field:"copy_policy"`    // eager: what happens to an input that lies on another device; default silent
	Env           []string   `field:"env"`            // NAME=VALUE: the environment variables of TensorFlow that change memory
	Runtime       Runtime    `field:"runtime"`        //
	Input         Input      `field:"input"`          //
	Devices       []Device   `field:"devices"`        // accelerators; empty: CPU only. CPU:0 always exists
	Placement     Placement  `field:"placement"`      //
}

// Mode is a way of executing a program.
type Mode string

// The modes.
const (
	Eager   Mode = "eager"   // op by op, in program order, tensors live as long as somebody holds them
	Graph   Mode = "graph"   // as a tf.function: pruned, first-in first-out, buffers forwarded
	Planned Mode = "planned" // as a graph, with every buffer's place worked out before the first step
)

// CopyPolicy is tf.config's device policy: what eager execution does with an
// input that lies on another device than its op.
type CopyPolicy string

// The policies.
const (
	CopySilent         CopyPolicy = "silent"           // copy
	CopySilentForInt32 CopyPolicy = "silent_for_int32" // copy int32 tensors, refuse others
	CopyWarn           CopyPolicy = "warn"             // warn, then copy
	CopyExplicit       CopyPolicy = "explicit"         // an error
)

// Train says how to train; its absence means inference.
type Train struct {
	Optimizer    string  `field:"optimizer"`     // sgd, momentum, adagrad, rmsprop, adam, adamw, amsgrad
	LearningRate float64 `field:"learning_rate"` // default by optimizer
	Precision    string  `field:"precision"`     // float32, float64, mixed_float16, mixed_bfloat16
	Momentum     float64 `field:"momentum"`      // of momentum (default 0.9) and rmsprop (default none)
	Nesterov     bool    `field:"nesterov"`      // momentum looks ahead
	Centered     bool    `field:"centered"`      // rmsprop keeps the mean gradient, too
	Checkpoint   string  `field:"checkpoint"`    // none, sqrt, selective, a number k: every k-th block is kept, or a size: the modelled peak stays within
	Swap         string  `field:"swap"`          // none, activations, auto: to host memory between forward and backward
	Microbatches int     `field:"microbatches"`  // parts of a batch that go through one after the other before the weights change; default 1
	Clip         float64 `field:"clip"`          // global norm that gradients are scaled down to; 0: none
}

// Runtime are switches of TensorFlow's runtime that change what memory is held
// for how long. The zero value is how TensorFlow runs by default here.
type Runtime struct {
	Async                bool  `field:"async"`                 // eager ops go into a queue, which holds their inputs; the program runs ahead
	FreeTapeGradually    bool  `field:"free_tape_gradually"`   // eager: the tape lets go of a value with the last gradient that reads it
	DeferredDeletion     int64 `field:"deferred_deletion"`     // bytes of references of finished copies that are gathered before they are dropped together; 0: each at once
	TimestampedAllocator bool  `field:"timestamped_allocator"` // copies to a device take only memory whose last kernel has run
	Autotune             bool  `field:"autotune"`              // convolutions try algorithms, each with its workspace, in the first step
	WorkspaceLimit       int64 `field:"workspace_limit"`       // most bytes of a kernel's workspace; 0: TensorFlow's 4 GiB
	ForceGPUCompatible   bool  `field:"force_gpu_compatible"`  // all host tensors come from the pinned pool
}

// Input is the pipeline that feeds a run.
type Input struct {
	Source           string     `field:"source"`             // digits (real), text (for models that read tokens), synthetic; default: what suits the model
	OpenCost         int64      `field:"open_cost"`          // nanoseconds before a source's first element, for the model of time
	FetchCost        int64      `field:"fetch_cost"`         // nanoseconds to read one element
	Skip             int        `field:"skip"`               // elements of the source left out at the beginning
	Take             int        `field:"take"`               // elements of what is left that are used; 0: all
	Interleave       Interleave `field:"interleave"`         // reading several files in turn
	Cache            bool       `field:"cache"`              // keep what was read and mapped in host memory after the first epoch
	Map              Map        `field:"map"`                // the map stage
	Shuffle          int        `field:"shuffle"`            // elements in the shuffle buffer; 0: none
	Repeat           int        `field:"repeat"`             // epochs; 0: for ever
	DropRemainder    bool       `field:"drop_remainder"`     // no smaller last batch
	Prefetch         int        `field:"prefetch"`           // batches buffered ahead; 0: none, -1 ("auto"): grows when it ran empty
	PrefetchToDevice int        `field:"prefetch_to_device"` // batches buffered in the first accelerator's memory; 0: none
	RAMBudget        int64      `field:"ram_budget"`         // bytes that automatic buffers may take; 0: no limit
}

// Interleave reads several files at once, so many elements from each in turn.
type Interleave struct {
	Cycle    int `field:"cycle"`    // files open at a time; 0: the source is read as one
	Block    int `field:"block"`    // elements taken from one before the next; default 1
	Parallel int `field:"parallel"` // files read at the same time; default 1
}

// Map is the map stage of the pipeline.
type Map struct {
	Parallel int   `field:"parallel"` // calls in flight; default 1; -1 ("auto"): as many as TensorFlow's optimizer comes to, from 1 to the host's cores
	Cost     int64 `field:"cost"`     // nanoseconds an element costs, for the model of time; written as a duration, "300us"
}

// Device is one accelerator that a run asks for.
type Device struct {
	Kind        string  `field:"kind"`         // gpu, tpu
	Preset      string  `field:"preset"`       // t4-16g, … : shared/device.Presets
	Card        string  `field:"card"`         // which physical card; default PRESET#N for the N-th device. Runs that name one card share its memory
	Hidden      bool    `field:"hidden"`       // physically there but not visible: no logical device is made of it
	Growth      bool    `field:"growth"`       // allocate as needed
	MemoryLimit int64   `field:"memory_limit"` // bytes; a logical device with this limit. Excludes growth
	Logical     []int64 `field:"logical"`      // bytes each: several logical devices on the card. Excludes growth
	Virtual     int     `field:"virtual"`      // so many logical devices, each with an equal part of the limit
	Fraction    float64 `field:"fraction"`     // limit as a part of the card's total; above 1 with unified memory. 0: what is free but for the reserve
	Unified     bool    `field:"unified"`      // managed memory, which may exceed the card
	ReserveRule string  `field:"reserve_rule"` // what is left to the system: current, tf2.1
	Peer        string  `field:"peer"`         // the link to other cards: nvlink, pcie; default the preset's
	Held        int64   `field:"held"`         // bytes that other processes hold on the card
	// Allocator serves the device's memory: bfc, or another framework's, by the
	// names that the program knows; of a TPU it is always its own.
	Allocator string `field:"allocator"`
	// AllocatorOptions are settings of the allocator, each name=value.
	AllocatorOptions []string `field:"allocator_options"`
}

// Placement says where ops go.
type Placement struct {
	Soft  *bool  `field:"soft"`  // run elsewhere what cannot run where it was put; default true
	Log   bool   `field:"log"`   // a log line for every op placed
	Rules []Rule `field:"rules"` // the first that matches an op's name decides
}

// Rule puts the ops whose name matches a pattern on a device. In a pattern *
// stands for any text: "conv2/*".
type Rule struct {
	Match  string `field:"match"`
	Device string `field:"device"` // a device name or part of one: /GPU:1, /CPU:0
}
