package program

import "slices"

// Element by element, and reductions.

func inferNumber(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, 1); err != nil {
		return nil, err
	}
	return inferSame(p, n)
}

func inferIsFinite(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	return one(Bool, in(p, n, 0).Shape), nil
}

// bools checks that all inputs are truth values.
func bools(p *Program, n *Node, want int) error {
	if err := arity(p, n, want); err != nil {
		return err
	}
	for i := range n.Inputs {
		if in(p, n, i).DType != Bool {
			return mismatch(p, n, "input %d must be bool", i)
		}
	}
	return nil
}

func inferNot(p *Program, n *Node) ([]Spec, error) {
	if err := bools(p, n, 1); err != nil {
		return nil, err
	}
	return inferSame(p, n)
}

// inferBroadcast is for two numbers, inferBroadcastFloat for two of a floating
// type.
func inferBroadcast(p *Program, n *Node) ([]Spec, error) {
	return together(p, n, numbers(p, n, 2), 0, func(d DType) DType { return d })
}

func inferBroadcastFloat(p *Program, n *Node) ([]Spec, error) {
	return together(p, n, floats(p, n, 2), 0, func(d DType) DType { return d })
}

func inferAnd(p *Program, n *Node) ([]Spec, error) {
	return together(p, n, bools(p, n, 2), 0, func(d DType) DType { return d })
}

func inferCompare(p *Program, n *Node) ([]Spec, error) {
	return together(p, n, numbers(p, n, 2), 0, func(DType) DType { return Bool })
}

func inferEqual(p *Program, n *Node) ([]Spec, error) {
	err := arity(p, n, 2)
	if err == nil && in(p, n, 0).DType != in(p, n, 1).DType {
		err = mismatch(p, n, "both inputs must have one type")
	}
	return together(p, n, err, 0, func(DType) DType { return Bool })
}

func inferSelect(p *Program, n *Node) ([]Spec, error) {
	err := arity(p, n, 3)
	if err == nil && (in(p, n, 0).DType != Bool || in(p, n, 1).DType != in(p, n, 2).DType) {
		err = mismatch(p, n, "needs a bool condition and two tensors of one type")
	}
	return together(p, n, err, 1, func(d DType) DType { return d })
}

// together gives the shape that all inputs have together, and the type that
// follows from input typed's, unless there was an error before.
func together(p *Program, n *Node, err error, typed int, d func(DType) DType) ([]Spec, error) {
	if err != nil {
		return nil, err
	}
	s := in(p, n, 0).Shape
	for i := range n.Inputs {
		var ok bool
		if s, ok = Broadcast(s, in(p, n, i).Shape); !ok {
			return nil, mismatch(p, n, "shapes cannot be broadcast together")
		}
	}
	return one(d(in(p, n, typed).DType), s), nil
}

// reducesAxis says whether a reduction with these axes removes dimension d.
func reducesAxis(axes []int64, d int) bool {
	return axes == nil || slices.Contains(axes, int64(d))
}

func inferReduce(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, 1); err != nil {
		return nil, err
	}
	return reduced(p, n)
}

func inferMean(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	return reduced(p, n)
}

func inferAll(p *Program, n *Node) ([]Spec, error) {
	if err := bools(p, n, 1); err != nil {
		return nil, err
	}
	return reduced(p, n)
}

func reduced(p *Program, n *Node) ([]Spec, error) {
	x := in(p, n, 0)
	for i, a := range n.Attrs.Axes {
		if a < 0 || a >= int64(len(x.Shape)) || slices.Contains(n.Attrs.Axes[:i], a) {
			return nil, mismatch(p, n, "axis %d does not exist or comes twice", a)
		}
	}
	var s Shape
	for d, e := range x.Shape {
		switch {
		case !reducesAxis(n.Attrs.Axes, d):
			s = append(s, e)
		case n.Attrs.KeepDims:
			s = append(s, 1)
		}
	}
	return one(x.DType, s), nil
}

// rows checks that there is a last dimension that is not empty.
func rows(p *Program, n *Node) error {
	if x := in(p, n, 0).Shape; len(x) == 0 || x[len(x)-1] == 0 {
		return mismatch(p, n, "needs a last dimension that is not empty")
	}
	return nil
}

func inferArgMax(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, 1); err != nil {
		return nil, err
	}
	if err := rows(p, n); err != nil {
		return nil, err
	}
	x := in(p, n, 0).Shape
	return one(Int64, x[:len(x)-1]), nil
}

func inferTopK(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, 1); err != nil {
		return nil, err
	}
	if err := rows(p, n); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	s, k := slices.Clone(x.Shape), int64(n.Attrs.Value)
	if k < 1 || k > s[len(s)-1] {
		return nil, mismatch(p, n, "the %d largest of %d", k, s[len(s)-1])
	}
	s[len(s)-1] = k
	return []Spec{{x.DType, s}, {Int32, s}}, nil
}

func inferL2Loss(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	return one(in(p, n, 0).DType, nil), nil
}

func inferSoftmax(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	if err := rows(p, n); err != nil {
		return nil, err
	}
	return inferSame(p, n)
}
