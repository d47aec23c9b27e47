package rewrite_test

import (
	"math"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// build makes a program whose result is read by one more op, so that it may
// become a constant.
func build(tb testing.TB, f func(b *program.Builder) program.ValueID) *program.Program {
	tb.Helper()
	b := program.NewBuilder("t", 1)
	x := b.Input("x", program.Float32, nil)
	v := f(b)
	b.Fetch("out", b.Op(program.OpMul, program.Attrs{}, b.Op(program.OpTanh, program.Attrs{}, v), x))
	p, err := b.Build()
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func count(p *program.Program, op program.Op) (n int) {
	for i := range p.Nodes {
		if p.Nodes[i].Op == op {
			n++
		}
	}
	return n
}

// The checklist: a fill to 20 MiB from small inputs is not folded; to 5 MiB it
// is; 20 MiB from two constants of 20 MiB are. A fill of ours is BroadcastTo.
func TestConstantFoldingBySize(t *testing.T) {
	fill := func(b *program.Builder, mibs int64) program.ValueID {
		return b.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{mibs, 1 << 18}}, b.Const("c", program.Float32, nil, 3))
	}
	for _, c := range []struct {
		name          string
		make          func(b *program.Builder) program.ValueID
		folded, large int
	}{
		{"fill to 20 MiB", func(b *program.Builder) program.ValueID { return fill(b, 20) }, 0, 1},
		{"fill to 5 MiB", func(b *program.Builder) program.ValueID { return fill(b, 5) }, 1, 0},
		{"fill to 10 MiB", func(b *program.Builder) program.ValueID { return fill(b, 10) }, 1, 0},
		{"fill to 11 MiB", func(b *program.Builder) program.ValueID { return fill(b, 11) }, 0, 1},
		{"20 MiB from two of 20 MiB", func(b *program.Builder) program.ValueID {
			s := program.Shape{20, 1 << 18}
			return b.Op(program.OpAdd, program.Attrs{}, b.Const("a", program.Float32, s, 1), b.Const("b", program.Float32, s, 2))
		}, 1, 0},
		{"20 MiB from one of 20 MiB and a number", func(b *program.Builder) program.ValueID {
			return b.Op(program.OpAdd, program.Attrs{}, b.Const("a", program.Float32, program.Shape{20, 1 << 18}, 1), b.Const("b", program.Float32, nil, 2))
		}, 1, 0},
	} {
		p := build(t, c.make)
		q, folded, large, err := rewrite.FoldConstants(p)
		if err != nil || folded != c.folded || large != c.large {
			t.Errorf("%s: %d folded, %d too large, %v; want %d, %d", c.name, folded, large, err, c.folded, c.large)
			continue
		}
		if got, want := count(q, program.OpBroadcastTo)+count(q, program.OpAdd), 1-c.folded; got != want {
			t.Errorf("%s: %d ops are left, want %d", c.name, got, want)
		}
	}
}

// What is folded is what a float32 kernel would have computed.
func TestConstantFoldingRounds(t *testing.T) {
	for _, c := range []struct {
		op   program.Op
		a, b float64
		want float64
	}{
		{program.OpAdd, 0.1, 0.2, float64(float32(0.1) + float32(0.2))},
		{program.OpAdd, 1 << 24, 1, 1 << 24},
		{program.OpSub, 0.3, 0.1, float64(float32(0.3) - float32(0.1))},
		{program.OpMul, 0.1, 0.1, float64(float32(0.1) * float32(0.1))},
		{program.OpDiv, 1, 3, float64(float32(1) / float32(3))},
		{program.OpDiv, 1, 0, math.Inf(1)},
		{program.OpMul, 1e30, 1e30, math.Inf(1)},
	} {
		p := build(t, func(b *program.Builder) program.ValueID {
			return b.Op(c.op, program.Attrs{}, b.Const("a", program.Float32, nil, c.a), b.Const("b", program.Float32, nil, c.b))
		})
		q, folded, _, err := rewrite.FoldConstants(p)
		if err != nil || folded != 1 {
			t.Fatalf("%s: %d folded, %v", c.op, folded, err)
		}
		for i := range q.Nodes {
			if n := &q.Nodes[i]; n.Op == program.OpConst && n.Attrs.Value != c.want {
				t.Errorf("%v %s %v = %v, want %v", c.a, c.op, c.b, n.Attrs.Value, c.want)
			}
		}
	}
}

// Whose result depends on the host's library, or cannot be said as one number,
// stays an op.
func TestNotFolded(t *testing.T) {
	for name, f := range map[string]func(b *program.Builder) program.ValueID{
		"tanh": func(b *program.Builder) program.ValueID {
			return b.Op(program.OpTanh, program.Attrs{}, b.Const("c", program.Float32, nil, 0.5))
		},
		"sum": func(b *program.Builder) program.ValueID {
			return b.Op(program.OpSum, program.Attrs{}, b.Const("c", program.Float32, program.Shape{100}, 0.1))
		},
		"half": func(b *program.Builder) program.ValueID {
			c := b.Const("c", program.Float16, nil, 0.1)
			return b.Op(program.OpCast, program.Attrs{DType: program.Float32}, b.Op(program.OpAdd, program.Attrs{}, c, c))
		},
	} {
		p := build(t, f)
		if _, folded, _, err := rewrite.FoldConstants(p); err != nil || folded != 0 {
			t.Errorf("%s: %d folded, %v", name, folded, err)
		}
	}
}

// Arithmetic's removals, one at a time; and what it must not remove.
func TestArithmetic(t *testing.T) {
	s := program.Shape{3, 4}
	for _, c := range []struct {
		name string
		make func(b *program.Builder, x program.ValueID) program.ValueID
		left int // ops beside the two that read the result
	}{
		{"identity", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpIdentity, program.Attrs{}, b.Op(program.OpIdentity, program.Attrs{}, x))
		}, 0},
		{"reshape to the same", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpReshape, program.Attrs{Shape: s}, x)
		}, 0},
		{"reshape of a reshape", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{6, 2}}, b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{12}}, x))
		}, 1},
		{"there and back", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpReshape, program.Attrs{Shape: s}, b.Op(program.OpReshape, program.Attrs{Shape: program.Shape{12}}, x))
		}, 0},
		{"transposes that cancel", func(b *program.Builder, x program.ValueID) program.ValueID {
			t := program.Attrs{Axes: []int64{1, 0}}
			return b.Op(program.OpTranspose, t, b.Op(program.OpTranspose, t, x))
		}, 0},
		{"a transpose that does not", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpTranspose, program.Attrs{Axes: []int64{1, 0}}, x)
		}, 1},
		{"cast to its type", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpCast, program.Attrs{DType: program.Float32}, x)
		}, 0},
		{"times 1", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpMul, program.Attrs{}, x, b.Const("c", program.Float32, nil, 1))
		}, 0},
		{"sum of one", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpAddN, program.Attrs{}, x)
		}, 0},
		{"computed twice", func(b *program.Builder, x program.ValueID) program.ValueID {
			y := b.Op(program.OpRelu, program.Attrs{}, x)
			return b.Op(program.OpAdd, program.Attrs{}, y, b.Op(program.OpRelu, program.Attrs{}, x))
		}, 2},
		{"two constants of one number", func(b *program.Builder, x program.ValueID) program.ValueID {
			c := func() program.ValueID { return b.Const("c", program.Float32, s, 2) }
			return b.Op(program.OpSub, program.Attrs{}, b.Op(program.OpMul, program.Attrs{}, x, c()), c())
		}, 3},
		{"plus 0 may change the sign of a zero", func(b *program.Builder, x program.ValueID) program.ValueID {
			return b.Op(program.OpAdd, program.Attrs{}, x, b.Const("c", program.Float32, nil, 0))
		}, 2},
	} {
		b := program.NewBuilder("t", 1)
		x := b.Input("x", program.Float32, s)
		b.Fetch("out", b.Op(program.OpNeg, program.Attrs{}, b.Op(program.OpExp, program.Attrs{}, c.make(b, x))))
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		q, _, err := rewrite.Arithmetic(p)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := len(q.Nodes) - 2; got != c.left {
			t.Errorf("%s: %d ops are left, want %d", c.name, got, c.left)
		}
	}
}

// A reader of a variable must be known to what changes the variable, so an
// identity of one stays; so do two draws with one seed.
func TestArithmeticLeavesStateAlone(t *testing.T) {
	b := program.NewBuilder("t", 1)
	w := b.Variable("w", program.Shape{4}, program.Init{})
	y := b.Op(program.OpTanh, program.Attrs{}, b.Op(program.OpIdentity, program.Attrs{}, w))
	for range 2 {
		y = b.Op(program.OpAdd, program.Attrs{}, y, b.Op(program.OpRandomUniform, program.Attrs{Shape: program.Shape{4}, Seed: 7}))
	}
	b.Fetch("out", y)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	q, n, err := rewrite.Arithmetic(p)
	if err != nil || n != 0 || count(q, program.OpIdentity) != 1 || count(q, program.OpRandomUniform) != 2 {
		t.Errorf("%d nodes went, %v", n, err)
	}
}

// (x-y)² is one op, unless the difference has another reader.
func TestRemapFusesTheSquaredDifference(t *testing.T) {
	for _, also := range []bool{false, true} {
		b := program.NewBuilder("t", 1)
		x, y := b.Input("x", program.Float32, program.Shape{4}), b.Input("y", program.Float32, program.Shape{4})
		d := b.Op(program.OpSub, program.Attrs{}, x, y)
		b.Fetch("out", b.Op(program.OpSquare, program.Attrs{}, d))
		if also {
			b.Fetch("also", b.Op(program.OpTanh, program.Attrs{}, d))
		}
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		q, n, err := rewrite.Remap(p)
		if err != nil || (n == 1) == also || (count(q, program.OpSquaredDifference) == 1) == also {
			t.Errorf("another reader %v: %d fused, %v", also, n, err)
		}
	}
}
