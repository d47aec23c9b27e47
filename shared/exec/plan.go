package exec

import (
	"tideline/protocol/event"
	"tideline/shared/program"
)

// Plan is a program made ready to run: placed, with the copies between
// devices that follow, and for graph execution pruned. It counts as one
// concrete function: what it holds for good are its constants.
type Plan struct {
	atOnce  bool // see SendAtOnce
	p       *program.Program
	eager   bool
	nodes   []node
	tensors []tensor
	edges   []edge
	inputs  []tensorID // host memory of each program input
	fetches []fetch
	slots   int     // input slots of all nodes
	needs   []int32 // by node: inputs and control edges
	roots   []int32
	traced  bool

	// State of the step under way.
	waiting []int32    // by node: inputs and control edges still missing
	slot    []bufferID // by input slot: the reference that it holds
	outs    []bufferID // the outputs of the op under way
	buf     []bufferID // by tensor: persistent memory, and in eager mode every live handle
	ready   fifo

	// Prefetching to the device: by input.
	sentTo   []tensorID
	readHere []bool

	// Planned: by tensor, and then by node for its workspace, the offset in
	// the arena of its memory, or alone; nil in other modes.
	place  []int64
	arenas []arena

	// Eager: what the program lets go of after each node, in order. Node i's
	// are dying[dies[i]:dies[i+1]].
	dying     []tensorID
	dies      []int32
	atEnd     []tensorID
	firstSlot int32 // first update node, where missing optimizer slots are made
}

type tensorID int32

// tensor is a value in the memory of one device.
type tensor struct {
	value    program.ValueID
	from     tensorID // the tensor that this one is copied from; none for the original
	producer int32
	first, n int32 // its out-edges in Plan.edges, in order of creation
	bytes    int64
	elements int64
	name     event.StringID
	space    spaceID
	kind     tensorKind
	category event.Category
	cause    event.TransferCause // of the copy that makes it
	dtype    program.DType
	argument bool // of a copy: for an input that a kernel wants in host memory
	read     bool // of a variable: its value is read, not only written over
}

type tensorKind uint8

const (
	computed tensorKind = iota
	variableTensor
	constant
	inputTensor
	copied
)

const noTensor tensorID = -1

type edge struct {
	node int32
	slot int32 // index in Plan.slot
}

type nodeKind uint8

const (
	opNode nodeKind = iota
	variableNode
	constNode
	inputNode
	copyNode
	swapNode // a copy that the program asks for, to the host or back
	fetchNode
)

// node is an op, or what stands for one: a copy, a fetch.
type node struct {
	id        int32
	kind      nodeKind
	alias     bool
	metadata  bool // reads no contents: Shape
	tuned     bool // has tried its algorithms, see Config.Autotune
	kept      bool // its outputs stay referenced, see Config.Keep
	src       program.NodeID
	name      event.StringID
	device    event.DeviceID
	phase     event.Category
	in, out   []tensorID
	control   []int32 // nodes that wait for this one
	writes    []write // the variables that the op changes
	needs     int32   // inputs and control edges
	firstSlot int32
	forward   []int
	forwardTo int
	workspace int64
	workName  event.StringID
	dispatch  int64
	kernel    Kernel
}

// write is a variable that an op changes, and the input that is its value.
type write struct {
	input    int
	variable program.VariableID
}

type fetch struct {
	name   string
	id     event.StringID
	node   int32
	tensor tensorID
}

// fifo is the queue of nodes that can run; no node enters it twice in a step.
type fifo struct {
	ring       []int32
	head, tail int
}

func (q *fifo) reset()       { q.head, q.tail = 0, 0 }
func (q *fifo) push(n int32) { q.ring[q.tail] = n; q.tail++ }
func (q *fifo) pop() (int32, bool) {
	if q.head == q.tail {
		return 0, false
	}
	q.head++
	return q.ring[q.head-1], true
}
