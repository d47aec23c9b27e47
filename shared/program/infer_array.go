package program

import "slices"

// What moves elements and does not compute.

func inferTranspose(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	s := make(Shape, len(x.Shape))
	ok := len(n.Attrs.Axes) == len(s)
	for i := 0; ok && i < len(s); i++ {
		a := n.Attrs.Axes[i]
		if ok = a >= 0 && a < int64(len(s)) && !slices.Contains(n.Attrs.Axes[:i], a); ok {
			s[i] = x.Shape[a]
		}
	}
	if !ok {
		return nil, mismatch(p, n, "%s is no order of the dimensions", Shape(n.Attrs.Axes))
	}
	return one(x.DType, s), nil
}

// axis is Attrs.Axes[0] of an op that needs want of them.
func axis(p *Program, n *Node, want int) (int, error) {
	if len(n.Attrs.Axes) != want {
		return 0, mismatch(p, n, "needs %d numbers in Axes, has %s", want, Shape(n.Attrs.Axes))
	}
	a := n.Attrs.Axes[0]
	if a < 0 || a >= int64(len(in(p, n, 0).Shape)) {
		return 0, mismatch(p, n, "axis %d does not exist", a)
	}
	return int(a), nil
}

func inferConcat(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, max(1, len(n.Inputs))); err != nil {
		return nil, err
	}
	a, err := axis(p, n, 1)
	if err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	s := slices.Clone(x.Shape)
	for i := 1; i < len(n.Inputs); i++ {
		y := in(p, n, i)
		if y.DType != x.DType || len(y.Shape) != len(s) || !y.Shape[:a].Equal(s[:a]) || !y.Shape[a+1:].Equal(s[a+1:]) {
			return nil, mismatch(p, n, "inputs must be alike but for dimension %d", a)
		}
		s[a] += y.Shape[a]
	}
	return one(x.DType, s), nil
}

// maxParts bounds the outputs of one Split.
const maxParts = 1 << 16

func inferSplit(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	a, err := axis(p, n, 2)
	if err != nil {
		return nil, err
	}
	x, parts := in(p, n, 0), n.Attrs.Axes[1]
	if parts < 1 || parts > min(maxParts, max(1, x.Shape[a])) || x.Shape[a]%parts != 0 {
		return nil, mismatch(p, n, "dimension %d cannot be cut into %d equal parts, at most %d", a, parts, maxParts)
	}
	s := slices.Clone(x.Shape)
	s[a] /= parts
	return slices.Repeat(one(x.DType, s), int(parts)), nil
}

func inferSlice(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	x, at := in(p, n, 0), &n.Attrs
	ok := len(at.Begin) == len(x.Shape) && len(at.Shape) == len(x.Shape)
	for d := 0; ok && d < len(x.Shape); d++ {
		ok = at.Begin[d] >= 0 && at.Shape[d] >= 0 && at.Begin[d] <= x.Shape[d] && at.Shape[d] <= x.Shape[d]-at.Begin[d]
	}
	if !ok {
		return nil, mismatch(p, n, "%s elements from %s on are not all there", at.Shape, Shape(at.Begin))
	}
	return one(x.DType, at.Shape), nil
}

// fits says whether a number of elements is one that a tensor may have.
func fits(n int64) bool { return n >= 0 && n <= maxElements }

func inferPad(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, 1); err != nil {
		return nil, err
	}
	x, at := in(p, n, 0), &n.Attrs
	s := slices.Clone(x.Shape)
	ok := len(at.Begin) == len(s) && len(at.End) == len(s)
	for d := 0; ok && d < len(s); d++ {
		ok = fits(at.Begin[d]) && fits(at.End[d])
		s[d] += at.Begin[d] + at.End[d]
	}
	if !ok {
		return nil, mismatch(p, n, "cannot add %s before and %s after", Shape(at.Begin), Shape(at.End))
	}
	return one(x.DType, s), nil
}

func inferTile(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	s := slices.Clone(x.Shape)
	ok := len(n.Attrs.Axes) == len(s)
	for d := 0; ok && d < len(s); d++ {
		ok = n.Attrs.Axes[d] >= 1 && fits(n.Attrs.Axes[d])
		s[d] *= n.Attrs.Axes[d]
	}
	if !ok {
		return nil, mismatch(p, n, "cannot be repeated %s times", Shape(n.Attrs.Axes))
	}
	return one(x.DType, s), nil
}

func inferGather(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 2); err != nil {
		return nil, err
	}
	x, ids := in(p, n, 0), in(p, n, 1)
	if len(x.Shape) == 0 || !ids.DType.index() {
		return nil, mismatch(p, n, "needs a table [rows,...] and int32 or int64 indices")
	}
	return one(x.DType, slices.Concat(ids.Shape, x.Shape[1:])), nil
}

func inferSegmentSum(p *Program, n *Node) ([]Spec, error) {
	if err := made(p, n, 2); err != nil {
		return nil, err
	}
	x, ids, s := in(p, n, 0), in(p, n, 1), n.Attrs.Shape
	if !x.DType.number() || !ids.DType.index() {
		return nil, mismatch(p, n, "needs numbers and int32 or int64 indices")
	}
	if k := len(ids.Shape); len(s) == 0 || len(x.Shape) < k || !x.Shape[:k].Equal(ids.Shape) || !x.Shape[k:].Equal(s[1:]) {
		return nil, mismatch(p, n, "rows and indices do not fit %s", s)
	}
	return one(x.DType, s), nil
}

func inferOneHot(p *Program, n *Node) ([]Spec, error) {
	if err := made(p, n, 1); err != nil {
		return nil, err
	}
	ids := in(p, n, 0)
	if !ids.DType.index() || len(n.Attrs.Shape) != 1 {
		return nil, mismatch(p, n, "needs int32 or int64 indices and a shape of one dimension, has %s", n.Attrs.Shape)
	}
	return one(n.Attrs.DType, slices.Concat(ids.Shape, n.Attrs.Shape)), nil
}

func inferRange(p *Program, n *Node) ([]Spec, error) {
	if err := made(p, n, 0); err != nil {
		return nil, err
	}
	if !n.Attrs.DType.number() || len(n.Attrs.Shape) != 1 {
		return nil, mismatch(p, n, "needs a type of numbers and a shape of one dimension, has %s%s", n.Attrs.DType, n.Attrs.Shape)
	}
	return one(n.Attrs.DType, n.Attrs.Shape), nil
}

func inferShape(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 1); err != nil {
		return nil, err
	}
	return one(Int32, Shape{int64(len(in(p, n, 0).Shape))}), nil
}
