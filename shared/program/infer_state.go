package program

import "slices"

// What changes variables.

func isVariable(p *Program, n *Node, i int, want VariableID) error {
	if got := in(p, n, i).Variable; got == None || got != want {
		return mismatch(p, n, "input %d must be the value of variable %d, is of %d", i, want, got)
	}
	return nil
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

func inferAssignNumber(p *Program, n *Node) ([]Spec, error) {
	if err := numbers(p, n, 2); err != nil {
		return nil, err
	}
	return inferAssign(p, n)
}

func inferMovingAverage(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	if d := n.Attrs.Value; !(d >= 0 && d <= 1) {
		return nil, mismatch(p, n, "decay %v: must be from 0 to 1", d)
	}
	return inferAssign(p, n)
}

// inferApply makes the check of an optimizer's op: a variable and its slots,
// numbers, the gradient, its indices if sparse, a guard if Attrs ask for one.
func inferApply(slots, scalars int, sparse bool) func(*Program, *Node) ([]Spec, error) {
	return func(p *Program, n *Node) ([]Spec, error) {
		grad := 1 + slots + scalars
		want := grad + 1
		if sparse {
			want++
		}
		if n.Attrs.Guarded {
			want++
		}
		if err := arity(p, n, want); err != nil {
			return nil, err
		}
		if err := applyState(p, n, slots); err != nil {
			return nil, err
		}
		v := in(p, n, 0)
		for i := 1 + slots; i < grad; i++ {
			if x := in(p, n, i); len(x.Shape) != 0 || x.DType != v.DType {
				return nil, mismatch(p, n, "input %d must be a scalar of the variable's type", i)
			}
		}
		if sparse {
			if err := applyRows(p, n, grad); err != nil {
				return nil, err
			}
		} else if g := in(p, n, grad); g.DType != v.DType || !g.Shape.Equal(v.Shape) {
			return nil, mismatch(p, n, "the gradient must have the variable's type and shape")
		}
		if guard := in(p, n, want-1); n.Attrs.Guarded && (guard.DType != Bool || len(guard.Shape) != 0) {
			return nil, mismatch(p, n, "the guard must be a bool scalar")
		}
		return nil, nil
	}
}

// applyState checks a variable and its slots.
func applyState(p *Program, n *Node, slots int) error {
	v := in(p, n, 0)
	if !v.DType.Float() {
		return mismatch(p, n, "the variable must have a floating type")
	}
	if err := isVariable(p, n, 0, n.Attrs.Variable); err != nil {
		return err
	}
	for i := range slots {
		if err := isVariable(p, n, 1+i, n.Attrs.Slots[i]); err != nil {
			return err
		}
		if s := in(p, n, 1+i); s.DType != v.DType || !s.Shape.Equal(v.Shape) {
			return mismatch(p, n, "slot %d must have the variable's type and shape", i)
		}
	}
	return nil
}

// applyRows checks a gradient of rows, input i, and the indices that follow it.
func applyRows(p *Program, n *Node, i int) error {
	v, g, ids := in(p, n, 0), in(p, n, i), in(p, n, i+1)
	if ids.DType != Int64 || len(ids.Shape) != 1 {
		return mismatch(p, n, "indices must be int64[n]")
	}
	if len(v.Shape) == 0 || g.DType != v.DType || !g.Shape.Equal(slices.Concat(ids.Shape, v.Shape[1:])) {
		return mismatch(p, n, "the gradient must be rows of the variable, one an index")
	}
	return nil
}

func inferLossScale(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 3); err != nil {
		return nil, err
	}
	if err := isVariable(p, n, 0, n.Attrs.Variable); err != nil {
		return nil, err
	}
	if err := isVariable(p, n, 1, n.Attrs.Slots[0]); err != nil {
		return nil, err
	}
	for i, d := range [...]DType{Float32, Int64, Bool} {
		if v := in(p, n, i); v.DType != d || len(v.Shape) != 0 {
			return nil, mismatch(p, n, "input %d must be a %s scalar", i, d)
		}
	}
	if n.Attrs.Value < 1 {
		return nil, mismatch(p, n, "cannot grow after %v steps", n.Attrs.Value)
	}
	return nil, nil
}
