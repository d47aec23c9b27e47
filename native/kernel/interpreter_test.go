package kernel_test

import (
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
)

// machine runs a program naively: node by node, every value in memory of its
// own, all of it made ahead.
type machine struct {
	p      *program.Program
	values [][]byte
	vars   [][]float32
	calls  []kernel.Call
}

func newMachine(tb testing.TB, p *program.Program, seed uint64) *machine {
	tb.Helper()
	m := &machine{p: p}
	for id := range p.Variables {
		v := make([]float32, p.Variables[id].Shape.Elements())
		p.Fill(v, program.VariableID(id), seed)
		m.vars = append(m.vars, v)
	}
	for i := range p.Values {
		v := &p.Values[i]
		if v.Variable != program.None {
			m.values = append(m.values, kernel.Bytes(m.vars[v.Variable]))
			continue
		}
		m.values = append(m.values, kernel.Bytes(make([]int64, (v.Bytes()+7)/8)))
	}
	for i := range p.Nodes {
		m.calls = append(m.calls, m.call(tb, &p.Nodes[i]))
	}
	return m
}

// call prepares the call of one node.
func (m *machine) call(tb testing.TB, n *program.Node) kernel.Call {
	tb.Helper()
	def, err := program.Lookup(n.Op)
	if err != nil {
		tb.Fatal(err)
	}
	c := kernel.Call{Program: m.p, Node: n}
	for _, v := range n.Inputs {
		c.In = append(c.In, m.values[v])
	}
	for _, v := range n.Outputs {
		if def.Alias {
			m.values[v] = m.values[n.Inputs[0]]
		}
		c.Out = append(c.Out, m.values[v])
	}
	if def.Workspace != nil {
		c.Temp = kernel.Bytes(make([]int64, (def.Workspace(m.p, n)+7)/8))
	}
	return c
}

func (m *machine) step(tb testing.TB) {
	tb.Helper()
	for i := range m.calls {
		if err := kernel.Run(&m.calls[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

// floats gives a value's elements.
func (m *machine) floats(v program.ValueID) []float32 {
	return kernel.Floats(m.values[v])[:m.p.Values[v].Shape.Elements()]
}

// fetch gives the value fetched under a name.
func (m *machine) fetch(tb testing.TB, name string) []float32 {
	tb.Helper()
	for _, f := range m.p.Fetches {
		if f.Name == name {
			return m.floats(f.Value)
		}
	}
	tb.Fatalf("nothing is fetched as %q", name)
	return nil
}

// ints gives a value's elements.
func (m *machine) ints(v program.ValueID) []int64 {
	return kernel.Ints(m.values[v])[:m.p.Values[v].Shape.Elements()]
}
