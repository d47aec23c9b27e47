package program_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
)

// machine runs a program with the CPU's kernels, node by node, every value in
// memory of its own.
type machine struct {
	p     *program.Program
	vars  [][]byte
	value [][]byte
}

func memory(bytes int64) []byte { return kernel.Bytes(make([]int64, (bytes+7)/8)) }

func newMachine(p *program.Program) *machine {
	m := &machine{p: p}
	for i := range p.Variables {
		v := &p.Variables[i]
		b, n := memory(v.Bytes()), v.Shape.Elements()
		switch v.DType {
		case program.Float32:
			p.Fill(kernel.Floats(b)[:n], program.VariableID(i), 1)
		case program.Float64:
			p.Fill64(kernel.Doubles(b)[:n], program.VariableID(i), 1)
		default: // the counter begins at 0
		}
		m.vars = append(m.vars, b)
	}
	for i := range p.Values {
		if v := &p.Values[i]; v.Variable != program.None {
			m.value = append(m.value, m.vars[v.Variable])
		} else {
			m.value = append(m.value, memory(v.Bytes()))
		}
	}
	return m
}

// step runs all nodes and gives the loss.
func (m *machine) step(t *testing.T) float32 {
	t.Helper()
	for i := range m.p.Nodes {
		n := &m.p.Nodes[i]
		def, err := program.Lookup(n.Op)
		if err != nil {
			t.Fatal(err)
		}
		c := kernel.Call{Program: m.p, Node: n}
		for _, v := range n.Inputs {
			c.In = append(c.In, m.value[v])
		}
		for _, v := range n.Outputs {
			if def.Alias {
				m.value[v] = m.value[n.Inputs[0]]
			}
			c.Out = append(c.Out, m.value[v])
		}
		if err := kernel.Run(&c); err != nil {
			t.Fatal(err)
		}
	}
	return kernel.Floats(m.value[m.p.Fetches[0].Value])[0]
}

func (m *machine) variable(name string) []byte {
	i := slices.IndexFunc(m.p.Variables, func(v program.Variable) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return m.vars[i]
}

// small is a table, two dense layers and a cross entropy, trained by o.
func small(t *testing.T, o program.Optimizer, compute program.DType) *program.Program {
	t.Helper()
	b := program.NewBuilder("small", 8)
	wide := program.Float32
	if compute == program.Float64 {
		wide = compute
	}
	b.Float(wide)
	b.Compute(compute)
	weight := func(name string, s program.Shape) program.ValueID {
		return b.Variable(name, s, program.Init{Kind: program.InitUniform, Scale: 0.5})
	}
	ids := b.Const("ids", program.Int64, program.Shape{8}, 3)
	x := b.Read(b.Op(program.OpGather, program.Attrs{}, weight("table", program.Shape{20, 6}), ids))
	x = b.Op(program.OpMatMul, program.Attrs{}, x, b.Read(weight("dense1", program.Shape{6, 5})))
	x = b.Op(program.OpMatMul, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, x), b.Read(weight("dense2", program.Shape{5, 4})))
	x = b.Op(program.OpCast, program.Attrs{DType: wide}, x)
	labels := b.Const("labels", program.Int64, program.Shape{8}, 2)
	loss := b.Op(program.OpMean, program.Attrs{}, b.Op(program.OpSparseXent, program.Attrs{}, x, labels))
	b.Fetch("loss", b.Op(program.OpCast, program.Attrs{DType: program.Float32}, loss))
	b.Minimize(o, loss, b.Weights())
	p, err := b.Build()
	if err != nil {
		t.Fatalf("%+v in %s: %v", o, compute, err)
	}
	return p
}

// Every optimizer with every option brings the loss down, in every precision;
// and an overflow changes nothing but the loss scale.
func TestEveryOptimizerLearnsInEveryPrecision(t *testing.T) {
	options := []program.Optimizer{
		{},
		{Nesterov: true, Centered: true},
		{Momentum: 0.5},
		{Momentum: 0.5, Centered: true},
		{ClipNorm: 0.5},
		{LossScale: true},
		{LossScale: true, ClipNorm: 0.5, Centered: true},
	}
	for _, name := range program.Optimizers() {
		for _, o := range options {
			for _, d := range []program.DType{program.Float32, program.Float64, program.Float16, program.BFloat16} {
				o.Name, o.Rate = name, 0.05
				t.Run(fmt.Sprintf("%+v %s", o, d), func(t *testing.T) {
					m := newMachine(small(t, o, d))
					first := m.step(t)
					for range 28 {
						m.step(t)
					}
					if last := m.step(t); !(last < 0.9*first) {
						t.Errorf("loss %v at first, %v after 30 steps", first, last)
					}
					if o.LossScale {
						overflow(t, m)
					}
				})
			}
		}
	}
}

// overflow makes the next step's gradients infinite.
func overflow(t *testing.T, m *machine) {
	t.Helper()
	scale, steps := m.variable("loss_scale/current"), m.variable("loss_scale/good_steps")
	if s, n := kernel.Floats(scale)[0], kernel.Ints(steps)[0]; s != 1<<15 || n != 30 {
		t.Errorf("scale %v after %d good steps", s, n)
	}
	kernel.Floats(scale)[0] = float32(math.Inf(1))
	var before [][]byte
	for _, v := range m.vars {
		before = append(before, slices.Clone(v))
	}
	m.step(t)
	for i, v := range m.vars {
		name := m.p.Variables[i].Name
		if own := name == "loss_scale/current" || name == "loss_scale/good_steps"; !own && !slices.Equal(v, before[i]) {
			t.Errorf("%s changed in a step that overflowed", name)
		}
	}
	if n := kernel.Ints(steps)[0]; n != 0 {
		t.Errorf("%d good steps after a bad one", n)
	}
}

// A sparse update is the dense one on the rows that have a gradient: with
// plain SGD the same numbers altogether.
func TestSparseAndDenseUpdatesAgree(t *testing.T) {
	build := func(dense bool) *program.Program {
		b := program.NewBuilder("t", 1)
		table := b.Variable("table", program.Shape{9, 2}, program.Init{Kind: program.InitUniform, Scale: 1})
		ids := b.Const("ids", program.Int64, program.Shape{4}, 7)
		x := b.Op(program.OpSquare, program.Attrs{}, b.Op(program.OpGather, program.Attrs{}, table, ids))
		loss := b.Op(program.OpMean, program.Attrs{}, x)
		b.Fetch("loss", loss)
		grads := b.Derive(loss, program.None, []program.ValueID{table})
		if dense {
			grads = []program.Gradient{{Value: b.Densify(grads[0], b.Shape(table)), Indices: program.None}}
		}
		b.Optimize(program.Optimizer{Name: "sgd"}, []program.ValueID{table}, grads)
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	sparse, dense := newMachine(build(false)), newMachine(build(true))
	for range 3 {
		sparse.step(t)
		dense.step(t)
	}
	if a, b := kernel.Floats(sparse.vars[0]), kernel.Floats(dense.vars[0]); !slices.Equal(a, b) {
		t.Errorf("sparse %v, dense %v", a, b)
	}
}
