package vgpu_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"tideline/native/backend/vgpu"
	"tideline/native/kernel"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
)

// numbers feeds two images of made-up numbers.
type numbers struct{}

func (numbers) Next(t int64) (exec.Batch, error) {
	return exec.Batch{Ready: t, Input: func(i int, dst []byte) error {
		for j, f := 0, kernel.Floats(dst); j < len(f); j++ {
			f[j] = float32((j*7+i*3)%11) - 5
		}
		return nil
	}}, nil
}

func (numbers) Pending() int64 { return math.MaxInt64 }

func (numbers) Advance(int64) {}

// randomProgram has values that are read many times or never, shared buffers,
// ops in place, and fetches the sums of its last values.
func randomProgram(t *testing.T, r *rand.Rand) *program.Program {
	t.Helper()
	b := program.NewBuilder("random", 1)
	shape := program.Shape{16, 24}
	values := []program.ValueID{
		b.Input("x", program.Float32, shape), b.Input("y", program.Float32, shape),
		b.Const("c", program.Float32, shape, 0.5), b.Const("s", program.Float32, nil, -0.75),
		b.Variable("w", shape, program.Init{Kind: program.InitUniform, Scale: 1}),
	}
	pick := func() program.ValueID { return values[r.IntN(len(values))] }
	w := values[len(values)-1]
	for range 6 + r.IntN(20) {
		v := pick()
		switch r.IntN(10) {
		case 6:
			b.Op([]program.Op{program.OpAssign, program.OpAssignAdd, program.OpAssignSub}[r.IntN(3)], program.Attrs{}, w, values[r.IntN(3)])
			continue
		case 8:
			n := b.Op(program.OpShape, program.Attrs{}, v)
			v = b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpCast, program.Attrs{DType: program.Float32}, n))
		case 9:
			c := b.Op(program.OpCast, program.Attrs{DType: program.Int32}, v)
			v = b.Op(program.OpCast, program.Attrs{DType: program.Float32}, b.Op(program.OpAdd, program.Attrs{}, c, c))
		case 7:
			v = b.Op(program.OpSwapIn, program.Attrs{}, b.Op(program.OpSwapOut, program.Attrs{}, v))
		case 0:
			v = b.Op(program.OpRelu, program.Attrs{}, v)
		case 1:
			v = b.Op(program.OpTanh, program.Attrs{}, v)
		case 2:
			v = b.Op(program.OpAdd, program.Attrs{}, v, pick())
		case 3:
			v = b.Op(program.OpSub, program.Attrs{}, pick(), v)
		case 4:
			v = b.Op(program.OpReshape, program.Attrs{Shape: b.Shape(v)}, v)
		default:
			v = b.Op(program.OpMean, program.Attrs{}, v)
		}
		values = append(values, v)
	}
	for _, v := range values[len(values)-3:] {
		b.Fetch("m", b.Op(program.OpMean, program.Attrs{}, v))
	}
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// naive computes the fetches of the third step with every value in memory of
// its own. All that reads a variable sees what it was when the step began.
func naive(t *testing.T, p *program.Program) []float64 {
	t.Helper()
	values := make([][]byte, len(p.Values))
	for i := range p.Values {
		values[i] = kernel.Bytes(make([]int64, (p.Values[i].Bytes()+7)/8))
	}
	b, _ := numbers{}.Next(0)
	for i, v := range p.Inputs {
		if err := b.Input(i, values[v]); err != nil {
			t.Fatal(err)
		}
	}
	next := make([][]byte, len(p.Variables))
	for i := range p.Variables {
		next[i] = kernel.Bytes(make([]int64, (p.Variables[i].Bytes()+7)/8))
		p.Fill(kernel.Floats(next[i]), program.VariableID(i), 1)
	}
	for range 3 {
		step(t, p, values, next)
	}
	var out []float64
	for _, f := range p.Fetches {
		out = append(out, float64(kernel.Floats(values[f.Value])[0]))
	}
	return out
}

func step(t *testing.T, p *program.Program, values, next [][]byte) {
	t.Helper()
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == program.OpVariable {
			copy(values[n.Outputs[0]], next[n.Attrs.Variable])
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == program.OpVariable {
			continue
		}
		c := kernel.Call{Program: p, Node: n}
		for k, v := range n.Inputs {
			c.In = append(c.In, values[v])
			if d, _ := program.Lookup(n.Op); k == 0 && d.Stateful {
				c.In[0] = next[n.Attrs.Variable]
			}
		}
		for _, v := range n.Outputs {
			c.Out = append(c.Out, values[v])
		}
		if err := kernel.Run(&c); err != nil {
			t.Fatal(err)
		}
	}
}

func onCard(t *testing.T, p *program.Program, mode exec.Mode, rules []place.Rule) []exec.Metric {
	t.Helper()
	preset, _ := device.Find("lab-256m")
	card, err := device.NewMachine(nil).Card("card", preset)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := exec.New(exec.Config{
		Mode: mode, Backend: vgpu.New(), Strings: new(event.Strings), Seed: 1,
		Devices: []*device.Logical{
			{Name: device.Local("CPU", 0), Model: device.HostModel()},
			{Name: device.Local("GPU", 0), Model: preset.Model(), Card: card, Limit: 8 << 20, Alone: 8 << 20},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	err = rt.Attach(0, false, func(o alloc.Observer) (alloc.Allocator, error) { return system.New(system.Options{Observer: o}), nil }, nil)
	if err == nil {
		err = rt.Attach(1, false, func(o alloc.Observer) (alloc.Allocator, error) {
			s, err := card.Space(1 << 40)
			if err != nil {
				return nil, err
			}
			return bfc.New(s, bfc.Options{Name: "GPU_0_bfc", Limit: 8 << 20, Growth: true, Observer: o})
		}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	plan, err := rt.Compile(p, rules, true)
	if err != nil {
		t.Fatal(err)
	}
	var m []exec.Metric
	for step := range int32(3) {
		if m, err = rt.Step(plan, step, numbers{}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Memory is shared, taken over in place, freed and handed out again while the
// device has not yet run; none of it may change a number.
func TestRandomProgramsComputeTheSameInAnyMemory(t *testing.T) {
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := randomProgram(t, r)
		want := naive(t, p)
		rules := []place.Rule{{Match: "Relu*", Device: "/CPU:0"}, {Match: "*_1", Device: "/CPU:0"}}[:r.IntN(3)]
		for _, mode := range []exec.Mode{exec.Graph, exec.Eager, exec.Planned} {
			got := onCard(t, p, mode, rules)
			if len(got) != len(want) {
				t.Fatalf("seed %d: %d numbers, want %d", seed, len(got), len(want))
			}
			for i, m := range got {
				if m.Value != want[i] && !(math.IsNaN(m.Value) && math.IsNaN(want[i])) {
					t.Errorf("seed %d, %s, %d rules: fetch %d is %v, want %v", seed, mode, len(rules), i, m.Value, want[i])
				}
			}
		}
	}
}
