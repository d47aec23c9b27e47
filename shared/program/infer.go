package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrShape is wrapped by the errors of shape and type inference.
var ErrShape = errors.New("shapes or types do not fit")

// mismatch is the error of an op whose inputs do not fit: it names node, op
// and what came in.
func mismatch(p *Program, n *Node, format string, args ...any) error {
	in := make([]string, len(n.Inputs))
	for i, v := range n.Inputs {
		in[i] = p.Values[v].DType.String() + p.Values[v].Shape.String()
	}
	return fmt.Errorf("node %s: %s(%s): %w: %s", n.Name, n.Op, strings.Join(in, ", "), ErrShape, fmt.Sprintf(format, args...))
}

// arity checks the number of inputs.
func arity(p *Program, n *Node, want int) error {
	if len(n.Inputs) != want {
		return mismatch(p, n, "needs %d inputs, has %d", want, len(n.Inputs))
	}
	return nil
}

// floats checks the number of inputs and that all have one floating type.
func floats(p *Program, n *Node, want int) error {
	if err := arity(p, n, want); err != nil {
		return err
	}
	for i, v := range n.Inputs {
		if d := p.Values[v].DType; !d.Float() || d != p.Values[n.Inputs[0]].DType {
			return mismatch(p, n, "input %d is %s; all inputs must have one floating type", i, d)
		}
	}
	return nil
}

// in is the value of input i.
func in(p *Program, n *Node, i int) *Value { return &p.Values[n.Inputs[i]] }

func one(d DType, s Shape) []Spec { return []Spec{{d, s}} }

func inferVariable(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 0); err != nil {
		return nil, err
	}
	if v := n.Attrs.Variable; v < 0 || int(v) >= len(p.Variables) {
		return nil, mismatch(p, n, "variable %d does not exist", v)
	}
	v := &p.Variables[n.Attrs.Variable]
	return one(v.DType, v.Shape), nil
}

func inferConst(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 0); err != nil {
		return nil, err
	}
	for _, d := range n.Attrs.Shape {
		if d < 0 {
			return nil, mismatch(p, n, "constant of shape %s", n.Attrs.Shape)
		}
	}
	return one(n.Attrs.DType, n.Attrs.Shape), nil
}

func inferAssign(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 2); err != nil {
		return nil, err
	}
	if err := isVariable(p, n, 0, n.Attrs.Variable); err != nil {
		return nil, err
	}
	if v, x := in(p, n, 0), in(p, n, 1); v.DType != x.DType || !v.Shape.Equal(x.Shape) {
		return nil, mismatch(p, n, "a variable keeps its type and shape")
	}
	return nil, nil
}

func isVariable(p *Program, n *Node, i int, want VariableID) error {
	if got := in(p, n, i).Variable; got == None || got != want {
		return mismatch(p, n, "input %d must be the value of variable %d, is of %d", i, want, got)
	}
	return nil
}

func inferSame(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	return one(in(p, n, 0).DType, in(p, n, 0).Shape), nil
}

func inferFloat(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	return inferSame(p, n)
}

func inferSamePair(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	if !in(p, n, 0).Shape.Equal(in(p, n, 1).Shape) {
		return nil, mismatch(p, n, "both inputs must have one shape")
	}
	return one(in(p, n, 0).DType, in(p, n, 0).Shape), nil
}

func inferReshape(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	if x.Shape.Elements() != n.Attrs.Shape.Elements() {
		return nil, mismatch(p, n, "%d elements cannot be reshaped to %s, which has %d", x.Shape.Elements(), n.Attrs.Shape, n.Attrs.Shape.Elements())
	}
	return one(x.DType, n.Attrs.Shape), nil
}

func inferBroadcastTo(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	if s, ok := Broadcast(x.Shape, n.Attrs.Shape); !ok || !s.Equal(n.Attrs.Shape) {
		return nil, mismatch(p, n, "cannot be broadcast to %s", n.Attrs.Shape)
	}
	return one(x.DType, n.Attrs.Shape), nil
}

func inferCast(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	return one(n.Attrs.DType, in(p, n, 0).Shape), nil
}

func inferMatMul(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	a, b := in(p, n, 0).Shape, in(p, n, 1).Shape
	if len(a) != 2 || len(b) != 2 {
		return nil, mismatch(p, n, "both inputs must be matrices")
	}
	m, ka := a[0], a[1]
	if n.Attrs.TransposeA {
		m, ka = ka, m
	}
	kb, c := b[0], b[1]
	if n.Attrs.TransposeB {
		kb, c = c, kb
	}
	if ka != kb {
		return nil, mismatch(p, n, "inner extents %d and %d differ (transposed: %t, %t)", ka, kb, n.Attrs.TransposeA, n.Attrs.TransposeB)
	}
	return one(in(p, n, 0).DType, Shape{m, c}), nil
}

func inferBiasAdd(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	x, b := in(p, n, 0).Shape, in(p, n, 1).Shape
	if len(x) < 2 || len(b) != 1 || x[len(x)-1] != b[0] {
		return nil, mismatch(p, n, "the bias must be a vector as long as the last dimension")
	}
	return one(in(p, n, 0).DType, x), nil
}

func inferBiasAddGrad(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0).Shape
	if len(x) < 2 {
		return nil, mismatch(p, n, "needs two dimensions or more")
	}
	return one(in(p, n, 0).DType, Shape{x[len(x)-1]}), nil
}

// Broadcast gives the shape that two tensors have together, by NumPy's rule:
// aligned at the last dimension, extents equal or 1.
func Broadcast(a, b Shape) (Shape, bool) {
	if len(a) < len(b) {
		a, b = b, a
	}
	s := slices.Clone(a)
	off := len(a) - len(b)
	for i, d := range b {
		switch {
		case s[off+i] == d || d == 1:
		case s[off+i] == 1:
			s[off+i] = d
		default:
			return nil, false
		}
	}
	return s, true
}

func inferBroadcast(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	s, ok := Broadcast(in(p, n, 0).Shape, in(p, n, 1).Shape)
	if !ok {
		return nil, mismatch(p, n, "shapes cannot be broadcast together")
	}
	return one(in(p, n, 0).DType, s), nil
}

func inferAddN(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, max(1, len(n.Inputs))); err != nil {
		return nil, err
	}
	for i := range n.Inputs {
		if !in(p, n, i).Shape.Equal(in(p, n, 0).Shape) {
			return nil, mismatch(p, n, "all inputs must have one shape")
		}
	}
	return one(in(p, n, 0).DType, in(p, n, 0).Shape), nil
}

// reducesAxis says whether a reduction with these axes removes dimension d.
func reducesAxis(axes []int64, d int) bool {
	return axes == nil || slices.Contains(axes, int64(d))
}

func inferReduce(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	for _, a := range n.Attrs.Axes {
		if a < 0 || int(a) >= len(x.Shape) {
			return nil, mismatch(p, n, "axis %d does not exist", a)
		}
	}
	var s Shape
	for d, e := range x.Shape {
		if !reducesAxis(n.Attrs.Axes, d) {
			s = append(s, e)
		}
	}
	return one(x.DType, s), nil
}

func inferArgMax(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0).Shape
	if len(x) == 0 || x[len(x)-1] == 0 {
		return nil, mismatch(p, n, "needs a last dimension that is not empty")
	}
	return one(Int64, x[:len(x)-1]), nil
}

func inferEqual(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 2); err != nil {
		return nil, err
	}
	a, b := in(p, n, 0), in(p, n, 1)
	if a.DType != b.DType || !a.Shape.Equal(b.Shape) {
		return nil, mismatch(p, n, "both inputs must have one type and shape")
	}
	return one(Bool, a.Shape), nil
}

func inferSparseXent(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 2); err != nil {
		return nil, err
	}
	x, y := in(p, n, 0), in(p, n, 1)
	if !x.DType.Float() || (y.DType != Int32 && y.DType != Int64) {
		return nil, mismatch(p, n, "needs floating logits and int32 or int64 labels")
	}
	if len(x.Shape) != 2 || len(y.Shape) != 1 || x.Shape[0] != y.Shape[0] || x.Shape[1] == 0 {
		return nil, mismatch(p, n, "needs logits [n,c] and labels [n]")
	}
	return []Spec{{x.DType, y.Shape}, {x.DType, x.Shape}}, nil
}

func inferApplySGD(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 3); err != nil {
		return nil, err
	}
	if err := isVariable(p, n, 0, n.Attrs.Variable); err != nil {
		return nil, err
	}
	return nil, applyShapes(p, n, 1, 2)
}

func inferApplyAdam(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 10); err != nil {
		return nil, err
	}
	for i, v := range [3]VariableID{n.Attrs.Variable, n.Attrs.Slots[0], n.Attrs.Slots[1]} {
		if err := isVariable(p, n, i, v); err != nil {
			return nil, err
		}
		if !in(p, n, i).Shape.Equal(in(p, n, 0).Shape) {
			return nil, mismatch(p, n, "slot %d must have the variable's shape", i-1)
		}
	}
	return nil, applyShapes(p, n, 3, 9)
}

// applyShapes checks that inputs first..grad-1 are scalars and that the
// gradient has the variable's shape.
func applyShapes(p *Program, n *Node, first, grad int) error {
	for i := first; i < grad; i++ {
		if len(in(p, n, i).Shape) != 0 {
			return mismatch(p, n, "input %d must be a scalar", i)
		}
	}
	if !in(p, n, 0).Shape.Equal(in(p, n, grad).Shape) {
		return mismatch(p, n, "the gradient must have the variable's shape")
	}
	return nil
}
