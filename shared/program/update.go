package program

// scopes are the optimizers' scopes, in the order of optimizers.
var scopes = [...]string{"SGD", "Momentum", "Adagrad", "RMSprop", "Adam", "AdamW", "AMSGrad"}

// updater adds the updates of one optimizer.
type updater struct {
	Optimizer
	b     *Builder
	guard ValueID // None: always
	rate  ValueID
	// Adam's numbers, made with the first variable.
	beta1, beta2, eps, power1, power2 ValueID
	begun                             bool
	applied                           []NodeID
}

// number adds a scalar of the type of the variables.
func (u *updater) number(name string, x float64) ValueID {
	return u.b.Const(name, u.b.float, nil, x)
}

// slot gives a piece of state of v's shape.
func (u *updater) slot(v ValueID, name string, init Init) ValueID {
	if u.b.err != nil {
		return None
	}
	id := u.b.p.Values[v].Variable
	return u.b.slot(u.b.p.Variables[id].Name+"/"+name, u.b.DType(v), u.b.shape(v), init)
}

// apply adds an update of the variable that comes first, or with a sparse
// gradient its sparse twin. state are slots, numbers the scalars that follow.
func (u *updater) apply(op, sparse Op, a Attrs, g Gradient, state, numbers []ValueID) {
	b := u.b
	if b.err != nil {
		return
	}
	defer b.Scope(b.p.Variables[b.p.Values[state[0]].Variable].Name)()
	inputs := append(append(append([]ValueID(nil), state...), numbers...), b.cast(g.Value, b.DType(state[0])))
	if g.Sparse() {
		op, inputs = sparse, append(inputs, g.Indices)
	}
	if u.guard != None {
		a.Guarded, inputs = true, append(inputs, u.guard)
	}
	b.Node(op, a, inputs...)
	u.applied = append(u.applied, b.last())
}

func (u *updater) sgd(v ValueID, g Gradient) {
	u.apply(OpApplySGD, OpSparseApplySGD, Attrs{}, g, []ValueID{v}, []ValueID{u.rate})
}

func (u *updater) momentum(v ValueID, g Gradient) {
	u.once(func() { u.beta1 = u.number("momentum", or(u.Momentum, defaultMomentum)) })
	u.apply(OpApplyMomentum, OpSparseApplyMomentum, Attrs{Nesterov: u.Nesterov}, g,
		[]ValueID{v, u.slot(v, "momentum", Init{})}, []ValueID{u.rate, u.beta1})
}

func (u *updater) adagrad(v ValueID, g Gradient) {
	u.once(func() { u.eps = u.number("epsilon", epsilon) })
	u.apply(OpApplyAdagrad, OpSparseApplyAdagrad, Attrs{}, g,
		[]ValueID{v, u.slot(v, "accumulator", Init{Kind: InitConstant, Scale: adagradStart})}, []ValueID{u.rate, u.eps})
}

// rmsprop has an op of its own only with momentum; without, Keras computes it
// piece by piece and keeps no momentum.
func (u *updater) rmsprop(v ValueID, g Gradient) {
	u.once(func() {
		u.beta1, u.eps = u.number("rho", rmsRho), u.number("epsilon", epsilon)
		if u.Momentum == 0 {
			u.beta2 = u.number("one_minus_rho", 1-rmsRho)
		} else {
			u.beta2 = u.number("momentum", u.Momentum)
		}
	})
	state := []ValueID{v}
	op := OpApplyRMSProp
	if u.Centered {
		op, state = OpApplyCenteredRMSProp, append(state, u.slot(v, "mg", Init{}))
	}
	state = append(state, u.slot(v, "rms", Init{}))
	if u.Momentum == 0 {
		u.plainRMSprop(state, g.Value)
		return
	}
	state = append(state, u.slot(v, "momentum", Init{}))
	u.apply(op, op, Attrs{}, g, state, []ValueID{u.rate, u.beta1, u.beta2, u.eps})
}

// plainRMSprop has state variable, mean gradient if centered, mean square.
func (u *updater) plainRMSprop(state []ValueID, g ValueID) {
	b := u.b
	if b.err != nil {
		return
	}
	defer b.Scope(b.p.Variables[b.p.Values[state[0]].Variable].Name)()
	g = b.cast(g, b.DType(state[0]))
	square := u.average(state[len(state)-1], b.do(OpSquare, g))
	if len(state) == 3 {
		square = b.do(OpSub, square, b.do(OpSquare, u.average(state[1], g)))
	}
	root := b.do(OpAdd, b.do(OpSqrt, square), u.eps)
	step := b.do(OpDiv, b.do(OpMul, g, u.rate), root)
	if u.guard != None {
		step = b.do(OpSelect, u.guard, step, b.Const("Const", b.DType(step), nil, 0))
	}
	b.Node(OpAssignSub, Attrs{}, state[0], step)
}

// average moves a slot towards x and gives its new value.
func (u *updater) average(slot, x ValueID) ValueID {
	b := u.b
	mean := b.do(OpAdd, b.do(OpMul, slot, u.beta1), b.do(OpMul, x, u.beta2))
	u.assign(slot, mean)
	return mean
}

// assign sets a variable, if the guard lets it.
func (u *updater) assign(v, x ValueID) {
	if u.guard != None {
		x = u.b.do(OpSelect, u.guard, x, v)
	}
	u.b.Node(OpAssign, Attrs{}, v, x)
}

func (u *updater) adam(v ValueID, g Gradient) {
	u.betas()
	a := Attrs{}
	if u.Name == "adamw" {
		a.Value = or(u.Decay, defaultDecay)
	}
	u.apply(OpApplyAdam, OpSparseApplyAdam, a, g, []ValueID{v, u.slot(v, "m", Init{}), u.slot(v, "v", Init{})}, u.adamNumbers())
}

func (u *updater) amsgrad(v ValueID, g Gradient) {
	u.betas()
	u.apply(OpApplyAMSGrad, OpApplyAMSGrad, Attrs{}, g,
		[]ValueID{v, u.slot(v, "m", Init{}), u.slot(v, "v", Init{}), u.slot(v, "vhat", Init{})}, u.adamNumbers())
}

func (u *updater) adamNumbers() []ValueID {
	return []ValueID{u.power1, u.power2, u.rate, u.beta1, u.beta2, u.eps}
}

func (u *updater) betas() {
	u.once(func() {
		b := u.b
		u.beta1, u.beta2 = u.number("beta1", adamBeta1), u.number("beta2", adamBeta2)
		u.eps = u.number("epsilon", epsilon)
		u.power1 = b.slot("beta1_power", b.float, nil, Init{Kind: InitConstant, Scale: adamBeta1})
		u.power2 = b.slot("beta2_power", b.float, nil, Init{Kind: InitConstant, Scale: adamBeta2})
	})
}

// once runs f with the first variable.
func (u *updater) once(f func()) {
	if !u.begun {
		u.begun = true
		f()
	}
}

// finish multiplies Adam's powers once all variables are updated.
func (u *updater) finish() {
	if u.b.err == nil && u.power2 != 0 { // a variable comes before any slot, so 0 is unset
		u.multiply(u.power1, u.beta1)
		u.multiply(u.power2, u.beta2)
	}
}

// multiply adds variable *= factor, after all updates.
func (u *updater) multiply(variable, factor ValueID) {
	product := u.b.do(OpMul, variable, factor)
	if u.b.err != nil {
		return
	}
	u.b.p.Nodes[u.b.last()].Control = u.applied // and so all readers are done when the product is
	if u.guard != None {
		product = u.b.do(OpSelect, u.guard, product, variable)
	}
	u.b.node(string(OpAssign), OpAssign, Attrs{Variable: u.b.p.Values[variable].Variable}, []ValueID{variable, product}, RoleTemporary)
}

// or is x, or def where x is 0.
func or(x, def float64) float64 {
	if x == 0 {
		return def
	}
	return x
}
