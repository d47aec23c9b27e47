package runtime

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/shared/program"
)

// step is one action of a random program, on tensors and variables by number.
type step struct {
	op     program.Op
	x, y   int
	device string
	what   byte // 'o' op, 'r' release, 'v' assign a variable, 'V' read one
}

const (
	side      = 3
	variables = 2
)

// randomProgram makes a program whose every step is possible.
func randomProgram(rng *rand.Rand, steps int) []step {
	var out []step
	live := []int{0, 1}
	next := 2
	pick := func() int { return live[rng.IntN(len(live))] }
	devices := []string{"", "/CPU:0", "/GPU:0", "/GPU:1"}
	ops := []program.Op{program.OpAdd, program.OpSub, program.OpMaximum, program.OpMatMul, program.OpTanh, program.OpRelu, program.OpIdentity}
	for range steps {
		s := step{x: pick(), y: pick(), device: devices[rng.IntN(len(devices))]}
		switch n := rng.IntN(10); {
		case n < 6:
			s.what, s.op = 'o', ops[rng.IntN(len(ops))]
			live = append(live, next)
			next++
		case n < 8 && len(live) > 2:
			s.what = 'r'
			live = slices.DeleteFunc(live, func(i int) bool { return i == s.x })
		case n < 9:
			s.what, s.y = 'v', rng.IntN(variables)
		default:
			s.what, s.y = 'V', rng.IntN(variables)
			live = append(live, next)
			next++
		}
		out = append(out, s)
	}
	return out
}

// perform runs a program and gives the elements of all that is left.
func perform(rt *Runtime, steps []step, ts map[int]*Tensor, vs []*Variable) ([]*Tensor, error) {
	next := 2
	for i, s := range steps {
		err := func() (err error) {
			switch s.what {
			case 'r':
				ts[s.x].Release()
				delete(ts, s.x)
				return nil
			case 'v':
				return rt.Assign(vs[s.y], ts[s.x])
			case 'V':
				ts[next], err = rt.Read(vs[s.y])
			default:
				in := []*Tensor{ts[s.x], ts[s.y]}
				if d, _ := program.Lookup(s.op); s.op == program.OpTanh || s.op == program.OpRelu || d.Alias {
					in = in[:1]
				}
				run := func() error {
					out, err := rt.Op(s.op, plain, in...)
					if err == nil {
						ts[next] = out[0]
					}
					return err
				}
				if s.device == "" {
					err = run()
				} else {
					err = rt.On(s.device, run)
				}
			}
			next++
			return err
		}()
		if err != nil {
			return nil, fmt.Errorf("step %d, %+v: %w", i, s, err)
		}
	}
	var left []*Tensor
	for i := range next {
		if ts[i] != nil {
			left = append(left, ts[i])
		}
	}
	for _, v := range vs {
		x, err := rt.Read(v)
		if err != nil {
			return nil, err
		}
		left = append(left, x)
	}
	return left, nil
}

// Whatever a program does and wherever it runs, its numbers are those of one
// CPU, and all memory comes back.
func TestRandomProgramsAgreeAndGiveAllMemoryBack(t *testing.T) {
	for seed := range uint64(40) {
		steps := randomProgram(rand.New(rand.NewPCG(seed, 7)), 60)
		var want [][]float32
		for _, how := range []string{"cpu", "gpus", "function"} {
			cards := 2
			if how == "cpu" {
				cards = 0
			}
			rt, _ := newRuntime(t, gpus(cards))
			var vs []*Variable
			for i := range variables {
				v, err := rt.NewVariable(fmt.Sprintf("v%d", i), VariableOptions{Shape: program.Shape{side, side}})
				ok(t, err)
				vs = append(vs, v)
			}
			elements := make([]float32, side*side)
			for i := range elements {
				elements[i] = float32(i%5)/4 - 0.5
			}
			a := floats(t, rt, elements, side, side)
			b := Must(rt.Square(a))
			var left []*Tensor
			var err error
			if how == "function" {
				f := rt.Function("program", func(args ...any) ([]*Tensor, error) {
					return perform(rt, steps, map[int]*Tensor{0: args[0].(*Tensor), 1: args[1].(*Tensor)}, vs)
				})
				left, err = f.Call(a, b)
				a.Release()
				b.Release()
				defer f.Release()
			} else {
				left, err = perform(rt, steps, map[int]*Tensor{0: a, 1: b}, vs)
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, how, err)
			}
			var got [][]float32
			for _, x := range left {
				v, err := Read[float32](x)
				ok(t, err)
				got = append(got, v)
				x.Release()
			}
			for _, v := range vs {
				v.Release()
			}
			if want == nil {
				want = got
			}
			if !slices.EqualFunc(got, want, close32) {
				t.Errorf("seed %d, %s: %v, want %v", seed, how, got, want)
			}
			for i := range cards {
				if m := info(t, rt, fmt.Sprintf("GPU:%d", i)); m.Current > baseline {
					t.Errorf("seed %d, %s: %d bytes of GPU:%d are not given back", seed, how, m.Current, i)
				}
			}
			rt.Close()
		}
	}
}

// Gradients are the same by a tape over ops, by a tape within a function, and
// by a tape that looks into one.
func TestRandomGradientsAgree(t *testing.T) {
	for seed := range uint64(60) {
		steps := slices.DeleteFunc(randomProgram(rand.New(rand.NewPCG(seed, 11)), 25), func(s step) bool { return s.what != 'o' })
		for i := range steps { // what was released or read is not there
			steps[i].x, steps[i].y = steps[i].x%(i+2), steps[i].y%(i+2)
		}
		elements := []float32{0.3, -0.2, 0.1, 0.25, -0.35, 0.05, 0.15, -0.1, 0.2}
		var want [][]float32
		for _, how := range []string{"eager", "within", "over"} {
			rt, _ := newRuntime(t, gpus(2))
			w, err := rt.NewVariable("w", VariableOptions{Shape: program.Shape{side, side}, Values: BytesOf(elements)})
			ok(t, err)
			a := floats(t, rt, elements, side, side)
			forward := func(args ...any) ([]*Tensor, error) {
				left, err := perform(rt, steps, map[int]*Tensor{0: args[0].(*Tensor), 1: Must(rt.Read(w))}, nil)
				if err != nil {
					return nil, err
				}
				y := Must(rt.Sum(left[len(left)-1]))
				for _, x := range left {
					y = Must(rt.Add(y, Must(rt.Mean(Must(rt.Square(x))))))
				}
				return []*Tensor{y}, nil
			}
			derive := func(args ...any) ([]*Tensor, error) {
				x := args[0].(*Tensor)
				tape := rt.Tape(false)
				tape.Watch(x)
				run := forward
				if how == "over" {
					run = rt.Function("f", forward).Call
				}
				y, err := run(x)
				if err != nil {
					return nil, err
				}
				return tape.Gradient(y[0], x, w)
			}
			var g []*Tensor
			if how == "within" {
				g, err = rt.Function("f", derive).Call(a)
			} else {
				g, err = derive(a)
			}
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, how, err)
			}
			var got [][]float32
			for _, x := range g {
				v, err := Read[float32](x)
				ok(t, err)
				got = append(got, v)
			}
			if want == nil {
				want = got
			}
			near := func(a, b []float32) bool {
				return slices.EqualFunc(a, b, func(x, y float32) bool { return max(x-y, y-x) <= 1e-4*max(1, x, -x) })
			}
			if !slices.EqualFunc(got, want, near) {
				t.Errorf("seed %d, %s: %v, want %v", seed, how, got, want)
			}
			rt.Close()
		}
	}
}
