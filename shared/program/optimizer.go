package program

import (
	"fmt"
	"strings"
)

// Optimizer says how weights follow their gradients. Numbers left 0 are
// Keras's defaults where LearningRate names no other.
type Optimizer struct {
	Name     string  // one of Optimizers
	Rate     float64 // see LearningRate
	Momentum float64 // of momentum (0: 0.9) and rmsprop (0: none, and no state for it)
	Nesterov bool    // momentum looks ahead
	Centered bool    // rmsprop keeps the mean gradient too
	Decay    float64 // adamw: weight decay, times the rate, per step; 0: 0.004
	// ClipNorm scales all gradients down so that their global norm is at most
	// this; 0: as they are. All gradients must then exist before any update.
	ClipNorm float64
	// LossScale multiplies the loss by a power of two that follows the
	// overflows of half-precision gradients; a step that meets one changes
	// nothing but the scale. Read by Minimize.
	LossScale bool
}

// Keras's defaults.
const (
	defaultMomentum = 0.9
	defaultDecay    = 0.004
	rmsRho          = 0.9
	adamBeta1       = 0.9
	adamBeta2       = 0.999
	epsilon         = 1e-7
	adagradStart    = 0.1 // of the accumulator
)

// The loss scale of Keras: where it starts and after how many good steps it doubles.
const (
	lossScaleStart  = 1 << 15
	lossScaleGrowth = 2000
)

// optimizers are what there is, in the order in which they are shown.
var optimizers = []struct {
	name  string
	rate  float64 // lets the small models of the zoo learn the digits
	apply func(u *updater, v ValueID, g Gradient)
	// sparse says that apply takes rows; others get a dense gradient.
	sparse bool
}{
	{"sgd", 0.1, (*updater).sgd, true},
	{"momentum", 0.01, (*updater).momentum, true},
	{"adagrad", 0.02, (*updater).adagrad, true},
	{"rmsprop", 0.001, (*updater).rmsprop, false},
	{"adam", 0.002, (*updater).adam, true},
	{"adamw", 0.002, (*updater).adam, false}, // weights outside of the rows decay too
	{"amsgrad", 0.002, (*updater).amsgrad, false},
}

// Optimizers lists the names of all optimizers.
func Optimizers() []string {
	names := make([]string, len(optimizers))
	for i := range optimizers {
		names[i] = optimizers[i].name
	}
	return names
}

func findOptimizer(name string) (int, error) {
	for i := range optimizers {
		if optimizers[i].name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("optimizer %q is unknown: choose one of %s", name, strings.Join(Optimizers(), ", "))
}

// LearningRate gives the rate that an optimizer runs with: rate itself, or
// the optimizer's default when it is 0.
func LearningRate(optimizer string, rate float64) (float64, error) {
	i, err := findOptimizer(optimizer)
	if err != nil {
		return 0, err
	}
	if rate < 0 || rate != rate {
		return 0, fmt.Errorf("learning rate %v: must be above 0", rate)
	}
	if rate == 0 {
		rate = optimizers[i].rate
	}
	return rate, nil
}

// SGD adds the update of each variable by its dense gradient under "SGD/".
func (b *Builder) SGD(rate float64, vars, grads []ValueID) {
	b.Optimize(Optimizer{Name: "sgd", Rate: rate}, vars, dense(grads))
}

// Adam adds the update of each variable by its dense gradient under "Adam/",
// with two slots a variable and the powers of both betas.
func (b *Builder) Adam(rate float64, vars, grads []ValueID) {
	b.Optimize(Optimizer{Name: "adam", Rate: rate}, vars, dense(grads))
}

func dense(grads []ValueID) []Gradient {
	out := make([]Gradient, len(grads))
	for i, g := range grads {
		out[i] = Gradient{g, None}
	}
	return out
}

// Minimize adds everything that makes a forward pass a training step: the
// gradients of loss, their scaling and clipping if asked for, and the updates.
func (b *Builder) Minimize(o Optimizer, loss ValueID, vars []ValueID) {
	if b.err != nil {
		return
	}
	if !o.LossScale {
		b.optimize(o, vars, b.Derive(loss, None, vars), None)
		return
	}
	leave := b.Scope("loss_scale")
	scale := b.variable(Variable{Name: "current", Shape: nil, Training: true, Init: Init{Kind: InitConstant, Scale: lossScaleStart}})
	steps := b.variable(Variable{Name: "good_steps", DType: Int64, Training: true})
	leave()
	grads := b.Derive(loss, b.cast(scale, b.DType(loss)), vars)
	grads, finite := b.unscale(grads, scale)
	b.optimize(o, vars, grads, finite)
	if b.err != nil {
		return
	}
	defer b.Enter(Update)()
	defer b.Scope("loss_scale")()
	b.Node(OpUpdateLossScale, Attrs{Value: lossScaleGrowth}, scale, steps, finite)
}

// cast converts v if it has another type.
func (b *Builder) cast(v ValueID, d DType) ValueID {
	if b.DType(v) == d {
		return v
	}
	return b.Op(OpCast, Attrs{DType: d}, v)
}

// unscale divides gradients by the scale and says whether all are finite.
func (b *Builder) unscale(grads []Gradient, scale ValueID) (out []Gradient, finite ValueID) {
	defer b.Enter(Backward)()
	defer b.Scope("loss_scale")()
	inverse := b.do(OpReciprocal, scale)
	out, finite = b.times(grads, inverse), None
	for _, g := range out {
		ok := b.do(OpAll, b.do(OpIsFinite, g.Value))
		if finite != None {
			ok = b.do(OpLogicalAnd, finite, ok)
		}
		finite = ok
	}
	return out, finite
}

// times multiplies gradients by a float32 scalar; halves become float32, in
// which small numbers do not vanish.
func (b *Builder) times(grads []Gradient, by ValueID) []Gradient {
	out := make([]Gradient, len(grads))
	for i, g := range grads {
		if d := b.DType(g.Value); d == Float64 {
			g.Value = b.do(OpMul, g.Value, b.cast(by, Float64))
		} else {
			g.Value = b.do(OpMul, b.cast(g.Value, Float32), by)
		}
		b.role(g.Value, RoleGradient)
		out[i] = g
	}
	return out
}

func (b *Builder) role(v ValueID, r Role) {
	if b.err == nil {
		b.p.Values[v].Role = r
	}
}

// Optimize adds the update of each variable by its gradient under the
// optimizer's name, with the state that it keeps: slots, which the first step
// makes. A second call for the same variable goes by the same state.
func (b *Builder) Optimize(o Optimizer, vars []ValueID, grads []Gradient) {
	b.optimize(o, vars, grads, None)
}

// optimize updates where guard, a bool, is true; None is always.
func (b *Builder) optimize(o Optimizer, vars []ValueID, grads []Gradient, guard ValueID) {
	if b.err != nil {
		return
	}
	which, err := findOptimizer(o.Name)
	if err == nil {
		o.Rate, err = LearningRate(o.Name, o.Rate)
	}
	if err != nil {
		b.fail(err)
		return
	}
	if o.ClipNorm > 0 {
		grads = b.clip(grads, o.ClipNorm)
	}
	defer b.Enter(Update)()
	defer b.Scope(scopes[which])()
	u := updater{b: b, Optimizer: o, guard: guard}
	u.rate = u.number("learning_rate", o.Rate)
	for i, v := range vars {
		if b.err != nil {
			return
		}
		g := grads[i]
		if !optimizers[which].sparse {
			g = Gradient{b.dense(g, b.shape(v)), None}
		}
		optimizers[which].apply(&u, v, g)
	}
	u.finish()
}

// clip scales gradients by limit/max(norm, limit), norm being that of all of
// them together.
func (b *Builder) clip(grads []Gradient, limit float64) []Gradient {
	defer b.Enter(Backward)()
	defer b.Scope("clip_by_global_norm")()
	squares := make([]ValueID, len(grads))
	for i, g := range grads {
		squares[i] = b.cast(b.do(OpL2Loss, g.Value), Float32)
	}
	norm := b.do(OpSqrt, b.scaled(b.do(OpAddN, squares...), 2))
	most := b.Const("Const", Float32, nil, limit)
	factor := b.do(OpDiv, most, b.do(OpMaximum, norm, most))
	return b.times(grads, factor)
}
