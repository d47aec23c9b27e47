package kernel_test

import (
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
)

// machine runs a program naively: node by node, every value in memory of its
// own, all of it made ahead.
type machine struct {
	p        *program.Program
	values   [][]byte
	vars     [][]byte
	calls    []kernel.Call
	numerics bool
}

func newMachine(tb testing.TB, p *program.Program, seed uint64) *machine {
	tb.Helper()
	m := &machine{p: p}
	for id := range p.Variables {
		m.vars = append(m.vars, firstValue(p, program.VariableID(id), seed))
	}
	for i := range p.Values {
		v := &p.Values[i]
		if v.Variable != program.None {
			m.values = append(m.values, m.vars[v.Variable])
			continue
		}
		m.values = append(m.values, memory(v.Bytes()))
	}
	for i := range p.Nodes {
		m.calls = append(m.calls, m.call(tb, &p.Nodes[i], seed))
	}
	return m
}

// memory is aligned to any number.
func memory(bytes int64) []byte { return kernel.Bytes(make([]int64, (bytes+7)/8)) }

func firstValue(p *program.Program, id program.VariableID, seed uint64) []byte {
	v := &p.Variables[id]
	b := memory(v.Bytes())
	n := v.Shape.Elements()
	switch v.DType {
	case program.Float32:
		p.Fill(kernel.Floats(b)[:n], id, seed)
	case program.Float64:
		p.Fill64(kernel.Doubles(b)[:n], id, seed)
	case program.Float16, program.BFloat16:
		x := make([]float32, n)
		p.Fill(x, id, seed)
		storeFloats(b, v.DType, widened(x))
	default: // counters begin at 0
	}
	return b
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// call prepares the call of one node.
func (m *machine) call(tb testing.TB, n *program.Node, seed uint64) kernel.Call {
	tb.Helper()
	def, err := program.Lookup(n.Op)
	if err != nil {
		tb.Fatal(err)
	}
	c := kernel.Call{Program: m.p, Node: n, Seed: seed}
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
		c.Temp = memory(def.Workspace(m.p, n))
	}
	return c
}

// step runs all nodes in order.
func (m *machine) step(tb testing.TB) {
	tb.Helper()
	for i := range m.calls {
		m.calls[i].CheckNumerics = m.numerics
		if err := kernel.Run(&m.calls[i]); err != nil {
			tb.Fatal(err)
		}
	}
}

// advance makes the next step another one to random ops.
func (m *machine) advance() {
	for i := range m.calls {
		m.calls[i].Step++
	}
}

// floats gives a float32 value's elements.
func (m *machine) floats(v program.ValueID) []float32 {
	return kernel.Floats(m.values[v])[:m.p.Values[v].Shape.Elements()]
}

// fetched gives the value fetched under a name.
func (m *machine) fetched(tb testing.TB, name string) program.ValueID {
	tb.Helper()
	for _, f := range m.p.Fetches {
		if f.Name == name {
			return f.Value
		}
	}
	tb.Fatalf("nothing is fetched as %q", name)
	return program.None
}

// fetch gives the float32 value fetched under a name.
func (m *machine) fetch(tb testing.TB, name string) []float32 {
	tb.Helper()
	return m.floats(m.fetched(tb, name))
}

// numbers gives the float64 value fetched under a name.
func (m *machine) numbers(tb testing.TB, name string) []float64 {
	tb.Helper()
	v := m.fetched(tb, name)
	return kernel.Doubles(m.values[v])[:m.p.Values[v].Shape.Elements()]
}

// ints gives an int64 value's elements.
func (m *machine) ints(v program.ValueID) []int64 {
	return kernel.Ints(m.values[v])[:m.p.Values[v].Shape.Elements()]
}

// loadFloats and storeFloats convert between memory of any type and float64.
func loadFloats(b []byte, t program.DType, n int64) []float64 {
	out := make([]float64, n)
	for i := range out {
		switch t {
		case program.Float32:
			out[i] = float64(kernel.Floats(b)[i])
		case program.Float64:
			out[i] = kernel.Doubles(b)[i]
		case program.Int32:
			out[i] = float64(int32(uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24))
		case program.Int64:
			out[i] = float64(kernel.Ints(b)[i])
		case program.Uint8, program.Bool:
			out[i] = float64(b[i])
		default:
			var w [1]float32
			kernel.Widen(w[:], []uint16{uint16(b[2*i]) | uint16(b[2*i+1])<<8}, t)
			out[i] = float64(w[0])
		}
	}
	return out
}

func storeFloats(b []byte, t program.DType, x []float64) {
	for i, v := range x {
		switch t {
		case program.Float32:
			kernel.Floats(b)[i] = float32(v)
		case program.Float64:
			kernel.Doubles(b)[i] = v
		case program.Int32:
			u := uint32(int32(v))
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(u), byte(u>>8), byte(u>>16), byte(u>>24)
		case program.Int64:
			kernel.Ints(b)[i] = int64(v)
		case program.Uint8, program.Bool:
			b[i] = byte(v)
		default:
			var h [1]uint16
			kernel.Round(h[:], []float32{kernel.ToOdd(v)}, t)
			b[2*i], b[2*i+1] = byte(h[0]), byte(h[0]>>8)
		}
	}
}
