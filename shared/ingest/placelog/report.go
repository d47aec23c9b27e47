package placelog

import (
	"slices"
	"strings"
)

// Report is what a text says of the devices of ops.
type Report struct {
	Line    int // of the first
	Devices []Device
	Ops     []Op // not on a GPU, each once, in the order of the text
	More    int  // such ops beyond the ones kept
	Refused []Refusal
	Refuses int // also those beyond the ones kept
	// NoGPU are types of ops that the text says have no kernel for a GPU.
	NoGPU []string
	// Moved says that groups of ops were put where one of them could run.
	Moved bool
	Cut   string // a limit that was met

	groups  map[string]string // by op: the type that keeps its group off the GPU
	onGPU   map[string]int    // by scope
	seen    map[string]bool
	dropped bool
}

// Device is where ops ran.
type Device struct {
	Name  string // such as GPU:0; with the job and the task where that is not this one's
	Ops   int    // placed, or executed eagerly
	Types []Type // in order of sight
	byRow map[string]int
}

// Type is how often a type of op ran on a device.
type Type struct {
	Name  string
	Count int
}

// Op is a node of a graph, or a type of op that was executed eagerly.
type Op struct {
	Name   string // "" of those executed eagerly
	Type   string // "" when not told
	Device string
	Line   int // of the first
	Count  int
	// Beside is how many times an op before or after ran on a GPU, of those
	// executed eagerly.
	Beside int
}

// Refusal is an op that could not be put where it was asked to be.
type Refusal struct {
	Op, Wanted string
	Line       int
	NoKernel   string // the kind of device that there is no kernel for; "" for none
	NoDevice   bool   // there is no such device
	Group      string // the device that its group requires; "" for none
}

// GPU says whether a device's name is of a GPU.
func GPU(device string) bool {
	i := strings.LastIndexByte(device, '/')
	return strings.HasPrefix(device[i+1:], "GPU:")
}

// Empty says whether the text told of no op's device.
func (r *Report) Empty() bool { return len(r.Devices) == 0 && r.Refuses == 0 && len(r.NoGPU) == 0 }

// Beside says how many ops of the op's own scope, all that shares its name up to
// the last slash, are on a GPU; of an op executed eagerly how often its
// neighbour in time was.
func (r *Report) Beside(o *Op) int {
	if o.Name == "" {
		return o.Beside
	}
	return r.onGPU[scope(o.Name)]
}

// Held is the type of op in the same group that has no kernel for a GPU; "" for
// none.
func (r *Report) Held(name string) string { return r.groups[name] }

// HasNoGPU says whether the text tells that a type of op has no kernel for a GPU.
func (r *Report) HasNoGPU(typ string) bool { return slices.Contains(r.NoGPU, typ) }

func scope(name string) string {
	i := strings.LastIndexByte(name, '/')
	return name[:max(i, 0)]
}
