package rewrite_test

import (
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

const mib = 1 << 20

var mega = program.Shape{512, 512} // a MiB of float32

// Lifetimes by the rules of the graph executor, in MiB.
func TestPeaks(t *testing.T) {
	unary := func(b *program.Builder, op program.Op, x program.ValueID) program.ValueID {
		return b.Op(op, program.Attrs{}, x)
	}
	for _, c := range []struct {
		name string
		make func(b *program.Builder, x program.ValueID) program.ValueID
		want int64
	}{
		{"constant, relu, relu: the constant cannot be taken over", func(b *program.Builder, _ program.ValueID) program.ValueID {
			return unary(b, program.OpRelu, unary(b, program.OpRelu, b.Const("a", program.Float32, mega, 1)))
		}, 2},
		{"input, relu, relu: one buffer", func(b *program.Builder, x program.ValueID) program.ValueID {
			return unary(b, program.OpRelu, unary(b, program.OpRelu, x))
		}, 1},
		{"x + x holds x twice", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpAdd, program.Attrs{}, x, x)
		}, 2},
		{"a cast takes nothing over", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpCast, program.Attrs{DType: program.Int32}, x)
		}, 2},
		{"aliases cost nothing", func(b *program.Builder, x program.ValueID) program.ValueID {
			return unary(b, program.OpIdentity, b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{512 * 512}}, x))
		}, 1},
		{"a value with a second reader stays", func(b *program.Builder, x program.ValueID) program.ValueID {
			y := unary(b, program.OpRelu, x)
			return b.Op(program.OpAdd, program.Attrs{}, unary(b, program.OpTanh, y), y)
		}, 2},
		{"what nobody reads is gone", func(b *program.Builder, x program.ValueID) program.ValueID {
			y := unary(b, program.OpRelu, x)
			for range 3 {
				b.Op(program.OpMatMul, program.Attrs{}, y, y)
			}
			return y
		}, 2},
		{"breadth first: all branches at once", func(b *program.Builder, x program.ValueID) program.ValueID {
			var ends []program.ValueID
			for range 4 {
				ends = append(ends, b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, x)))
			}
			return b.Op(program.OpAddN, program.Attrs{}, ends...)
		}, 5},
		{"what lies in host memory does not count", func(b *program.Builder, x program.ValueID) program.ValueID {
			out := b.Op(program.OpSwapOut, program.Attrs{}, unary(b, program.OpRelu, x))
			return b.Op(program.OpSwapIn, program.Attrs{}, out)
		}, 1},
	} {
		b := program.NewBuilder("peaks", 1)
		b.Fetch("out", c.make(b, b.Input("x", program.Float32, mega)))
		p, err := b.Build()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		peak, at := rewrite.LiveBytes(p)
		// Inputs live from the start, so those that are not read add nothing.
		if got := (peak + mib/2) / mib; got != c.want {
			t.Errorf("%s: peak %d MiB at node %d, want %d", c.name, got, at, c.want)
		}
	}
}

// Depth first needs two buffers where breadth first needs one for each branch.
func TestOrderDecidesThePeak(t *testing.T) {
	const branches = 6
	b := program.NewBuilder("wide", 1)
	x := b.Input("x", program.Float32, mega)
	var ends []program.ValueID
	for range branches {
		ends = append(ends, b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpMatMul, program.Attrs{}, x, x)))
	}
	b.Fetch("out", b.Op(program.OpAddN, program.Attrs{}, ends...))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		order []program.NodeID
		want  int64
	}{{"first in, first out", rewrite.FIFO(p), branches + 1}, {"program order", rewrite.ProgramOrder(p), 2}} {
		if got := rewrite.Measure(p, c.order).Peak / mib; got != c.want {
			t.Errorf("%s: %d MiB, want %d", c.name, got, c.want)
		}
	}
}

// What a variable needs is there all the time, workspaces while a node runs.
func TestPersistentAndWorkspace(t *testing.T) {
	b := program.NewBuilder("conv", 1)
	x := b.Input("x", program.Float32, program.Shape{1, 64, 64, 16})
	w := b.Variable("w", program.Shape{3, 3, 16, 16}, program.Init{})
	b.Fetch("out", b.Op(program.OpConv2D, program.Attrs{Strides: [2]int64{1, 1}, Padding: program.Same}, x, w))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	def, err := program.Lookup(program.OpConv2D)
	if err != nil {
		t.Fatal(err)
	}
	l := rewrite.Measure(p, rewrite.FIFO(p))
	const image, weights = 64 * 64 * 16 * 4, 3 * 3 * 16 * 16 * 4
	if want := 2*image + weights + def.Workspace(p, &p.Nodes[1]); l.Persistent != weights || l.Peak != want || l.At != 1 {
		t.Errorf("persistent %d, peak %d at %d; want %d, %d at 1", l.Persistent, l.Peak, l.At, int64(weights), want)
	}
	if l.Made[p.Inputs[0]] != -1 || l.Dies[p.Inputs[0]] != 1 || l.Dies[p.Fetches[0].Value] != int32(len(l.Order)) {
		t.Errorf("made %v, dies %v", l.Made, l.Dies)
	}
}
