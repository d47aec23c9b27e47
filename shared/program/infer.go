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

// numbers is floats for ops that count in int32 and int64 as well.
func numbers(p *Program, n *Node, want int) error {
	if err := arity(p, n, want); err != nil {
		return err
	}
	for i, v := range n.Inputs {
		if d := p.Values[v].DType; !d.number() || d != p.Values[n.Inputs[0]].DType {
			return mismatch(p, n, "input %d is %s; all inputs must have one type of numbers", i, d)
		}
	}
	return nil
}

// number says whether arithmetic is done in the type.
func (d DType) number() bool { return d <= Int64 }

// index says whether the type counts rows and classes.
func (d DType) index() bool { return d == Int32 || d == Int64 }

// statistics is the type in which means, variances and their parameters are
// kept for activations of type d: halves are too coarse for them.
func statistics(d DType) DType {
	if d == Float16 || d == BFloat16 {
		return Float32
	}
	return d
}

// made checks a type and a shape that Attrs ask for.
func made(p *Program, n *Node, want int) error {
	if err := arity(p, n, want); err != nil {
		return err
	}
	if n.Attrs.DType >= numDTypes {
		return mismatch(p, n, "element type %d does not exist", n.Attrs.DType)
	}
	if !sound(n.Attrs.DType, n.Attrs.Shape) {
		return mismatch(p, n, "a tensor of shape %s cannot be", n.Attrs.Shape)
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
	if err := made(p, n, 0); err != nil {
		return nil, err
	}
	return one(n.Attrs.DType, n.Attrs.Shape), nil
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
	if err := made(p, n, 1); err != nil {
		return nil, err
	}
	return one(n.Attrs.DType, in(p, n, 0).Shape), nil
}

// inferMatMul is for MatMul and BatchMatMul: batch dimensions are equal.
func inferMatMul(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	a, b := in(p, n, 0).Shape, in(p, n, 1).Shape
	batch := len(a) - 2
	if batch < 0 || len(a) != len(b) || (n.Op == OpMatMul && batch > 0) || !a[:batch].Equal(b[:batch]) {
		return nil, mismatch(p, n, "both inputs must be matrices, or equally many of them")
	}
	m, ka := a[batch], a[batch+1]
	if n.Attrs.TransposeA {
		m, ka = ka, m
	}
	kb, c := b[batch], b[batch+1]
	if n.Attrs.TransposeB {
		kb, c = c, kb
	}
	if ka != kb {
		return nil, mismatch(p, n, "inner extents %d and %d differ (transposed: %t, %t)", ka, kb, n.Attrs.TransposeA, n.Attrs.TransposeB)
	}
	return one(in(p, n, 0).DType, append(slices.Clone(a[:batch]), m, c)), nil
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

func inferAddN(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, max(1, len(n.Inputs))); err != nil {
		return nil, err
	}
	for i := range n.Inputs {
		if !in(p, n, i).Shape.Equal(in(p, n, 0).Shape) {
			return nil, mismatch(p, n, "all inputs must have one shape")
		}
	}
	return one(in(p, n, 0).DType, in(p, n, 0).Shape), nil
}
