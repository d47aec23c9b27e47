package runtime

import (
	"slices"

	"tideline/shared/device"
	"tideline/shared/program"
)

// Op runs any op of package program on tensors, or adds it to the graph of the
// function that is traced, and gives its outputs. Attributes that name
// variables are not read; ops that change variables are Update's.
func (rt *Runtime) Op(op program.Op, a program.Attrs, in ...*Tensor) ([]*Tensor, error) {
	for _, t := range in {
		if err := rt.usable(t, string(op)); err != nil {
			return nil, err
		}
	}
	if rt.trace != nil {
		return rt.trace.op(op, a, in)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.start(); err != nil {
		return nil, err
	}
	var room [8]*handle
	hs := room[:0]
	for _, t := range in {
		hs = append(hs, t.h)
	}
	var out [maxOut]*handle
	n, err := rt.eager(op, &a, hs, &out)
	if err != nil {
		return nil, err
	}
	ts := make([]*Tensor, n)
	for i := range ts {
		ts[i] = rt.own(out[i])
	}
	return ts, nil
}

// eager runs an op and lets the open tapes see it.
func (rt *Runtime) eager(op program.Op, a *program.Attrs, in []*handle, out *[maxOut]*handle) (int, error) {
	if rt.config.General.Determinism && rt.o.Seed == 0 && a.Seed == 0 && (op == program.OpRandomUniform || op == program.OpDropout) {
		return 0, &Error{Kind: device.RuntimeError, Op: string(op), Setting: "op determinism", Message: "random ops need a seed: set Options.Seed or the op's"}
	}
	k, err := rt.execute(op, a, in, out)
	if err != nil {
		return 0, err
	}
	for _, t := range rt.tapes {
		t.record(k, op, a, in, out[:len(k.outs)])
	}
	return len(k.outs), nil
}

// one runs an op with one or two inputs and one output.
func (rt *Runtime) one(op program.Op, a *program.Attrs, x, y *Tensor) (*Tensor, error) {
	if err := rt.usable(x, string(op)); err != nil {
		return nil, err
	}
	if y != nil {
		if err := rt.usable(y, string(op)); err != nil {
			return nil, err
		}
	}
	if rt.trace != nil {
		in := []*Tensor{x, y}
		if y == nil {
			in = in[:1]
		}
		ts, err := rt.trace.op(op, *a, in)
		if err != nil {
			return nil, err
		}
		return ts[0], nil
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.start(); err != nil {
		return nil, err
	}
	in := [2]*handle{x.h}
	n := 1
	if y != nil {
		in[1], n = y.h, 2
	}
	var out [maxOut]*handle
	if _, err := rt.eager(op, a, in[:n], &out); err != nil {
		return nil, err
	}
	return rt.own(out[0]), nil
}

// plain is an op without attributes.
var plain program.Attrs

// binary requires both tensors.
func (rt *Runtime) binary(op program.Op, x, y *Tensor) (*Tensor, error) {
	if y == nil {
		return nil, rt.usable(nil, string(op))
	}
	return rt.one(op, &plain, x, y)
}

// MatMul multiplies matrices [m,k] and [k,n].
func (rt *Runtime) MatMul(x, y *Tensor) (*Tensor, error) { return rt.binary(program.OpMatMul, x, y) }

// Add adds, with broadcasting.
func (rt *Runtime) Add(x, y *Tensor) (*Tensor, error) { return rt.binary(program.OpAdd, x, y) }

// Sub subtracts, with broadcasting.
func (rt *Runtime) Sub(x, y *Tensor) (*Tensor, error) { return rt.binary(program.OpSub, x, y) }

// Mul multiplies element by element, with broadcasting.
func (rt *Runtime) Mul(x, y *Tensor) (*Tensor, error) { return rt.binary(program.OpMul, x, y) }

// Relu is max(x, 0).
func (rt *Runtime) Relu(x *Tensor) (*Tensor, error) { return rt.one(program.OpRelu, &plain, x, nil) }

// Tanh is the hyperbolic tangent.
func (rt *Runtime) Tanh(x *Tensor) (*Tensor, error) { return rt.one(program.OpTanh, &plain, x, nil) }

// Square is x*x.
func (rt *Runtime) Square(x *Tensor) (*Tensor, error) {
	return rt.one(program.OpSquare, &plain, x, nil)
}

// Identity is x: the same memory on its own device, a copy in the scope of
// another.
func (rt *Runtime) Identity(x *Tensor) (*Tensor, error) {
	return rt.one(program.OpIdentity, &plain, x, nil)
}

// Sum adds up over the axes, all without any.
func (rt *Runtime) Sum(x *Tensor, axes ...int64) (*Tensor, error) {
	return rt.one(program.OpSum, &program.Attrs{Axes: slices.Clone(axes)}, x, nil)
}

// Mean averages over the axes, all without any.
func (rt *Runtime) Mean(x *Tensor, axes ...int64) (*Tensor, error) {
	return rt.one(program.OpMean, &program.Attrs{Axes: slices.Clone(axes)}, x, nil)
}

// Reshape gives x another shape; the memory stays.
func (rt *Runtime) Reshape(x *Tensor, shape ...int64) (*Tensor, error) {
	return rt.one(program.OpReshape, &program.Attrs{Shape: slices.Clone(shape)}, x, nil)
}

// Cast converts x.
func (rt *Runtime) Cast(x *Tensor, d program.DType) (*Tensor, error) {
	return rt.one(program.OpCast, &program.Attrs{DType: d}, x, nil)
}

// RandomUniform gives numbers in [0,1) that the seed decides.
func (rt *Runtime) RandomUniform(d program.DType, seed int64, shape ...int64) (*Tensor, error) {
	ts, err := rt.Op(program.OpRandomUniform, program.Attrs{DType: d, Seed: seed, Shape: slices.Clone(shape)})
	if err != nil {
		return nil, err
	}
	return ts[0], nil
}
