package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Builder makes a Program node by node. The first error sticks: methods after
// it do nothing and return None, and Build reports it, so model code needs no
// checks of its own.
type Builder struct {
	p       Program
	defs    map[Op]*Def
	names   map[string]int // uses of each name so far
	scope   []string
	phase   Phase
	of      NodeID
	float   DType                   // of variables
	compute DType                   // of arithmetic on them
	casts   map[castOf]ValueID      // what Read made
	slots   map[string]ValueID      // optimizer state by full name
	holds   []VariableID            // by value: whose buffer it is, aliases included
	reads   map[VariableID][]NodeID // who takes the buffer as an input, in program order
	reach   []bool                  // by value, during Gradients: depends on something wanted
	rows    map[ValueID]ValueID     // during Gradients: the indices of gradients that are rows
	err     error
}

// castOf is what Read has made already: a variable's value in another type.
type castOf struct {
	v ValueID
	d DType
}

// NewBuilder begins a program of this name for steps of batch samples.
func NewBuilder(name string, batch int) *Builder {
	b := &Builder{
		p: Program{Name: name, Batch: batch}, defs: defs, of: None, names: map[string]int{},
		casts: map[castOf]ValueID{}, slots: map[string]ValueID{}, reads: map[VariableID][]NodeID{}, rows: map[ValueID]ValueID{},
	}
	if batch < 1 {
		b.fail(fmt.Errorf("program %s: batch %d: must be at least 1", name, batch))
	}
	return b
}

// Build finishes the program, or returns the first error of its making.
func (b *Builder) Build() (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	if err := b.p.Validate(); err != nil {
		return nil, err
	}
	return &b.p, nil
}

// Fail makes err the builder's error, if it has none yet: for layers and
// models outside of this package, whose arguments may not fit.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Builder) fail(err error) { b.Fail(err) }

// Err is the first error so far. Only code that would index by a None id
// needs to look.
func (b *Builder) Err() error { return b.err }

// Float sets the type of the variables made from now on, and of the
// arithmetic on them: Float32 until it is called.
func (b *Builder) Float(d DType) { b.float, b.compute = d, d }

// Compute sets the type of the arithmetic alone: after Compute(Float16)
// variables stay as Float said, and Read and Weight cast them, which is what a
// mixed precision policy of Keras does.
func (b *Builder) Compute(d DType) { b.compute = d }

// FloatType is the type of variables, ComputeType that of activations.
func (b *Builder) FloatType() DType { return b.float }

// ComputeType is the type in which layers compute.
func (b *Builder) ComputeType() DType { return b.compute }

// Enter switches to a phase until the returned function is called.
func (b *Builder) Enter(ph Phase) (leave func()) {
	was := b.phase
	b.phase = ph
	return func() { b.phase = was }
}

// Scope enters a scope, whose name stands before the names of what is added
// until the returned function is called.
func (b *Builder) Scope(name string) (leave func()) {
	n := len(b.scope)
	b.scope = append(b.scope, name)
	return func() { b.scope = b.scope[:n] }
}

// unique makes a full name of the scopes and name that nothing has yet.
func (b *Builder) unique(name string) string {
	full := strings.Join(append(slices.Clip(b.scope), name), "/")
	n := b.names[full]
	b.names[full] = n + 1
	if n == 0 {
		return full
	}
	return b.unique(name + "_" + strconv.Itoa(n))
}

func (b *Builder) value(v Value) ValueID {
	b.p.Values = append(b.p.Values, v)
	b.holds = append(b.holds, v.Variable)
	return ValueID(len(b.p.Values) - 1)
}

// Input adds a tensor that the input pipeline feeds each step.
func (b *Builder) Input(name string, d DType, s Shape) ValueID {
	if b.err != nil {
		return None
	}
	if !sound(d, s) {
		b.fail(fmt.Errorf("input %s: %w: type %d, shape %s", name, ErrInvalid, d, s))
		return None
	}
	id := b.value(Value{Name: b.unique(name), DType: d, Shape: s, Producer: None, Variable: None, Role: RoleInput})
	b.p.Inputs = append(b.p.Inputs, id)
	return id
}

// Variable adds a weight of the type that Float set and gives its value.
func (b *Builder) Variable(name string, s Shape, init Init) ValueID {
	return b.variable(Variable{Name: name, DType: b.float, Shape: s, Init: init})
}

// Weight adds a weight and gives its value as layers compute with it.
func (b *Builder) Weight(name string, s Shape, init Init) ValueID {
	return b.Read(b.Variable(name, s, init))
}

// State adds a variable that no optimizer trains, such as the moving
// statistics of batch normalisation. It exists from the start, counts among
// the model's parameters and is none of Weights.
func (b *Builder) State(name string, d DType, s Shape, init Init) ValueID {
	return b.variable(Variable{Name: name, DType: d, Shape: s, Frozen: true, Init: init})
}

// Read gives a value in the type in which layers compute: v itself, or a Cast
// of it, made once a program for each variable.
func (b *Builder) Read(v ValueID) ValueID {
	if b.err != nil || v < 0 || b.p.Values[v].DType == b.compute {
		return v
	}
	key := castOf{v, b.compute}
	c, ok := b.casts[key]
	if !ok {
		c = b.Op(OpCast, Attrs{DType: b.compute}, v)
		if b.holds[v] != None {
			b.casts[key] = c
		}
	}
	return c
}

// slot gives a piece of optimizer state, which is made at its first use: a
// second update of the same variable goes by the same state.
func (b *Builder) slot(name string, d DType, s Shape, init Init) ValueID {
	full := strings.Join(append(slices.Clip(b.scope), name), "/")
	v, ok := b.slots[full]
	if !ok {
		v = b.variable(Variable{Name: name, DType: d, Shape: s, Slot: true, Init: init})
		b.slots[full] = v
	}
	return v
}

// Weights lists the values of all variables that are trained, in the order of
// their making.
func (b *Builder) Weights() []ValueID {
	var out []ValueID
	for i := range b.p.Nodes {
		if n := &b.p.Nodes[i]; n.Op == OpVariable && b.p.Variables[n.Attrs.Variable].Trained() {
			out = append(out, n.Outputs[0])
		}
	}
	return out
}

func (b *Builder) variable(v Variable) ValueID {
	if b.err != nil {
		return None
	}
	if !sound(v.DType, v.Shape) {
		b.fail(fmt.Errorf("variable %s: %w: type %d, shape %s", v.Name, ErrInvalid, v.DType, v.Shape))
		return None
	}
	name := v.Name
	v.Name = strings.Join(append(slices.Clip(b.scope), name), "/")
	b.p.Variables = append(b.p.Variables, v)
	return first(b.node(name, OpVariable, Attrs{Variable: VariableID(len(b.p.Variables) - 1)}, nil, RoleVariable))
}

// Const adds a tensor whose elements are all x.
func (b *Builder) Const(name string, d DType, s Shape, x float64) ValueID {
	return first(b.node(name, OpConst, Attrs{Variable: None, DType: d, Shape: s, Value: x}, nil, RoleConstant))
}

// Op adds a node named after its op and gives its first output, None if it
// has none. See Node.
func (b *Builder) Op(op Op, a Attrs, inputs ...ValueID) ValueID {
	return first(b.Node(op, a, inputs...))
}

// Node adds a node named after its op and gives its outputs, in order; after
// an error MaxOutputs times None, so that callers may index.
//
// Attrs.Variable and Slots need not be set: for an op that changes variables
// they follow from the inputs. Such a node runs after all nodes added before
// it that read what it changes; a node that is to see the new value must be
// given a control edge.
func (b *Builder) Node(op Op, a Attrs, inputs ...ValueID) []ValueID {
	if d := b.defs[op]; b.err == nil && d != nil && d.Stateful {
		return b.update(op, a, inputs)
	}
	a.Variable = None
	return b.node(string(op), op, a, inputs, phaseRoles[b.phase])
}

// update adds an op that changes the variable of its first input and the
// slots that follow it.
func (b *Builder) update(op Op, a Attrs, inputs []ValueID) []ValueID {
	def := b.defs[op]
	a.Variable, a.Slots = None, NoSlots
	var after []NodeID
	for i, v := range inputs[:min(len(inputs), 1+def.Slots)] {
		if v < 0 || int(v) >= len(b.p.Values) {
			break // node reports it
		}
		id := b.p.Values[v].Variable
		if i == 0 {
			a.Variable = id
		} else {
			a.Slots[i-1] = id
		}
		after = append(after, b.reads[id]...)
	}
	slices.Sort(after)
	out := b.node(string(op), op, a, inputs, phaseRoles[b.phase])
	if b.err == nil {
		b.p.Nodes[b.last()].Control = slices.Compact(after)
	}
	return out
}

// After adds control edges to the node added last: it runs after the nodes
// that make these values.
func (b *Builder) After(values ...ValueID) {
	if b.err != nil {
		return
	}
	n := &b.p.Nodes[b.last()]
	for _, v := range values {
		if p := b.p.Values[v].Producer; p != None && p < b.last() && !slices.Contains(n.Control, p) {
			n.Control = append(n.Control, p)
		}
	}
}

// first is the first of a node's outputs.
func first(outputs []ValueID) ValueID {
	if len(outputs) == 0 {
		return None
	}
	return outputs[0]
}

// MaxOutputs is the most outputs that an op has but for Split, which has as many
// as parts.
const MaxOutputs = 7

// nothing is what Node gives after an error.
var nothing = [MaxOutputs]ValueID{None, None, None, None, None, None, None}

// phaseRoles say what the values that an op makes are for, by phase.
var phaseRoles = [...]Role{Forward: RoleActivation, Backward: RoleActivationGradient, Update: RoleTemporary}

// node adds a node and its outputs.
func (b *Builder) node(name string, op Op, a Attrs, inputs []ValueID, role Role) []ValueID {
	if b.err != nil {
		return nothing[:]
	}
	def := b.defs[op]
	if def == nil || def.Slots == 0 {
		a.Slots = NoSlots
	}
	n := Node{Name: b.unique(name), Op: op, Inputs: inputs, Attrs: a, Phase: b.phase, Of: b.of}
	if def == nil {
		b.fail(fmt.Errorf("node %s: unknown op %q", n.Name, string(op)))
		return nothing[:]
	}
	for i, v := range inputs {
		if v < 0 || int(v) >= len(b.p.Values) {
			b.fail(fmt.Errorf("node %s: %s: input %d is no value", n.Name, op, i))
			return nothing[:]
		}
	}
	specs, err := def.Infer(&b.p, &n)
	if err != nil {
		b.fail(err)
		return nothing[:]
	}
	id := NodeID(len(b.p.Nodes))
	for i, s := range specs {
		if !sound(s.DType, s.Shape) {
			b.fail(mismatch(&b.p, &n, "output %d cannot be: %s%s", i, s.DType, s.Shape))
			return nothing[:]
		}
		v := Value{Name: n.Name, DType: s.DType, Shape: s.Shape, Producer: id, Index: i, Variable: None, Role: role}
		if i > 0 {
			v.Name += ":" + strconv.Itoa(i)
		}
		if op == OpVariable {
			v.Variable = a.Variable
		}
		n.Outputs = append(n.Outputs, b.value(v))
	}
	b.note(id, def, &n)
	b.p.Nodes = append(b.p.Nodes, n)
	return n.Outputs
}

// note records which variables' buffers a node reads and passes on.
func (b *Builder) note(id NodeID, def *Def, n *Node) {
	for i, v := range n.Inputs {
		if w := b.holds[v]; w != None && !slices.Contains(n.Inputs[:i], v) {
			b.reads[w] = append(b.reads[w], id)
		}
	}
	if def.Alias {
		b.holds[n.Outputs[0]] = b.holds[n.Inputs[0]]
	}
}

// last is the node added last.
func (b *Builder) last() NodeID { return NodeID(len(b.p.Nodes) - 1) }

// Fetch makes the host read v after each step under a name such as "loss".
func (b *Builder) Fetch(name string, v ValueID) {
	if b.err != nil {
		return
	}
	b.p.Values[v].Role = RoleOutput
	b.p.Fetches = append(b.p.Fetches, Fetch{Name: name, Value: v})
}

// DType is the type of v.
func (b *Builder) DType(v ValueID) DType {
	if b.err != nil || v < 0 {
		return b.compute
	}
	return b.p.Values[v].DType
}

// Shape is the shape of v.
func (b *Builder) Shape(v ValueID) Shape { return b.shape(v) }

// shape, input and output are safe to call after an error.
func (b *Builder) shape(v ValueID) Shape {
	if b.err != nil || v < 0 {
		return nil
	}
	return b.p.Values[v].Shape
}

func (b *Builder) input(n NodeID, i int) ValueID { return b.p.Nodes[n].Inputs[i] }

func (b *Builder) output(n NodeID, i int) ValueID { return b.p.Nodes[n].Outputs[i] }
