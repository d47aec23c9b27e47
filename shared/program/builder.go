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
	p     Program
	defs  map[Op]*Def
	names map[string]int // uses of each name so far
	scope []string
	phase Phase
	of    NodeID
	reach []bool // by value, during Gradients: depends on something wanted
	err   error
}

// NewBuilder begins a program of this name for steps of batch samples.
func NewBuilder(name string, batch int) *Builder {
	b := &Builder{p: Program{Name: name, Batch: batch}, defs: defs, names: map[string]int{}, of: None}
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

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
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
	return ValueID(len(b.p.Values) - 1)
}

// Input adds a tensor that the input pipeline feeds each step.
func (b *Builder) Input(name string, d DType, s Shape) ValueID {
	if b.err != nil {
		return None
	}
	id := b.value(Value{Name: b.unique(name), DType: d, Shape: s, Producer: None, Variable: None, Role: RoleInput})
	b.p.Inputs = append(b.p.Inputs, id)
	return id
}

// Variable adds a weight and gives its value.
func (b *Builder) Variable(name string, s Shape, init Init) ValueID {
	return b.variable(Variable{Name: name, DType: Float32, Shape: s, Init: init})
}

// slot adds a piece of optimizer state and gives its value.
func (b *Builder) slot(name string, s Shape, init Init) ValueID {
	return b.variable(Variable{Name: name, DType: Float32, Shape: s, Slot: true, Init: init})
}

func (b *Builder) variable(v Variable) ValueID {
	if b.err != nil {
		return None
	}
	name := v.Name
	v.Name = strings.Join(append(slices.Clip(b.scope), name), "/")
	b.p.Variables = append(b.p.Variables, v)
	return b.node(name, OpVariable, Attrs{Variable: VariableID(len(b.p.Variables) - 1)}, nil, RoleVariable)
}

// Const adds a tensor whose elements are all x.
func (b *Builder) Const(name string, d DType, s Shape, x float64) ValueID {
	return b.node(name, OpConst, Attrs{Variable: None, DType: d, Shape: s, Value: x}, nil, RoleConstant)
}

// Op adds a node named after its op and gives its first output, None if it
// has none. Attrs.Variable and Slots are only looked at for ops that have them.
func (b *Builder) Op(op Op, a Attrs, inputs ...ValueID) ValueID {
	a.Variable = None
	return b.node(string(op), op, a, inputs, phaseRoles[b.phase])
}

// phaseRoles say what the values that an op makes are for, by phase.
var phaseRoles = [...]Role{Forward: RoleActivation, Backward: RoleActivationGradient, Update: RoleTemporary}

// node adds a node and its outputs.
func (b *Builder) node(name string, op Op, a Attrs, inputs []ValueID, role Role) ValueID {
	if b.err != nil {
		return None
	}
	if op != OpApplyAdam {
		a.Slots = NoSlots
	}
	n := Node{Name: b.unique(name), Op: op, Inputs: inputs, Attrs: a, Phase: b.phase, Of: b.of}
	def := b.defs[op]
	if def == nil {
		b.fail(fmt.Errorf("node %s: unknown op %q", n.Name, string(op)))
		return None
	}
	for i, v := range inputs {
		if v < 0 || int(v) >= len(b.p.Values) {
			b.fail(fmt.Errorf("node %s: %s: input %d is no value", n.Name, op, i))
			return None
		}
	}
	specs, err := def.Infer(&b.p, &n)
	if err != nil {
		b.fail(err)
		return None
	}
	id := NodeID(len(b.p.Nodes))
	for i, s := range specs {
		v := Value{Name: n.Name, DType: s.DType, Shape: s.Shape, Producer: id, Index: i, Variable: None, Role: role}
		if i > 0 {
			v.Name += ":" + strconv.Itoa(i)
		}
		if op == OpVariable {
			v.Variable = a.Variable
		}
		n.Outputs = append(n.Outputs, b.value(v))
	}
	b.p.Nodes = append(b.p.Nodes, n)
	if len(n.Outputs) == 0 {
		return None
	}
	return n.Outputs[0]
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

func mismatchLayer(name, what, want string, got Shape) error {
	return fmt.Errorf("layer %s: %w: %s needs an input %s, gets %s", name, ErrShape, what, want, got)
}
