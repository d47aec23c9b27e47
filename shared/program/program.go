package program

import "slices"

// Program is one training or inference step as a graph: nodes in program
// order (which is topological), the values they produce, the variables that
// outlive the step. It is the same for every executor; eager execution walks
// Nodes in order, graph execution goes by the edges.
//
// A variable enters the graph through one Variable node, whose output is the
// variable's own buffer. Ops that change a variable (Assign, Apply…) take that
// value as an input, write into it, and have a control edge from every node
// that reads it, so that a step never sees a weight half updated.
//
// A program is built for one batch size; another batch means another Program,
// as another shape means another trace of a tf.function.
type Program struct {
	Name      string
	Batch     int
	Nodes     []Node
	Values    []Value
	Variables []Variable
	Inputs    []ValueID // fed by the input pipeline each step, in its order: images, labels
	Fetches   []Fetch   // read back by the host after each step
}

// The ids index the slices of a Program.
type (
	// NodeID is an index into Nodes.
	NodeID int32
	// ValueID is an index into Values.
	ValueID int32
	// VariableID is an index into Variables.
	VariableID int32
)

// None is the id of nothing.
const None = -1

// Value is one tensor.
type Value struct {
	Name     string // "conv1/Conv2D:0" without the ":0"
	DType    DType
	Shape    Shape
	Producer NodeID // None for an input
	Index    int    // which output of Producer
	// Variable is set for a value that is a variable's own buffer (the output
	// of a Variable node): it costs no memory of its own.
	Variable VariableID
	// Role says what the value is for; the executor turns it into the event
	// category.
	Role Role
}

// Bytes is the memory the value needs.
func (v *Value) Bytes() int64 { return v.Shape.Elements() * v.DType.Size() }

// Role says what a value is for.
type Role uint8

// The roles.
const (
	RoleActivation Role = iota
	RoleInput
	RoleVariable
	RoleGradient           // of a variable
	RoleActivationGradient // of anything else
	RoleConstant
	RoleOutput    // fetched
	RoleTemporary // scratch between the ops of an update
)

// Variable is state that outlives the step: a weight, or an optimizer's slot.
type Variable struct {
	Name  string
	DType DType
	Shape Shape
	Slot  bool // optimizer state, made at the first step (not with the model)
	// Frozen is set for state that no optimizer trains, such as the moving
	// statistics of batch normalisation.
	Frozen bool
	// Training is set for the training step's own numbers that exist from the
	// start and are no part of the model: the loss scale and its counter.
	Training bool
	Init     Init
}

// Trained says whether an optimizer changes the variable.
func (v *Variable) Trained() bool { return !v.Slot && !v.Frozen && !v.Training }

// Bytes is the memory the variable needs.
func (v *Variable) Bytes() int64 { return v.Shape.Elements() * v.DType.Size() }

// Init says how a variable gets its first value. The numbers come from a
// seeded generator that is the same on every host.
type Init struct {
	Kind  InitKind
	Scale float64 // half-width of the uniform distribution; the constant for InitConstant
}

// InitKind is a kind of first value.
type InitKind uint8

// The kinds.
const (
	InitZero InitKind = iota
	InitUniform
	InitConstant
)

// Fetch is a value that the host reads after a step.
type Fetch struct {
	Name  string // loss, accuracy
	Value ValueID
}

// Phase is the part of a step that a node belongs to.
type Phase uint8

// The phases.
const (
	Forward Phase = iota
	Backward
	Update
)

// Node is one op of the program.
type Node struct {
	Name    string // scope path that placement rules match: "conv1/Conv2D", "gradients/conv1/Conv2DBackpropFilter"
	Op      Op
	Inputs  []ValueID
	Outputs []ValueID
	Control []NodeID // must have run before
	Attrs   Attrs
	Device  string // asked for by the program itself; "" leaves it to rules and defaults
	// Colocate names nodes that this one wants to share a device with:
	// TensorFlow's attribute _class, whose "loc:@" may be left out.
	Colocate []string
	Phase    Phase
	// Of is, for a backward node, the forward node whose gradient it belongs
	// to, so that a placer can keep the two together; None otherwise.
	Of NodeID
}

// Op names an operation; op.go lists them, Lookup gives their definitions.
type Op string

// Attrs are an op's compile-time arguments. One struct for all ops: the
// fields that an op reads are named at its definition.
type Attrs struct {
	Variable   VariableID           // Variable, Assign…, Apply…: which one; None elsewhere
	Slots      [MaxSlots]VariableID // Apply…: the optimizer's state, in the order of the op's inputs; None elsewhere
	DType      DType                // Const, Cast: of the output
	Strides    [2]int64
	Window     [2]int64
	Padding    Padding
	TransposeA bool
	TransposeB bool
	Axes       []int64
	Begin      []int64 // Slice: the first index; Pad: what to add before each dimension
	End        []int64 // Pad: what to add after each dimension
	Shape      Shape   // Reshape, BroadcastTo: the target; Conv2DBackprop…: the size
	Value      float64 // Const: of every element; others: the number named at the op
	KeepDims   bool    // reductions: a reduced dimension stays, with extent 1
	Training   bool    // FusedBatchNorm: normalise by the batch's statistics
	Nesterov   bool    // ApplyMomentum
	// Guarded is for Apply ops: one more input, a bool, comes last, and the
	// update is left out where it is false (loss scaling met an overflow).
	Guarded bool
	Seed    int64 // Dropout, RandomUniform: tells the nodes of one program apart
}

// Equal says whether a and b are the same in every field, where a list that is
// left out is another than an empty one. It is reflect.DeepEqual without package
// reflect, 30 KB of the browser's module.
func (a *Attrs) Equal(b *Attrs) bool {
	return a.Variable == b.Variable && a.Slots == b.Slots && a.DType == b.DType &&
		a.Strides == b.Strides && a.Window == b.Window && a.Padding == b.Padding &&
		a.TransposeA == b.TransposeA && a.TransposeB == b.TransposeB &&
		sameList(a.Axes, b.Axes) && sameList(a.Begin, b.Begin) && sameList(a.End, b.End) && sameList(a.Shape, b.Shape) &&
		a.Value == b.Value && a.KeepDims == b.KeepDims && a.Training == b.Training && a.Nesterov == b.Nesterov &&
		a.Guarded == b.Guarded && a.Seed == b.Seed
}

func sameList(a, b []int64) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// MaxSlots is the most variables of state that an optimizer keeps for a weight.
const MaxSlots = 3

// NoSlots is the Slots of an op that has none.
var NoSlots = [MaxSlots]VariableID{None, None, None}

// Padding of a window op, as TensorFlow names it.
type Padding uint8

// The paddings.
const (
	Valid Padding = iota
	Same
)
