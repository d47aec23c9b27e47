package exec_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
)

// run makes a bench in a mode and runs a small program on it once.
func run(t *testing.T, m exec.Mode, build func(*program.Builder), rules ...place.Rule) *bench {
	t.Helper()
	b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
	b.step(b.compile(build, rules...))
	return b
}

// at is the position of the first event told that reads so, -1 for none.
func at(told []string, what string) int { return slices.Index(told, what) }

func TestATensorWithoutElementsAllocatesNothing(t *testing.T) {
	for _, m := range allModes {
		b := run(t, m, func(b *program.Builder) {
			x := b.Input("x", program.Float32, program.Shape{0, 4096})
			b.Fetch("y", b.Op(program.OpTanh, program.Attrs{}, x))
		})
		for _, e := range b.events {
			if e.Kind == event.Alloc && b.strings.At(e.Tensor) != "scratch" || e.Kind == event.TransferBegin {
				t.Errorf("%s: %s of %s, %d bytes", m, e.Kind, b.strings.At(e.Tensor), e.Size)
			}
		}
	}
}

func TestViewsShareTheirBuffer(t *testing.T) {
	for _, m := range allModes {
		b := run(t, m, func(b *program.Builder) {
			x := b.Op(program.OpIdentity, program.Attrs{}, b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{mib / 4, 1}}, b.Input("x", program.Float32, oneMiB)))
			b.Fetch("y", b.Op(program.OpStopGradient, program.Attrs{}, x))
		})
		if got := b.peak(gpu); got != 1 {
			t.Errorf("%s: peak of %d buffers, want 1: all are views of x", m, got)
		}
	}
}

func TestEagerChainHeldAndNotHeld(t *testing.T) {
	three := func(all bool) func(*program.Builder) {
		return func(b *program.Builder) {
			x := b.Const("a", program.Float32, oneMiB, 1)
			y := b.Op(program.OpRelu, program.Attrs{}, x)
			z := b.Op(program.OpRelu, program.Attrs{}, y)
			if all {
				b.Fetch("a", x)
				b.Fetch("b", y)
			}
			b.Fetch("c", z)
		}
	}
	if got := run(t, exec.Eager, three(true)).peak(gpu); got != 3 {
		t.Errorf("a, b and c held: peak of %d buffers, want 3", got)
	}
	b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode, c.Keep = exec.Eager, []string{"Relu_1"} })
	b.step(b.compile(three(false)))
	if got := b.peak(gpu); got != 2 {
		t.Errorf("only c held: peak of %d buffers, want 2", got)
	}
	if got := b.live(gpu); got != 1 {
		t.Errorf("only c held: %d buffers at the end, want 1", got)
	}
}

// normalised is a batch normalisation of an image, with its weights.
func normalised(b *program.Builder, x program.ValueID, c int64) program.ValueID {
	one := program.Init{Kind: program.InitConstant, Scale: 1}
	w := func(name string) program.ValueID { return b.Variable(name, program.Shape{c}, one) }
	return b.Op(program.OpFusedBatchNorm, program.Attrs{Value: 1e-3, Training: true}, x, w("scale"), w("offset"), w("mean"), w("variance"))
}

func TestReluTakesOverABatchNormInTrainingAndGeluDoesNot(t *testing.T) {
	forward := func(op program.Op, after func(b *program.Builder, x program.ValueID) program.ValueID) []string {
		b := run(t, exec.Graph, func(b *program.Builder) {
			shape := program.Shape{4, 64, 64, 16} // 1 MiB
			k := b.Variable("k", program.Shape{3, 3, 16, 16}, program.Init{Kind: program.InitUniform, Scale: 1})
			x := b.Op(program.OpConv2D, program.Attrs{Strides: [2]int64{1, 1}, Padding: program.Same}, b.Input("x", program.Float32, shape), k)
			y := b.Op(op, program.Attrs{}, normalised(b, x, 16))
			loss := b.Op(program.OpMean, program.Attrs{}, after(b, y))
			b.Fetch("loss", loss)
			for _, g := range b.Gradients(loss, []program.ValueID{k}) {
				b.Fetch("g", b.Op(program.OpSum, program.Attrs{}, g))
			}
		})
		return b.told(gpu, event.Alloc, event.Forward)
	}
	conv := func(b *program.Builder, x program.ValueID) program.ValueID {
		w := b.Variable("w", program.Shape{3, 3, 16, 16}, program.Init{Kind: program.InitUniform, Scale: 1})
		return b.Op(program.OpConv2D, program.Attrs{Strides: [2]int64{1, 1}, Padding: program.Same}, x, w)
	}
	dense := func(b *program.Builder, x program.ValueID) program.ValueID {
		w := b.Variable("w", program.Shape{64 * 64 * 16, 8}, program.Init{Kind: program.InitUniform, Scale: 1})
		return b.Op(program.OpMatMul, program.Attrs{}, b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{4, 64 * 64 * 16}}, x), w)
	}
	if told := forward(program.OpRelu, conv); at(told, "forward Relu") < 0 || at(told, "alloc Relu") >= 0 {
		t.Errorf("bn, relu, conv: relu did not take over the output of the batch normalisation: %q", told)
	}
	if told := forward(program.OpGelu, dense); at(told, "forward Gelu") >= 0 || at(told, "alloc Gelu") < 0 {
		t.Errorf("bn, gelu, dense: gelu has no buffer of its own, although its gradient reads its input: %q", told)
	}
}

func TestCastToHalfNeverForwards(t *testing.T) {
	b := run(t, exec.Graph, func(b *program.Builder) {
		b.Fetch("z", b.Op(program.OpCast, program.Attrs{DType: program.Float16}, b.Input("x", program.Float32, oneMiB)))
	})
	if b.count(event.Forward) != 0 {
		t.Error("a cast to half the size took over its input")
	}
}

func TestAddNForwardsItsFirstInputAlone(t *testing.T) {
	for _, c := range []struct {
		first bool
		want  int
	}{{true, 1}, {false, 0}} {
		b := run(t, exec.Graph, func(b *program.Builder) {
			x := b.Op(program.OpTanh, program.Attrs{}, b.Const("x", program.Float32, oneMiB, 1))
			y := b.Op(program.OpTanh, program.Attrs{}, b.Const("y", program.Float32, oneMiB, 2))
			held := y
			if !c.first {
				held = x
			}
			b.Fetch("held", held) // what is also fetched has two holders
			b.Fetch("z", b.Op(program.OpAddN, program.Attrs{}, x, y))
		})
		if got := b.count(event.Forward); got != c.want {
			t.Errorf("first input free %v: %d forwards, want %d", c.first, got, c.want)
		}
	}
}

func TestForwardCandidatesAreTriedInOrder(t *testing.T) {
	b := run(t, exec.Graph, func(b *program.Builder) {
		x := b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
		y := b.Op(program.OpSigmoid, program.Attrs{}, b.Input("y", program.Float32, oneMiB))
		b.Fetch("z", b.Op(program.OpMul, program.Attrs{}, x, y))
	})
	var tanh uint64
	for _, e := range b.events {
		switch b.strings.At(e.Tensor) {
		case "x":
			if e.Kind == event.Alloc && e.Device == gpu {
				tanh = e.Address
			}
		case "Mul":
			if e.Kind == event.Forward && e.Address != tanh {
				t.Errorf("the product lies at %#x, want the first input's %#x", e.Address, tanh)
			}
		}
	}
}

func TestUnconsumedSecondOutputOfTopK(t *testing.T) {
	b := run(t, exec.Graph, func(b *program.Builder) {
		x := b.Op(program.OpTopK, program.Attrs{Value: 4}, b.Input("x", program.Float32, program.Shape{64, 4096}))
		b.Fetch("z", b.Op(program.OpTranspose, program.Attrs{Axes: []int64{1, 0}}, x))
	})
	told := b.told(gpu, event.Alloc, event.Free)
	if i, j := at(told, "free TopKV2:1"), at(told, "alloc Transpose"); i < 0 || i > j {
		t.Errorf("the indices nobody wants were freed at %d, the next node's output made at %d: %q", i, j, told)
	}
}

func TestDyingInputsMergeInIndexOrderAndTheNextTensorTakesTheirPlace(t *testing.T) {
	b := run(t, exec.Graph, func(b *program.Builder) {
		x := b.Input("x", program.Float32, program.Shape{256, 1024})
		y := b.Input("y", program.Float32, program.Shape{1024, 256})
		z := b.Op(program.OpMatMul, program.Attrs{}, x, y) // [256,256]
		b.Fetch("big", b.Op(program.OpTile, program.Attrs{Axes: []int64{8, 1}}, z))
	})
	where := map[string]event.Event{}
	for _, e := range b.events {
		if e.Kind == event.Alloc && e.Device == gpu {
			where[b.strings.At(e.Tensor)] = e
		}
	}
	x, y, big := where["x"], where["y"], where["Tile"]
	if told := b.told(gpu, event.Free); at(told, "free x") > at(told, "free y") {
		t.Errorf("frees %q, want x before y", told)
	}
	if y.Address != x.Address+uint64(x.Size) {
		t.Fatalf("x at %#x and y at %#x are not neighbours", x.Address, y.Address)
	}
	if big.Address != x.Address || big.Size != x.Size+y.Size {
		t.Errorf("a tensor of %d bytes went to %#x, want the chunk of %d bytes at %#x that x and y left", big.Size, big.Address, x.Size+y.Size, x.Address)
	}
}

func TestTheWorkspaceComesAfterTheOutputAndGoesWithTheKernel(t *testing.T) {
	for _, m := range allModes {
		b := run(t, m, func(b *program.Builder) {
			k := b.Variable("k", program.Shape{3, 3, 8, 8}, program.Init{Kind: program.InitUniform, Scale: 1})
			x := b.Op(program.OpConv2D, program.Attrs{Strides: [2]int64{1, 1}, Padding: program.Same}, b.Input("x", program.Float32, program.Shape{2, 64, 64, 8}), k)
			b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, x))
		})
		told := b.told(gpu, event.Alloc, event.Free)
		i, j := at(told, "alloc Conv2D"), at(told, "alloc Conv2D workspace")
		if i < 0 || j != i+1 || told[j+1] != "free Conv2D workspace" {
			t.Errorf("%s: %q, want the output, the workspace and its free in a row", m, told)
		}
	}
}

func TestAKernelWithoutItsWorkspaceIsSlowerAndRight(t *testing.T) {
	conv := func(limit int64) (nanos int64, refused bool) {
		b := newBenchWith(t, limit, func(*exec.Config) {})
		b.step(b.compile(func(b *program.Builder) {
			k := b.Variable("k", program.Shape{5, 5, 8, 8}, program.Init{Kind: program.InitUniform, Scale: 1})
			x := b.Op(program.OpConv2D, program.Attrs{Strides: [2]int64{1, 1}, Padding: program.Same}, b.Input("x", program.Float32, program.Shape{8, 64, 64, 8}), k)
			b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, x))
		}))
		b.rt.End(event.EndDone, "")
		begun, workspace := int64(0), false
		for _, e := range b.events {
			switch name := b.strings.At(e.Op); {
			case name == "Conv2D" && e.Kind == event.OpBegin:
				begun = e.Time
			case name == "Conv2D" && e.Kind == event.OpEnd:
				nanos = e.Time - begun
			case e.Kind == event.Alloc && b.strings.At(e.Tensor) == "Conv2D workspace":
				workspace = true
			case e.Kind == event.OutOfMemory:
				t.Error("a refused workspace was told as a failure")
			}
		}
		return nanos, !workspace
	}
	roomy, no := conv(256 * mib)
	tight, refused := conv(4 * mib)
	if no || !refused || tight <= roomy {
		t.Errorf("with workspace (refused: %v) %d ns, without (refused: %v) %d ns", no, roomy, refused, tight)
	}
}

func TestConstantsOfAGraphAreMadeOnceAndStay(t *testing.T) {
	for _, m := range []exec.Mode{exec.Graph, exec.Planned} {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
		p := b.compile(func(b *program.Builder) {
			b.Fetch("z", b.Op(program.OpAdd, program.Attrs{}, b.Input("x", program.Float32, oneMiB), b.Const("c", program.Float32, oneMiB, 1)))
		})
		for range 3 {
			b.step(p)
		}
		made := 0
		for _, e := range b.events {
			if e.Kind == event.Alloc && e.Device == gpu && e.Category == event.Constant {
				made++
			}
		}
		if made != 1 || b.live(gpu) != 1 {
			t.Errorf("%s: the constant was made %d times, %d buffers live after three steps; want 1 and 1", m, made, b.live(gpu))
		}
	}
}

func TestInt32IsWorkedOnInHostMemory(t *testing.T) {
	for _, m := range allModes {
		b := run(t, m, func(b *program.Builder) {
			c := b.Const("c", program.Int32, program.Shape{1024}, 1)
			x := b.Op(program.OpAdd, program.Attrs{}, c, c)
			b.Fetch("n", b.Op(program.OpShape, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, oneMiB))))
			b.Fetch("z", x)
		})
		for _, e := range b.events {
			name := b.strings.At(e.Tensor)
			if e.Kind == event.Alloc && e.Device == gpu && (name == "c" || name == "AddV2" || name == "Shape") {
				t.Errorf("%s: %s lies in the GPU's memory", m, name)
			}
			if e.Kind == event.TransferBegin && name != "x" {
				t.Errorf("%s: %s is copied", m, name)
			}
		}
	}
}

func TestTheTapeHoldsWhatGradientsReadAndNoMore(t *testing.T) {
	// x -> tanh a -> +c b -> tanh d -> mean: the tape needs a and d (outputs of
	// tanh), and nothing of the addition.
	build := func(b *program.Builder) {
		w := b.Variable("w", oneMiB, program.Init{Kind: program.InitUniform, Scale: 1})
		x := b.Op(program.OpTanh, program.Attrs{}, w)
		y := b.Op(program.OpAdd, program.Attrs{}, x, b.Const("c", program.Float32, oneMiB, 1))
		z := b.Op(program.OpTanh, program.Attrs{}, y)
		g := b.Gradients(b.Op(program.OpMean, program.Attrs{}, z), []program.ValueID{w})
		b.Fetch("g", b.Op(program.OpSum, program.Attrs{}, g[0]))
	}
	for _, c := range []struct{ gradual, async bool }{{false, false}, {true, false}, {false, true}} {
		// An asynchronous program's tape is gone before the queue has run.
		gradual := c.gradual || c.async
		b := newBenchWith(t, 64*mib, func(cfg *exec.Config) {
			cfg.Mode, cfg.FreeTapeGradually, cfg.Async = exec.Eager, c.gradual, c.async
		})
		b.step(b.compile(build))
		told := b.told(gpu, event.Alloc, event.Free)
		firstGradient := slices.IndexFunc(told, func(s string) bool { return s == "alloc gradients/Mean/BroadcastTo" })
		if i := at(told, "free AddV2"); i < 0 || i > firstGradient {
			t.Errorf("gradual %v: the sum is held for the backward pass: %q", gradual, told)
		}
		last := at(told, "alloc gradients/Tanh/TanhGrad")
		if last < 0 {
			t.Fatalf("no second TanhGrad in %q", told)
		}
		i := at(told, "free Tanh_1")
		if gradual && i > last || !gradual && i < last {
			t.Errorf("gradual %v: the second tanh's output was freed at %d, the last gradient made at %d: %q", gradual, i, last, told)
		}
		if j := at(told, "free Tanh"); j < last {
			t.Errorf("gradual %v: the first tanh's output was freed at %d before its gradient at %d", gradual, j, last)
		}
	}
}

func TestSlotsComeWithTheFirstUpdateAndStay(t *testing.T) {
	for _, m := range allModes {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
		p := b.model("mlp", 8)
		b.step(p)
		first, made := b.rt.Stats(gpu).InUse, 0
		for _, e := range b.events {
			if e.Kind == event.Alloc && e.Category == event.OptimizerState && e.Device == gpu {
				made++
			}
		}
		b.events = b.events[:0]
		b.step(p)
		for _, e := range b.events {
			if e.Kind == event.Alloc && (e.Category == event.OptimizerState || e.Category == event.Parameter) && e.Device == gpu {
				t.Errorf("%s: the second step makes %s", m, b.strings.At(e.Tensor))
			}
		}
		if made == 0 || b.rt.Stats(gpu).InUse != first {
			t.Errorf("%s: %d slots, %d bytes after the first step, %d after the second", m, made, first, b.rt.Stats(gpu).InUse)
		}
	}
}

// A view of a variable is fetched, so that it outlives the assignment.
func assigned(op program.Op, held bool) func(*program.Builder) {
	return func(b *program.Builder) {
		w := b.Variable("w", oneMiB, program.Init{Kind: program.InitConstant, Scale: 1})
		if held {
			b.Fetch("before", b.Op(program.OpIdentity, program.Attrs{}, w))
		}
		b.Op(op, program.Attrs{}, w, b.Const("c", program.Float32, oneMiB, 2))
	}
}

func TestAssigningAVariableThatAReaderHoldsMakesANewBuffer(t *testing.T) {
	for _, m := range allModes {
		for _, op := range []program.Op{program.OpAssign, program.OpAssignAdd} {
			for _, held := range []bool{false, true} {
				b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
				p := b.compile(assigned(op, held))
				b.step(p)
				b.events = b.events[:0]
				b.step(p)
				made := 0
				for _, e := range b.events {
					if e.Kind == event.Alloc && e.Device == gpu && e.Category == event.Parameter {
						made++
					}
				}
				want := 0
				if held {
					want = 1 // and the old one goes with its reader, within the step
				}
				// What is written over whole is not copied into the new one.
				runs := 0
				for _, e := range b.events {
					if e.Kind == event.OpBegin && strings.HasPrefix(b.strings.At(e.Op), "Assign") {
						runs++
					}
				}
				if copies := runs - 1; (copies == 1) != (held && op == program.OpAssignAdd) {
					t.Errorf("%s: %s, reader %v: %d copies of the old value", m, op, held, copies)
				}
				if made != want || b.live(gpu) > 0 {
					t.Errorf("%s: %s, reader %v: %d new buffers and %d more live at the end; want %d and 0", m, op, held, made, b.live(gpu), want)
				}
			}
		}
	}
}

func TestKeptTensorsGrowTheMemoryStepByStepAndSayWhatTheyAre(t *testing.T) {
	for _, m := range allModes {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode, c.Keep = m, []string{"layer/*"} })
		p := b.compile(func(b *program.Builder) {
			leave := b.Scope("layer")
			x := b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
			leave()
			b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, x))
		})
		for step := range int32(4) {
			if _, err := b.rt.Step(p, step, now{}); err != nil {
				t.Fatal(err)
			}
			kept := b.rt.Kept()
			if len(kept) != int(step)+1 || b.live(gpu) != int(step)+1+mirror(m) {
				t.Fatalf("%s: after step %d: %d kept, %d buffers live", m, step, len(kept), b.live(gpu))
			}
			if k := kept[step]; b.strings.At(k.Op) != "layer/Tanh" || k.Step != step || k.Bytes != mib || k.Device != gpu {
				t.Errorf("%s: kept %+v (%s)", m, k, b.strings.At(k.Op))
			}
			last := b.events[len(b.events)-2]
			if last.Kind != event.Sample || b.strings.At(last.Op) != "kept by the program" || last.Size != (int64(step)+1)*mib || last.Requested != 0 {
				t.Errorf("%s: told %s of %d bytes, %d tensors", m, last.Kind, last.Size, last.Requested)
			}
		}
		b.rt.ReleaseKept()
		if got := b.live(gpu); got != mirror(m) {
			t.Errorf("%s: %d buffers live after the list was cleared", m, got)
		}
	}
}

// mirror is 1 for an eager loop, which holds its batch until it has the next.
func mirror(m exec.Mode) int {
	if m == exec.Eager {
		return 1
	}
	return 0
}

func TestCopyPolicies(t *testing.T) {
	build := func(b *program.Builder) {
		x := b.Op(program.OpTanh, program.Attrs{}, b.Const("c", program.Float32, oneMiB, 1))
		b.Fetch("a", b.Op(program.OpSum, program.Attrs{}, x))
		b.Fetch("b", b.Op(program.OpMean, program.Attrs{}, x))
	}
	rules := []place.Rule{{Match: "Tanh", Device: "/CPU:0"}, {Match: "c", Device: "/CPU:0"}}
	for _, c := range []struct {
		policy exec.CopyPolicy
		err    bool
		warns  int
	}{{exec.CopySilent, false, 0}, {exec.CopyWarn, false, 1}, {exec.CopyExplicit, true, 0}, {exec.CopySilentForInt32, true, 0}} {
		b := newBenchWith(t, 64*mib, func(x *exec.Config) { x.Mode, x.Copies = exec.Eager, c.policy })
		_, err := b.rt.Step(b.compile(build, rules...), 0, now{})
		if (err != nil) != c.err {
			t.Errorf("%s: %v", c.policy, err)
		}
		if c.err {
			if !errors.Is(err, exec.ErrConflictingDevices) {
				t.Errorf("%s: %v is no conflict of devices", c.policy, err)
			}
			for _, want := range []string{"op Sum", "input #0", "/device:CPU:0", "/device:GPU:0", "copy it there"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q lacks %q", c.policy, err, want)
				}
			}
			continue
		}
		warns, copies := 0, 0
		for _, e := range b.events {
			if e.Kind == event.Log && e.Flags&event.Warning != 0 {
				warns++
			}
			if e.Kind == event.TransferBegin && e.Peer == gpu {
				copies++
			}
		}
		if warns != c.warns || copies != 1 {
			t.Errorf("%s: %d warnings and %d copies; want %d, and 1 that the second reader finds as a mirror", c.policy, warns, copies, c.warns)
		}
	}
}

func TestAnAsynchronousFailureStaysUntilItIsCleared(t *testing.T) {
	b := newBenchWith(t, 16*mib, func(c *exec.Config) { c.Mode, c.Async = exec.Eager, true })
	small, big := b.model("lenet5", 16), b.model("lenet5", 4096)
	b.step(small)
	if _, err := b.rt.Step(big, 1, now{}); !errors.Is(err, exec.ErrOutOfMemory) {
		t.Fatalf("batch 4096 in 16 MiB: %v", err)
	}
	b.events = b.events[:0]
	if _, err := b.rt.Step(small, 2, now{}); !errors.Is(err, exec.ErrOutOfMemory) || len(b.events) > 0 {
		t.Fatalf("before the error is cleared: %v, %d events", err, len(b.events))
	}
	b.rt.ClearError()
	b.step(small)
}

func TestForceGPUCompatibleTakesAllHostMemoryFromThePinnedPool(t *testing.T) {
	for _, force := range []bool{false, true} {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.ForceGPUCompatible = force })
		b.step(b.compile(summed))
		pageable, unpinned := 0, 0
		for _, e := range b.events {
			if e.Kind == event.Alloc && b.allocators[e.Allocator] == "cpu" {
				pageable++
			}
			if e.Kind == event.TransferBegin && e.Flags&event.Pinned == 0 {
				unpinned++
			}
		}
		if force && pageable > 0 || !force && pageable == 0 || unpinned > 0 {
			t.Errorf("force %v: %d pageable blocks, %d copies that are not of pinned memory", force, pageable, unpinned)
		}
	}
}

// convolved is a convolution of 1 MiB with a workspace.
func convolved(b *program.Builder) {
	k := b.Variable("k", program.Shape{3, 3, 8, 8}, program.Init{Kind: program.InitUniform, Scale: 1})
	x := b.Op(program.OpConv2D, program.Attrs{Strides: [2]int64{1, 1}, Padding: program.Same}, b.Input("x", program.Float32, program.Shape{8, 64, 64, 8}), k)
	b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, x))
}

func TestAutotuningMakesTheFirstStepOfAShapeTakeMore(t *testing.T) {
	for _, m := range allModes {
		b := newBenchWith(t, 256*mib, func(c *exec.Config) { c.Mode, c.Autotune = m, true })
		p := b.compile(convolved)
		var peaks [3]int64
		for i := range peaks {
			b.rt.ClearStats(gpu)
			b.step(p)
			peaks[i] = b.rt.Stats(gpu).PeakInUse
		}
		if peaks[0] <= peaks[1] || peaks[1] != peaks[2] {
			t.Errorf("%s: peaks of three steps %v, want the first above the others", m, peaks)
		}
	}
}

func TestAutotuningTriesNoAlgorithmAboveTheLimit(t *testing.T) {
	largest := func(limit int64) (most int64) {
		b := newBenchWith(t, 256*mib, func(c *exec.Config) { c.Autotune, c.WorkspaceLimit = true, limit })
		b.step(b.compile(convolved))
		for _, e := range b.events {
			if e.Kind == event.Alloc && b.strings.At(e.Tensor) == "Conv2D workspace" {
				most = max(most, e.Requested)
			}
		}
		return most
	}
	all := largest(0)
	if got := largest(all / 2); got != all/2 {
		t.Errorf("with a limit of half of what the most generous algorithm takes, %d bytes, the largest workspace has %d", all, got)
	}
}

func TestAWorkspaceAboveTheLimitIsNotAskedFor(t *testing.T) {
	time := func(limit int64) (nanos int64, asked bool) {
		b := newBenchWith(t, 256*mib, func(c *exec.Config) { c.WorkspaceLimit = limit })
		b.step(b.compile(convolved))
		b.rt.End(event.EndDone, "")
		for _, e := range b.events {
			switch {
			case b.strings.At(e.Op) == "Conv2D" && e.Kind == event.OpBegin:
				nanos -= e.Time
			case b.strings.At(e.Op) == "Conv2D" && e.Kind == event.OpEnd:
				nanos += e.Time
			case e.Kind == event.Alloc && b.strings.At(e.Tensor) == "Conv2D workspace":
				asked = true
			}
		}
		return nanos, asked
	}
	fast, asked := time(0)
	slow, refused := time(mib)
	if !asked || refused || slow != 2*fast {
		t.Errorf("limit 4 GiB: asked %v, %d ns; limit 1 MiB: asked %v, %d ns", asked, fast, refused, slow)
	}
}

func TestTheQueueOfAnAsynchronousExecutorHoldsItsInputs(t *testing.T) {
	// x = tanh(x + c1); x = tanh(x + c2); ... with constants of 1 MiB.
	build := func(b *program.Builder) {
		x := b.Input("x", program.Float32, oneMiB)
		for range 6 {
			x = b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpAdd, program.Attrs{}, x, b.Const("c", program.Float32, oneMiB, 1)))
		}
		b.Fetch("x", b.Op(program.OpSum, program.Attrs{}, x))
	}
	peak := func(async bool) int {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode, c.Async = exec.Eager, async })
		p := b.compile(build)
		b.step(p)
		b.step(p)
		if got := b.live(gpu); got != 1 {
			t.Errorf("async %v: %d buffers outlive the step, want the batch's mirror", async, got)
		}
		return b.peak(gpu)
	}
	// Beside the batch's mirror, an op's input and output, and the constant; all
	// six of them when the first op runs.
	if sync, async := peak(false), peak(true); sync != 4 || async != 8 {
		t.Errorf("peaks of %d buffers, and %d when the queue holds the constants; want 4 and 8", sync, async)
	}
}

// begun lists the ops in the order in which the device ran them.
func (b *bench) begun() (ops []string) {
	b.rt.End(event.EndDone, "")
	for _, e := range b.events {
		if e.Kind == event.OpBegin {
			ops = append(ops, b.strings.At(e.Op))
		}
	}
	return ops
}

func TestOutEdgesAreServedInOrderOfCreationAndTheLastOneMovesTheReference(t *testing.T) {
	b := run(t, exec.Graph, func(b *program.Builder) {
		x := b.Op(program.OpExp, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
		y := b.Op(program.OpTanh, program.Attrs{}, x)
		z := b.Op(program.OpSigmoid, program.Attrs{}, x)
		w := b.Op(program.OpSquare, program.Attrs{}, x)
		b.Fetch("s", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpAddN, program.Attrs{}, w, y, z)))
	})
	if got, want := b.begun(), []string{"Exp", "Tanh", "Sigmoid", "Square", "AddN", "Sum"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	told := b.told(gpu, event.Forward)
	if want := []string{"forward Exp", "forward Square", "forward AddN"}; !slices.Equal(told, want) {
		t.Errorf("%v, want %v: of x's readers the last alone takes its buffer over", told, want)
	}
}

func TestAGraphRunsWhatIsNeededAndEagerEverything(t *testing.T) {
	build := func(b *program.Builder) {
		x := b.Input("x", program.Float32, oneMiB)
		b.Op(program.OpTanh, program.Attrs{}, x) // nobody reads it
		b.Fetch("s", b.Op(program.OpSum, program.Attrs{}, x))
	}
	for _, m := range allModes {
		if ran := slices.Contains(run(t, m, build).begun(), "Tanh"); ran != (m == exec.Eager) {
			t.Errorf("%s: an op whose result nobody reads ran: %v", m, ran)
		}
	}
}

func TestAGraphUnpacksItsConstantsInPinnedMemoryAndEagerDoesNot(t *testing.T) {
	for _, m := range allModes {
		b := run(t, m, func(b *program.Builder) {
			b.Fetch("z", b.Op(program.OpSum, program.Attrs{}, b.Const("c", program.Float32, oneMiB, 1)))
		})
		pageable, pinned := false, false
		for _, e := range b.events {
			if e.Kind == event.Alloc && b.strings.At(e.Tensor) == "c" && e.Device == 0 {
				pageable = pageable || b.allocators[e.Allocator] == "cpu"
				pinned = pinned || b.allocators[e.Allocator] == "gpu_host_bfc"
			}
		}
		if pageable || m != exec.Eager && !pinned {
			t.Errorf("%s: constant unpacked in pageable memory: %v, in pinned: %v", m, pageable, pinned)
		}
	}
}

func TestAPatternThatKeepsNothingIsWarnedOf(t *testing.T) {
	b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Keep = []string{"Tanh", "layer7/*"} })
	b.compile(summed)
	var warned []string
	for _, e := range b.events {
		if e.Kind == event.Log && e.Flags&event.Warning != 0 {
			warned = append(warned, b.strings.At(e.Text))
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], `keep "layer7/*"`) {
		t.Errorf("warnings %q, want one, of layer7/*", warned)
	}
}

func TestCompilingForADeviceThatIsNotThereIsAnError(t *testing.T) {
	b := newBench(t, false, 64*mib)
	pb := program.NewBuilder("test", 1)
	summed(pb)
	p, err := pb.Build()
	if err != nil {
		t.Fatal(err)
	}
	where := make([]place.Decision, len(p.Nodes))
	where[0].Device = 7
	for _, w := range [][]place.Decision{where, where[:1]} {
		if _, err := b.rt.CompilePlaced(p, w); err == nil {
			t.Errorf("%d placements, the first on device 7: no error", len(w))
		}
	}
}
