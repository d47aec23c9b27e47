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
	w := values[len(values)-1]
	for range 5 + r.IntN(25) {
		v := pick()
		shape := b.Shape(v)
		switch r.IntN(13) {
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
		case 7:
			v = b.Op(program.OpSwapIn, program.Attrs{}, b.Op(program.OpSwapOut, program.Attrs{}, v))
		case 8:
			b.Op([]program.Op{program.OpAssign, program.OpAssignAdd, program.OpAssignSub}[r.IntN(3)], program.Attrs{}, w, values[r.IntN(3)])
			continue
		case 9:
			b.Op(program.OpShape, program.Attrs{}, v)
			continue
		case 10:
			if len(shape) == 0 {
				continue
			}
			parts := b.Node(program.OpSplit, program.Attrs{Axes: []int64{0, 16}}, v) // of which one is used
			v = b.Op(program.OpTile, program.Attrs{Axes: []int64{16, 1}}, parts[r.IntN(16)])
		case 11:
			c := b.Op(program.OpCast, program.Attrs{DType: program.Int32}, v)
			v = b.Op(program.OpCast, program.Attrs{DType: program.Float32}, b.Op(program.OpAdd, program.Attrs{}, c, c))
		case 12:
			v = b.Op(program.OpDropout, program.Attrs{Value: 0.5, Seed: 1}, v)
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
			b := newBenchWith(t, 64*mib, func(c *exec.Config) {
				c.Mode = m
				c.FreeTapeGradually = seed%2 == 0
				c.Async = seed%8 == 5
				c.DeferredDeletion = int64(seed%3) << 15
				c.PrefetchToDevice = int(seed % 5)
				c.ForceGPUCompatible = seed%7 == 0
				if seed%4 == 3 {
					c.Timestamps = &exec.Timestamps{MaxBytes: 1 << 16, MaxPending: 3}
				}
			})
			rules := []place.Rule{{Match: "Relu*", Device: "/CPU:0"}, {Match: "*_2", Device: "/CPU:0"}}
			p := b.compile(func(pb *program.Builder) { random(pb, r) }, rules[:r.IntN(3)]...)
			var use [2][4]int64
			for i := range 4 {
				b.step(p)
				for dev := range 2 {
					use[dev][i] = b.requested(event.DeviceID(dev))
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

// requested is the sum of what all live blocks of a device were asked for. The
// chunks that hold them may differ from step to step.
func (b *bench) requested(dev event.DeviceID) int64 {
	type place struct {
		a    event.AllocatorID
		addr uint64
	}
	live, sum := map[place]int64{}, int64(0)
	for _, e := range b.events {
		if e.Device != dev {
			continue
		}
		at := place{e.Allocator, e.Address}
		switch e.Kind {
		case event.Alloc:
			live[at] = e.Requested
			sum += e.Requested
		case event.Free:
			sum -= live[at]
			delete(live, at)
		default:
		}
	}
	return sum
}
