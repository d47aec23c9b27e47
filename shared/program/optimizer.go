package program

import "slices"

// The constants of Adam, TensorFlow's defaults.
const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-7
)

// SGD adds the update of each variable by its gradient under "SGD/".
func (b *Builder) SGD(rate float64, vars, grads []ValueID) {
	if b.err != nil {
		return
	}
	defer b.enter(Update)()
	defer b.Scope("SGD")()
	lr := b.Const("learning_rate", Float32, nil, rate)
	for i, v := range vars {
		b.apply(OpApplySGD, NoSlots, v, []ValueID{v, lr, grads[i]})
	}
}

// Adam adds the update of each variable under "Adam/", with two slots a
// variable and the powers of both betas, which are multiplied once all
// variables are updated. Slots are optimizer state that the first step makes.
func (b *Builder) Adam(rate float64, vars, grads []ValueID) {
	if b.err != nil {
		return
	}
	defer b.enter(Update)()
	defer b.Scope("Adam")()
	lr := b.Const("learning_rate", Float32, nil, rate)
	beta1 := b.Const("beta1", Float32, nil, adamBeta1)
	beta2 := b.Const("beta2", Float32, nil, adamBeta2)
	eps := b.Const("epsilon", Float32, nil, adamEpsilon)
	power1 := b.slot("beta1_power", nil, Init{Kind: InitConstant, Scale: adamBeta1})
	power2 := b.slot("beta2_power", nil, Init{Kind: InitConstant, Scale: adamBeta2})
	var applied []NodeID
	for i, v := range vars {
		if b.err != nil {
			return
		}
		name := b.p.Variables[b.p.Values[v].Variable].Name
		m := b.slot(name+"/m", b.shape(v), Init{})
		w := b.slot(name+"/v", b.shape(v), Init{})
		if b.err != nil {
			return
		}
		slots := [MaxSlots]VariableID{b.p.Values[m].Variable, b.p.Values[w].Variable, None}
		b.apply(OpApplyAdam, slots, v, []ValueID{v, m, w, power1, power2, lr, beta1, beta2, eps, grads[i]})
		applied = append(applied, b.last())
	}
	b.multiply(power1, beta1, applied)
	b.multiply(power2, beta2, applied)
}

// apply adds an update of v, after every node that reads v.
func (b *Builder) apply(op Op, slots [MaxSlots]VariableID, v ValueID, inputs []ValueID) {
	if b.err != nil {
		return
	}
	id := b.p.Values[v].Variable
	defer b.Scope(b.p.Variables[id].Name)()
	readers := b.readers(v)
	b.node(string(op), op, Attrs{Variable: id, Slots: slots}, inputs, RoleTemporary)
	if b.err == nil {
		b.p.Nodes[b.last()].Control = readers
	}
}

// readers lists the nodes that take v as an input.
func (b *Builder) readers(v ValueID) []NodeID {
	var out []NodeID
	for i := range b.p.Nodes {
		if slices.Contains(b.p.Nodes[i].Inputs, v) {
			out = append(out, NodeID(i))
		}
	}
	return out
}

// multiply adds variable *= factor, after the nodes in after.
func (b *Builder) multiply(variable, factor ValueID, after []NodeID) {
	product := b.Op(OpMul, Attrs{}, variable, factor)
	if b.err != nil {
		return
	}
	b.p.Nodes[b.last()].Control = after
	b.node(string(OpAssign), OpAssign, Attrs{Variable: b.p.Values[variable].Variable}, []ValueID{variable, product}, RoleTemporary)
}
