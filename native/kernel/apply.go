package kernel

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// The optimizers' formulas are TensorFlow's. Each is written once, for a piece
// of the variable and its slots; dense ops apply it to all of it, sparse ones
// to rows.

// heldBack says that a guarded update met an overflow: its last input is false.
func heldBack(c *Call) bool {
	return c.Node.Attrs.Guarded && c.In[len(c.In)-1][0] == 0
}

// scalarOf is the number of input i.
func scalarOf[T float](c *Call, i int) T { return in[T](c, i)[0] }

func assignAdd[T number](c *Call, from, to int) {
	v := in[T](c, 0)[from:to]
	adds(v, v, in[T](c, 1)[from:to], 0)
}

func assignSub[T number](c *Call, from, to int) {
	v := in[T](c, 0)[from:to]
	subs(v, v, in[T](c, 1)[from:to], 0)
}

func assignMovingAverage[T float](c *Call, from, to int) {
	v, x := in[T](c, 0)[from:to], in[T](c, 1)[from:to]
	share := T(1 - c.Node.Attrs.Value)
	for i := range v {
		v[i] -= (v[i] - x[i]) * share
	}
}

type sgd[T float] struct{ rate T }

func (s sgd[T]) step(w, g []T) {
	for i, d := range g {
		w[i] -= s.rate * d
	}
}

func applySGD[T float](c *Call, from, to int) {
	sgd[T]{scalarOf[T](c, 1)}.step(in[T](c, 0)[from:to], in[T](c, 2)[from:to])
}

type momentum[T float] struct {
	rate, momentum T
	nesterov       bool
}

func (s momentum[T]) step(w, acc, g []T) {
	for i, d := range g {
		acc[i] = acc[i]*s.momentum + d
		if s.nesterov {
			w[i] -= d*s.rate + acc[i]*s.momentum*s.rate
		} else {
			w[i] -= acc[i] * s.rate
		}
	}
}

func momentumOf[T float](c *Call) momentum[T] {
	return momentum[T]{scalarOf[T](c, 2), scalarOf[T](c, 3), c.Node.Attrs.Nesterov}
}

func applyMomentum[T float](c *Call, from, to int) {
	momentumOf[T](c).step(in[T](c, 0)[from:to], in[T](c, 1)[from:to], in[T](c, 4)[from:to])
}

type adagrad[T float] struct{ rate, epsilon T }

func (s adagrad[T]) step(w, acc, g []T) {
	for i, d := range g {
		acc[i] += d * d
		w[i] -= s.rate * d / (T(math.Sqrt(float64(acc[i]))) + s.epsilon)
	}
}

func applyAdagrad[T float](c *Call, from, to int) {
	adagrad[T]{scalarOf[T](c, 2), scalarOf[T](c, 3)}.step(in[T](c, 0)[from:to], in[T](c, 1)[from:to], in[T](c, 4)[from:to])
}

func applyRMSProp[T float](c *Call, from, to int) {
	w, ms, mom, g := in[T](c, 0)[from:to], in[T](c, 1)[from:to], in[T](c, 2)[from:to], in[T](c, 7)[from:to]
	rate, rho, momentum, epsilon := scalarOf[T](c, 3), scalarOf[T](c, 4), scalarOf[T](c, 5), scalarOf[T](c, 6)
	for i, d := range g {
		ms[i] += (d*d - ms[i]) * (1 - rho)
		mom[i] = mom[i]*momentum + rate*d/T(math.Sqrt(float64(ms[i]+epsilon)))
		w[i] -= mom[i]
	}
}

func applyCenteredRMSProp[T float](c *Call, from, to int) {
	w, mg, ms := in[T](c, 0)[from:to], in[T](c, 1)[from:to], in[T](c, 2)[from:to]
	mom, g := in[T](c, 3)[from:to], in[T](c, 8)[from:to]
	rate, rho, momentum, epsilon := scalarOf[T](c, 4), scalarOf[T](c, 5), scalarOf[T](c, 6), scalarOf[T](c, 7)
	for i, d := range g {
		ms[i] += (d*d - ms[i]) * (1 - rho)
		mg[i] += (d - mg[i]) * (1 - rho)
		mom[i] = mom[i]*momentum + rate*d/T(math.Sqrt(float64(ms[i]-mg[i]*mg[i]+epsilon)))
		w[i] -= mom[i]
	}
}

// adam folds the bias correction into the rate, and adds epsilon to the
// uncorrected root.
type adam[T float] struct {
	rate, keep, beta1, beta2, epsilon T
}

// adamOf reads the numbers that begin at input i. keep is what a decoupled
// weight decay leaves of a weight.
func adamOf[T float](c *Call, i int) adam[T] {
	power1, power2, rate := float64(scalarOf[T](c, i)), float64(scalarOf[T](c, i+1)), float64(scalarOf[T](c, i+2))
	return adam[T]{
		rate: T(rate * math.Sqrt(1-power2) / (1 - power1)), keep: T(1 - rate*c.Node.Attrs.Value),
		beta1: scalarOf[T](c, i+3), beta2: scalarOf[T](c, i+4), epsilon: scalarOf[T](c, i+5),
	}
}

// step with a nil most is Adam, else AMSGrad.
func (s adam[T]) step(w, m, v, most, g []T) {
	for i, d := range g {
		m[i] += (d - m[i]) * (1 - s.beta1)
		v[i] += (d*d - v[i]) * (1 - s.beta2)
		root := v[i]
		if most != nil {
			most[i] = max(most[i], v[i])
			root = most[i]
		}
		w[i] = w[i]*s.keep - s.rate*m[i]/(T(math.Sqrt(float64(root)))+s.epsilon)
	}
}

func applyAdam[T float](c *Call, from, to int) {
	adamOf[T](c, 3).step(in[T](c, 0)[from:to], in[T](c, 1)[from:to], in[T](c, 2)[from:to], nil, in[T](c, 9)[from:to])
}

func applyAMSGrad[T float](c *Call, from, to int) {
	adamOf[T](c, 4).step(in[T](c, 0)[from:to], in[T](c, 1)[from:to], in[T](c, 2)[from:to], in[T](c, 3)[from:to], in[T](c, 10)[from:to])
}

// indicesAt is the input that holds a sparse update's rows; the gradient is
// the one before it.
func indicesAt(c *Call) int {
	if c.Node.Attrs.Guarded {
		return len(c.In) - 2
	}
	return len(c.In) - 1
}

func checkSparse(c *Call) error { return c.checkRows(indicesAt(c), c.inValue(0).Shape[0]) }

// rows is scratch for a sparse update.
type rows[T float] struct {
	order []int32 // positions, by the row they name, then as they come
	sum   []T     // the gradient of one row
}

var rows32, rows64 sync.Pool

// eachRow calls f once for every row that the indices name, with the elements
// [lo,hi) that it has in the variable and the sum of its gradients. Rows named
// twice are stepped once, as Keras does, or a dense update would differ.
func eachRow[T float](c *Call, f func(lo, hi int, g []T)) {
	pool := poolOf[T](&rows32, &rows64)
	s, _ := pool.Get().(*rows[T])
	if s == nil {
		s = new(rows[T])
	}
	at := indicesAt(c)
	n, width := int(c.inValue(at).Shape.Elements()), int(c.inValue(0).Shape[1:].Elements())
	s.order = slices.Grow(s.order[:0], n)[:n]
	s.sum = slices.Grow(s.sum[:0], width)[:width]
	for i := range s.order {
		s.order[i] = int32(i)
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.index(at, int(a)), c.index(at, int(b))), cmp.Compare(a, b))
	})
	grads := in[T](c, at-1)
	for i := 0; i < n; {
		row := c.index(at, int(s.order[i]))
		clear(s.sum)
		for ; i < n && c.index(at, int(s.order[i])) == row; i++ {
			adds(s.sum, s.sum, grads[int(s.order[i])*width:][:width], 0)
		}
		f(int(row)*width, int(row+1)*width, s.sum)
	}
	pool.Put(s)
}

func sparseSGD[T float](c *Call, _, _ int) {
	s, w := sgd[T]{scalarOf[T](c, 1)}, in[T](c, 0)
	eachRow(c, func(lo, hi int, g []T) { s.step(w[lo:hi], g) })
}

func sparseMomentum[T float](c *Call, _, _ int) {
	s, w, acc := momentumOf[T](c), in[T](c, 0), in[T](c, 1)
	eachRow(c, func(lo, hi int, g []T) { s.step(w[lo:hi], acc[lo:hi], g) })
}

func sparseAdagrad[T float](c *Call, _, _ int) {
	s, w, acc := adagrad[T]{scalarOf[T](c, 2), scalarOf[T](c, 3)}, in[T](c, 0), in[T](c, 1)
	eachRow(c, func(lo, hi int, g []T) { s.step(w[lo:hi], acc[lo:hi], g) })
}

func sparseAdam[T float](c *Call, _, _ int) {
	s, w, m, v := adamOf[T](c, 3), in[T](c, 0), in[T](c, 1), in[T](c, 2)
	eachRow(c, func(lo, hi int, g []T) { s.step(w[lo:hi], m[lo:hi], v[lo:hi], nil, g) })
}
