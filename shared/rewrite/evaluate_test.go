package rewrite_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/shared/program"
)

// evaluator runs small programs in float64, rounded to each value's type.
type evaluator struct {
	p      *program.Program
	values [][]float64
	vars   [][]float64
}

func newEvaluator(tb testing.TB, p *program.Program, seed uint64) *evaluator {
	tb.Helper()
	e := &evaluator{p: p, values: make([][]float64, len(p.Values))}
	r := rand.New(rand.NewPCG(seed, 99))
	fill := func(n int64) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(float32(r.Float64()*2 - 1))
		}
		return out
	}
	for i := range p.Variables {
		e.vars = append(e.vars, fill(p.Variables[i].Shape.Elements()))
	}
	for _, v := range p.Inputs {
		e.values[v] = fill(p.Values[v].Shape.Elements())
	}
	return e
}

// step runs the nodes in the order given.
func (e *evaluator) step(tb testing.TB, order []program.NodeID) {
	tb.Helper()
	for _, id := range order {
		e.node(tb, &e.p.Nodes[id])
	}
}

func (e *evaluator) node(tb testing.TB, n *program.Node) {
	tb.Helper()
	var in [][]float64
	for i, v := range n.Inputs {
		if e.values[v] == nil {
			tb.Fatalf("node %s reads input %d before it is made", n.Name, i)
		}
		in = append(in, e.values[v])
	}
	if n.Op == program.OpApplySGD {
		for i, g := range in[2] {
			in[0][i] = float64(float32(in[0][i] - float64(float32(in[1][0]*g))))
		}
		return
	}
	v := n.Outputs[0]
	e.values[v] = e.compute(tb, n, in)
	if e.p.Values[v].Variable == program.None {
		for i, x := range e.values[v] {
			e.values[v][i] = float64(float32(x))
		}
	}
}

func (e *evaluator) compute(tb testing.TB, n *program.Node, in [][]float64) []float64 {
	tb.Helper()
	size := e.p.Values[n.Outputs[0]].Shape.Elements()
	each := func(f func(i int64) float64) []float64 {
		out := make([]float64, size)
		for i := range size {
			out[i] = f(i)
		}
		return out
	}
	one := func(f func(x float64) float64) []float64 { return each(func(i int64) float64 { return f(in[0][i]) }) }
	two := func(f func(x, y float64) float64) []float64 {
		return each(func(i int64) float64 {
			return f(in[0][e.index(n, 0, i)], in[1][e.index(n, 1, i)])
		})
	}
	switch n.Op {
	case program.OpVariable:
		return e.vars[n.Attrs.Variable]
	case program.OpConst:
		return each(func(int64) float64 { return n.Attrs.Value })
	case program.OpIdentity, program.OpReshape, program.OpStopGradient, program.OpSwapOut, program.OpSwapIn:
		return one(func(x float64) float64 { return x })
	case program.OpBroadcastTo:
		return each(func(i int64) float64 { return in[0][e.index(n, 0, i)] })
	case program.OpTanh:
		return one(math.Tanh)
	case program.OpRelu:
		return one(func(x float64) float64 { return max(x, 0) })
	case program.OpSquare:
		return one(func(x float64) float64 { return x * x })
	case program.OpNeg:
		return one(func(x float64) float64 { return -x })
	case program.OpAdd:
		return two(func(x, y float64) float64 { return x + y })
	case program.OpSub:
		return two(func(x, y float64) float64 { return x - y })
	case program.OpMul:
		return two(func(x, y float64) float64 { return x * y })
	case program.OpDiv:
		return two(func(x, y float64) float64 { return x / y })
	case program.OpSquaredDifference:
		return two(func(x, y float64) float64 { d := float64(float32(x - y)); return d * d })
	case program.OpTanhGrad:
		return two(func(y, dy float64) float64 { return dy * (1 - y*y) })
	case program.OpReluGrad:
		return two(func(dy, y float64) float64 {
			if y > 0 {
				return dy
			}
			return 0
		})
	case program.OpAddN:
		return each(func(i int64) float64 {
			sum := in[0][i]
			for _, x := range in[1:] {
				sum = float64(float32(sum + x[i]))
			}
			return sum
		})
	case program.OpTranspose: // of matrices
		s := e.p.Values[n.Outputs[0]].Shape
		if n.Attrs.Axes[0] == 0 {
			return one(func(x float64) float64 { return x })
		}
		return each(func(i int64) float64 { return in[0][i%s[1]*s[0]+i/s[1]] })
	case program.OpSum:
		if n.Attrs.Axes != nil {
			tb.Fatalf("node %s: sum of axes is not evaluated", n.Name)
		}
		sum := 0.0
		for _, x := range in[0] {
			sum += x
		}
		return []float64{sum}
	case program.OpMatMul:
		return e.matmul(n, in)
	default:
		tb.Fatalf("node %s: %s is not evaluated", n.Name, n.Op)
		return nil
	}
}

// index is where element i of the output comes from in an input that broadcasts.
func (e *evaluator) index(n *program.Node, input int, i int64) int64 {
	from, to := e.p.Values[n.Inputs[input]].Shape, e.p.Values[n.Outputs[0]].Shape
	at, stride := int64(0), int64(1)
	for d, extent := range slices.Backward(to) {
		if f := d - len(to) + len(from); f >= 0 {
			if from[f] != 1 {
				at += i % extent * stride
			}
			stride *= from[f]
		}
		i /= extent
	}
	return at
}

func (e *evaluator) matmul(n *program.Node, in [][]float64) []float64 {
	a, b := e.p.Values[n.Inputs[0]].Shape, e.p.Values[n.Inputs[1]].Shape
	s := e.p.Values[n.Outputs[0]].Shape
	inner := a[1]
	if n.Attrs.TransposeA {
		inner = a[0]
	}
	out := make([]float64, s.Elements())
	for i := range s[0] {
		for j := range s[1] {
			for k := range inner {
				x, y := i*a[1]+k, k*b[1]+j
				if n.Attrs.TransposeA {
					x = k*a[1] + i
				}
				if n.Attrs.TransposeB {
					y = j*b[1] + k
				}
				out[i*s[1]+j] += in[0][x] * in[1][y]
			}
		}
	}
	return out
}

// anyOrder is an order that inputs and control edges allow.
func anyOrder(p *program.Program, r *rand.Rand) []program.NodeID {
	missing := make([]int, len(p.Nodes))
	next := make([][]program.NodeID, len(p.Nodes))
	var ready, out []program.NodeID
	for i := range p.Nodes {
		wait := func(n program.NodeID) {
			if n != program.None {
				next[n] = append(next[n], program.NodeID(i))
				missing[i]++
			}
		}
		for _, v := range p.Nodes[i].Inputs {
			wait(p.Values[v].Producer)
		}
		for _, c := range p.Nodes[i].Control {
			wait(c)
		}
		if missing[i] == 0 {
			ready = append(ready, program.NodeID(i))
		}
	}
	for len(ready) > 0 {
		i := r.IntN(len(ready))
		n := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		out = append(out, n)
		for _, m := range next[n] {
			if missing[m]--; missing[m] == 0 {
				ready = append(ready, m)
			}
		}
	}
	return out
}
