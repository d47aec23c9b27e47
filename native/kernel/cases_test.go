package kernel_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
)

type (
	shape = program.Shape
	attrs = program.Attrs
	value = program.ValueID
)

// arg is an input of a case: its shape, what it holds, and its type unless
// that is the floating type under test.
type arg struct {
	shape    shape
	dtype    program.DType
	fixed    bool // dtype counts
	low, hi  float64
	list     []float64 // instead of random numbers
	variable bool
	wide     bool // float32 where the type under test is a half
}

func x(s ...int64) arg { return arg{shape: s, low: -1, hi: 1} }

func (a arg) of(low, hi float64) arg {
	a.low, a.hi = low, hi
	return a
}

func (a arg) kept() arg {
	a.variable = true
	return a
}

func (a arg) typed(t program.DType) arg {
	a.dtype, a.fixed = t, true
	return a
}

func num(v float64) arg { return arg{list: []float64{v}} }

func index(n int, s ...int64) arg {
	return arg{shape: s, low: 0, hi: float64(n)}.typed(program.Int64)
}

func flags(s ...int64) arg { return arg{shape: s, low: 0, hi: 2}.typed(program.Bool) }

// opCase is an op on inputs, with what it should give.
type opCase struct {
	op    program.Op
	at    attrs
	in    []arg
	want  func(r *ref)
	slack float64 // multiplies the tolerance; 0 is 1
	ints  bool    // also in int32 and int64
	only  bool    // no floating type among the inputs: run once
}

// ref is a call in float64, for the slow way to compute it. What a case
// changes of its inputs must be what became of its variables.
type ref struct {
	at      attrs
	in, out [][]float64
	is, os  []shape
}

// dims gives the position of element k.
func dims(s shape, k int) []int64 {
	at := make([]int64, len(s))
	for d := len(s) - 1; d >= 0; d-- {
		at[d] = int64(k) % s[d]
		k /= int(s[d])
	}
	return at
}

// offset is the element at a position.
func offset(s shape, at []int64) int {
	n := int64(0)
	for d, e := range s {
		n = n*e + at[d]
	}
	return int(n)
}

// spread gives element k of an output as an element of an input that
// broadcasts to it.
func (r *ref) spread(i, k int) float64 {
	at := dims(r.os[0], k)[len(r.os[0])-len(r.is[i]):]
	for d, e := range r.is[i] {
		if e == 1 {
			at[d] = 0
		}
	}
	return r.in[i][offset(r.is[i], at)]
}

func map1(f func(a float64) float64) func(*ref) {
	return func(r *ref) {
		for k := range r.out[0] {
			r.out[0][k] = f(r.spread(0, k))
		}
	}
}

func map2(f func(a, b float64) float64) func(*ref) {
	return func(r *ref) {
		for k := range r.out[0] {
			r.out[0][k] = f(r.spread(0, k), r.spread(1, k))
		}
	}
}

func yes(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// foldTo reduces over the axes.
func foldTo(first float64, f func(acc, v float64) float64, finish func(acc float64, n int) float64) func(*ref) {
	return func(r *ref) {
		counts := make([]int, len(r.out[0]))
		for k := range r.out[0] {
			r.out[0][k] = first
		}
		for k, v := range r.in[0] {
			at := dims(r.is[0], k)
			o := int64(0)
			for d, e := range r.is[0] {
				if r.at.Axes != nil && !slices.Contains(r.at.Axes, int64(d)) {
					o = o*e + at[d]
				}
			}
			r.out[0][o] = f(r.out[0][o], v)
			counts[o]++
		}
		for k := range r.out[0] {
			r.out[0][k] = finish(r.out[0][k], counts[k])
		}
	}
}

func asIs(acc float64, _ int) float64 { return acc }
func plus(a, b float64) float64       { return a + b }

// rowsOf calls f with rows of the last dimension of input 0.
func rowsOf(r *ref, f func(row, at int, x []float64)) {
	n := int(r.is[0][len(r.is[0])-1])
	for i := 0; i < len(r.in[0])/n; i++ {
		f(i, i*n, r.in[0][i*n:][:n])
	}
}

func softmaxOf(x []float64) []float64 {
	y, total := make([]float64, len(x)), 0.0
	for i, v := range x {
		y[i] = math.Exp(v)
		total += y[i]
	}
	for i := range y {
		y[i] /= total
	}
	return y
}

func sig(v float64) float64 { return 1 / (1 + math.Exp(-v)) }

func geluOf(v float64) float64 {
	return 0.5 * v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
}

// slope is a derivative by differences, good to some 10 digits.
func slope(f func(float64) float64, at float64) float64 {
	const h = 1e-4
	return (8*(f(at+h)-f(at-h)) - (f(at+2*h) - f(at-2*h))) / (12 * h)
}

// padding is TensorFlow's rule: how many zeros stand before an extent.
func padding(size, k, stride int64, p program.Padding) (out, before int64) {
	if p == program.Valid {
		return (size - k + stride) / stride, 0
	}
	out = (size + stride - 1) / stride
	need := (out-1)*stride + k - size
	return out, max(need, 0) / 2
}

// windows calls f with every pair of output position and image position under
// its window, and the place in the window.
func windows(at attrs, image shape, kh, kw int64, f func(n, oh, ow, h, w, i, j int64)) {
	outH, top := padding(image[1], kh, at.Strides[0], at.Padding)
	outW, left := padding(image[2], kw, at.Strides[1], at.Padding)
	for n := range image[0] {
		for oh := range outH {
			for ow := range outW {
				for i := range kh {
					for j := range kw {
						h, w := oh*at.Strides[0]-top+i, ow*at.Strides[1]-left+j
						if h >= 0 && w >= 0 && h < image[1] && w < image[2] {
							f(n, oh, ow, h, w, i, j)
						}
					}
				}
			}
		}
	}
}

// convOf adds up products of three tensors' elements: dst[p] += a[q]*b[s].
func convOf(at attrs, image, filter, out shape, f func(img, fil, o int)) {
	windows(at, image, filter[0], filter[1], func(n, oh, ow, h, w, i, j int64) {
		for ci := range filter[2] {
			for co := range filter[3] {
				f(offset(image, []int64{n, h, w, ci}), offset(filter, []int64{i, j, ci, co}), offset(out, []int64{n, oh, ow, co}))
			}
		}
	})
}

// element types under test, with the tolerance of each.
var floatTypes = []struct {
	t   program.DType
	tol float64
}{{program.Float64, 1e-12}, {program.Float32, 3e-6}, {program.Float16, 2e-3}, {program.BFloat16, 1.6e-2}}

// ready is a case with buffers.
type ready struct {
	*machine
	c    *kernel.Call
	ids  []value
	args []arg
}

// prepare builds a program of the op on inputs of the floating type t.
func (oc *opCase) prepare(tb testing.TB, t program.DType) *ready {
	tb.Helper()
	b := program.NewBuilder("t", 1)
	b.Float(t)
	r := &ready{}
	for i, a := range oc.in {
		if !a.fixed {
			a.dtype = t
			if a.wide && t != program.Float64 {
				a.dtype = program.Float32
			}
		}
		if a.variable {
			r.ids = append(r.ids, b.State(fmt.Sprint("v", i), a.dtype, a.shape, program.Init{}))
		} else {
			r.ids = append(r.ids, b.Input(fmt.Sprint("in", i), a.dtype, a.shape))
		}
		r.args = append(r.args, a)
	}
	at := oc.at
	if at.DType == anyFloat {
		at.DType = t
	}
	if oc.op == program.OpVariable {
		b.Variable("v", shape{3}, program.Init{})
	} else {
		b.Node(oc.op, at, r.ids...)
	}
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	r.machine = newMachine(tb, p, 1)
	r.c = &r.calls[len(r.calls)-1]
	r.fill()
	return r
}

// anyFloat is the Attrs.DType of a case that stands for the type under test.
const anyFloat program.DType = 200

// fill gives the inputs their numbers, the same every time.
func (r *ready) fill() {
	rnd := rand.New(rand.NewPCG(11, 2))
	for i, id := range r.ids {
		v := &r.p.Values[id]
		list := slices.Clone(r.args[i].list)
		if list == nil {
			list = make([]float64, v.Shape.Elements())
			for j := range list {
				list[j] = r.args[i].low + (r.args[i].hi-r.args[i].low)*rnd.Float64()
				if !v.DType.Float() {
					list[j] = math.Floor(list[j])
				}
			}
		}
		storeFloats(r.values[id], v.DType, list)
	}
}

// expect computes the case the slow way, from the numbers that are there.
func (oc *opCase) expect(r *ready) *ref {
	f := &ref{at: oc.at}
	for _, id := range r.ids {
		v := &r.p.Values[id]
		f.in = append(f.in, loadFloats(r.values[id], v.DType, v.Shape.Elements()))
		f.is = append(f.is, v.Shape)
	}
	for _, id := range r.c.Node.Outputs {
		v := &r.p.Values[id]
		f.out = append(f.out, make([]float64, v.Shape.Elements()))
		f.os = append(f.os, v.Shape)
	}
	oc.want(f)
	return f
}

// differs compares what the call gave with what it should have.
func (r *ready) differs(f *ref, tol float64) error {
	for i, id := range r.c.Node.Outputs {
		v := &r.p.Values[id]
		if err := close64(loadFloats(r.c.Out[i], v.DType, v.Shape.Elements()), f.out[i], v.DType, tol); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	for i, id := range r.ids {
		v := &r.p.Values[id]
		if err := close64(loadFloats(r.c.In[i], v.DType, v.Shape.Elements()), f.in[i], v.DType, tol); err != nil {
			return fmt.Errorf("input %d: %w", i, err)
		}
	}
	return nil
}

func close64(got, want []float64, t program.DType, tol float64) error {
	if !t.Float() {
		tol = 0
	}
	for i := range got {
		if got[i] == want[i] || got[i] != got[i] && want[i] != want[i] {
			continue
		}
		if d := math.Abs(got[i] - want[i]); !(d <= tol*(1+math.Abs(want[i]))) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}

// types are those that a case runs in.
func (oc *opCase) types() []program.DType {
	if oc.only {
		return []program.DType{program.Float32}
	}
	ts := []program.DType{program.Float64, program.Float32, program.Float16, program.BFloat16}
	if oc.ints {
		ts = append(ts, program.Int32, program.Int64)
	}
	return ts
}

func tolerance(t program.DType) float64 {
	for _, f := range floatTypes {
		if f.t == t {
			return f.tol
		}
	}
	return 0
}

func (oc *opCase) String() string {
	s := string(oc.op)
	for _, a := range oc.in {
		s += " " + a.shape.String()
	}
	return s
}

// programOps reads the ops that package program names, so that a new one
// without kernel or case is found.
func programOps(tb testing.TB) []program.Op {
	tb.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../shared/program/op.go", nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var ops []program.Op
	for _, d := range file.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, s := range gen.Specs {
			for _, v := range s.(*ast.ValueSpec).Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					name, err := strconv.Unquote(lit.Value)
					if err != nil {
						tb.Fatal(err)
					}
					ops = append(ops, program.Op(name))
				}
			}
		}
	}
	if len(ops) < 100 {
		tb.Fatalf("only %d ops found", len(ops))
	}
	return ops
}
