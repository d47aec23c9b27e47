package zoo

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"tideline/native/kernel"
	"tideline/shared/program"
)

// run is a program in memory of its own, every value apart.
type run struct {
	built     *Built
	values    [][]byte
	variables [][]byte
	calls     []kernel.Call
}

func as[T any](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// memory is n bytes that hold numbers.
func memory(n int64) []byte {
	words := make([]int64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
}

func newRun(tb testing.TB, b *Built) *run {
	tb.Helper()
	p := b.Program
	r := &run{built: b}
	for i := range p.Variables {
		r.variables = append(r.variables, memory(p.Variables[i].Bytes()))
	}
	for i := range p.Values {
		if v := &p.Values[i]; v.Variable != program.None {
			r.values = append(r.values, r.variables[v.Variable])
		} else {
			r.values = append(r.values, memory(v.Bytes()))
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		d, err := program.Lookup(n.Op)
		if err != nil {
			tb.Fatal(err)
		}
		c := kernel.Call{Program: p, Node: n}
		for _, v := range n.Inputs {
			c.In = append(c.In, r.values[v])
		}
		for _, v := range n.Outputs {
			if d.Alias {
				r.values[v] = r.values[n.Inputs[0]]
			}
			c.Out = append(c.Out, r.values[v])
		}
		if d.Workspace != nil {
			c.Temp = memory(d.Workspace(p, n))
		}
		r.calls = append(r.calls, c)
	}
	return r
}

// fill gives variables their first values, all of them a little off, and
// inputs what their description allows.
func (r *run) fill(rnd *rand.Rand) {
	p := r.built.Program
	for i := range p.Variables {
		v := &p.Variables[i]
		for j := range as[float64](r.variables[i]) {
			x := 0.1 * rnd.Float64()
			switch v.Init.Kind {
			case program.InitUniform:
				x = (2*rnd.Float64() - 1) * v.Init.Scale
			case program.InitConstant:
				x += v.Init.Scale
			default:
			}
			as[float64](r.variables[i])[j] = x
		}
	}
	for i, id := range p.Inputs {
		for j := range p.Values[id].Shape.Elements() {
			switch p.Values[id].DType {
			case program.Int32:
				as[int32](r.values[id])[j] = int32(rnd.Int64N(r.built.Inputs[i].Below))
			case program.Int64:
				as[int64](r.values[id])[j] = rnd.Int64N(r.built.Inputs[i].Below)
			default:
				as[float32](r.values[id])[j] = rnd.Float32()
			}
		}
	}
}

// until computes the phases up to ph, moving no statistics, and gives the loss.
func (r *run) until(tb testing.TB, ph program.Phase) float64 {
	tb.Helper()
	for i := range r.calls {
		c := &r.calls[i]
		if c.Node.Phase > ph || c.Node.Op == program.OpAssignMovingAverage {
			continue
		}
		if err := kernel.Run(c); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range r.built.Program.Values {
		if r.built.Program.Values[i].Name == "loss/Mean" {
			return as[float64](r.values[i])[0]
		}
	}
	tb.Fatal("no loss")
	return 0
}

// gradients gives that of each variable, the sum of its rows where it is sparse.
func (r *run) gradients(tb testing.TB) map[program.VariableID][]float64 {
	tb.Helper()
	out := map[program.VariableID][]float64{}
	p := r.built.Program
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Phase != program.Update || n.Attrs.Variable == program.None {
			continue
		}
		g := make([]float64, p.Variables[n.Attrs.Variable].Shape.Elements())
		from := as[float64](r.values[n.Inputs[2]])
		if n.Op == program.OpSparseApplySGD {
			width := p.Variables[n.Attrs.Variable].Shape[1]
			for i, row := range as[int64](r.values[n.Inputs[3]])[:int64(len(from))/width] {
				for j := range width {
					g[row*width+j] += from[int64(i)*width+j]
				}
			}
		} else {
			copy(g, from)
		}
		out[n.Attrs.Variable] = g
	}
	return out
}

// Small relatives of every family, in float64: the largest element and one
// other of each variable's gradient against the slope of the loss.
func TestGradientsOfAllFamilies(t *testing.T) {
	tiny := transformer{layers: 2, width: 16, heads: 2, positions: 8}
	long := tiny
	long.longGelu = true
	images := Range{16, 16, 64, 16}
	models := []Model{
		{Name: "decoder", Kind: Tokens, Task: NextToken, Sequence: Range{5, 1, 8, 0}, Vocabulary: 17, layers: tiny.decoder},
		{Name: "vision", Image: Range{32, 16, 64, 16}, Channels: 3, Classes: digits, layers: tiny.vision},
		bert("encoder", "", long, 11, 5),
		bert("encoder of simple ops", "", tiny.simple(), 11, 5),
		{Name: "basic blocks", Image: images, Channels: 3, Classes: digits, layers: resnet{blocks: [4]int{0, 1}, basic: true}.layers},
		{Name: "bottlenecks", Image: images, Channels: 3, Classes: digits, layers: resnet{blocks: [4]int{1}, bias: true}.layers},
		{Name: "late strides", Image: images, Channels: 3, Classes: digits, layers: resnet{blocks: [4]int{0, 1}, late: true}.layers},
		{Name: "lstm", Kind: Tokens, Task: NextToken, Sequence: Range{4, 1, 8, 0}, Vocabulary: 13, layers: lstm},
	}
	for _, name := range []string{"mlp-8", "conv-2"} {
		m, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, *m)
	}
	for i := range models {
		m := &models[i]
		t.Run(m.Name, func(t *testing.T) {
			b, err := m.build(Options{Batch: 3, Train: true, Optimizer: "sgd", Precision: "float64", NoDropout: true})
			if err != nil {
				t.Fatal(err)
			}
			checkGradients(t, newRun(t, b), rand.New(rand.NewPCG(1, 2)))
		})
	}
}

func checkGradients(t *testing.T, r *run, rnd *rand.Rand) {
	t.Helper()
	const step, least = 1e-6, 1e-6
	r.fill(rnd)
	r.until(t, program.Backward)
	grads := r.gradients(t)
	for id := range r.built.Program.Variables { // in their order: the numbers drawn depend on it
		g := grads[program.VariableID(id)]
		if g == nil {
			continue
		}
		largest := 0
		for j := range g {
			if math.Abs(g[j]) > math.Abs(g[largest]) {
				largest = j
			}
		}
		for _, j := range []int{largest, rnd.IntN(len(g))} {
			x := as[float64](r.variables[id])
			was := x[j]
			x[j] = was + step
			up := r.until(t, program.Forward)
			x[j] = was - step
			down := r.until(t, program.Forward)
			x[j] = was
			if want := (up - down) / (2 * step); math.Abs(g[j]-want) > 0.01*math.Abs(want)+least {
				t.Errorf("%s[%d]: gradient %v, slope %v", r.built.Program.Variables[id].Name, j, g[j], want)
			}
		}
	}
}
