package exec_test

import (
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/check"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
)

// random adds a program of elementwise ops, reductions, aliases and broadcasts
// in which values are read any number of times, also none.
func random(b *program.Builder, r *rand.Rand) {
	values := []program.ValueID{
		b.Input("x", program.Float32, program.Shape{64, 128}),
		b.Input("y", program.Float32, program.Shape{64, 128}),
		b.Const("c", program.Float32, program.Shape{64, 128}, 2),
		b.Const("s", program.Float32, nil, 3),
		b.Variable("w", program.Shape{64, 128}, program.Init{Kind: program.InitUniform, Scale: 1}),
	}
	pick := func() program.ValueID { return values[r.IntN(len(values))] }
	for range 5 + r.IntN(25) {
		v := pick()
		shape := b.Shape(v)
		switch r.IntN(7) {
		case 0:
			v = b.Op(program.OpRelu, program.Attrs{}, v)
		case 1:
			v = b.Op(program.OpTanh, program.Attrs{}, v)
		case 2:
			v = b.Op(program.OpAdd, program.Attrs{}, v, pick())
		case 3:
			v = b.Op(program.OpMul, program.Attrs{}, pick(), v)
		case 4:
			v = b.Op(program.OpIdentity, program.Attrs{}, v)
		case 5:
			v = b.Op(program.OpReshape, program.Attrs{Shape: shape}, v)
		default:
			if len(shape) == 0 {
				v = b.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{64, 128}}, v)
			} else {
				v = b.Op(program.OpSum, program.Attrs{}, v)
			}
		}
		values = append(values, v)
	}
	b.Fetch("one", values[len(values)-1])
	b.Fetch("two", pick())
}

// Whatever the program and wherever its ops go: the judge finds nothing, and
// after every step only variables, constants, the scratch chunk and an eager
// loop's batch are left.
func TestRandomProgramsLeakNothing(t *testing.T) {
	for seed := range uint64(150) {
		for _, m := range []exec.Mode{exec.Eager, exec.Graph, exec.Planned} {
			r := rand.New(rand.NewPCG(seed, 1))
			b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
			rules := []place.Rule{{Match: "Relu*", Device: "/CPU:0"}, {Match: "*_2", Device: "/CPU:0"}}
			p := b.compile(func(pb *program.Builder) { random(pb, r) }, rules[:r.IntN(3)]...)
			var use [2][4]int64
			for i := range 4 {
				b.step(p)
				for dev := range 2 {
					use[dev][i] = b.rt.Stats(event.DeviceID(dev)).InUse
				}
			}
			for dev := range 2 {
				if use[dev][1] != use[dev][3] {
					t.Errorf("seed %d, %s: device %d holds %d bytes after the second step, %d after the fourth", seed, m, dev, use[dev][1], use[dev][3])
				}
			}
			j := check.New(func(_ event.DeviceID, a event.AllocatorID) check.Rules {
				if b.allocators[a] == "GPU_0_bfc" {
					return check.BFC(64 * mib)
				}
				return check.Rules{}
			}, b.strings)
			for i := range b.events {
				j.Emit(&b.events[i])
			}
			if err := j.Err(); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, m, err)
			}
		}
	}
}
