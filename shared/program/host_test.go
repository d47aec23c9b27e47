package program

import "testing"

// Arguments in host memory: section 5 of the specification of placement, as
// far as the ops have such arguments; axes and sizes are attributes here.
func TestHostMemoryArguments(t *testing.T) {
	for name, c := range map[string]struct {
		c       opCase
		in, out string // h for host, d for device
	}{
		"shape":             {opCase{op: OpShape, in: r(nhwc)}, "d", "h"},
		"add of int32":      {opCase{op: OpAdd, in: specs(Int32, x23, x23)}, "hh", "h"},
		"add of int64":      {opCase{op: OpAdd, in: specs(Int64, x23, x23)}, "dd", "d"},
		"add of float":      {opCase{op: OpAdd, in: r(x23, x23)}, "dd", "d"},
		"identity of int32": {opCase{op: OpIdentity, in: specs(Int32, x23)}, "h", "h"},
		"sum of int32":      {opCase{op: OpSum, in: specs(Int32, x23)}, "h", "h"},
		"constant of int32": {opCase{op: OpConst, a: Attrs{DType: Int32, Shape: x23}}, "", "h"},
		"constant of float": {opCase{op: OpConst, a: Attrs{Shape: x23}}, "", "d"},
		"range of int32":    {opCase{op: OpRange, a: Attrs{DType: Int32, Shape: Shape{2}}}, "", "h"},
		"equal of int32":    {opCase{op: OpEqual, in: specs(Int32, x23, x23)}, "hh", "d"},
		"cast of int32":     {opCase{op: OpCast, in: specs(Int32, x23)}, "d", "d"},
		"ids of a lookup":   {opCase{op: OpGather, in: []Spec{{float, x23}, {Int32, x3}}}, "dd", "d"},
		"indices of top k":  {opCase{op: OpTopK, a: Attrs{Value: 1}, in: r(x23)}, "d", "dd"},
		"swap out":          {opCase{op: OpSwapOut, in: r(x23)}, "d", "h"},
		"swap in":           {opCase{op: OpSwapIn, in: r(x23)}, "h", "d"},
	} {
		b, _, _ := applied(c.c, Float32, false)
		p, err := b.Build()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := &p.Nodes[len(p.Nodes)-1]
		var in, out []byte
		for i := range n.Inputs {
			in = append(in, "dh"[bit(p.HostInput(n, i))])
		}
		for i := range n.Outputs {
			out = append(out, "dh"[bit(p.HostOutput(n, i))])
		}
		if string(in) != c.in || string(out) != c.out {
			t.Errorf("%s: %s -> %s, want %s -> %s", name, in, out, c.in, c.out)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestScratchOfReductions(t *testing.T) {
	for name, c := range map[string]struct {
		c    opCase
		want int64
	}{
		"to a scalar, small":      {opCase{op: OpMean, in: r(Shape{64, 64})}, 0},
		"to a scalar":             {opCase{op: OpMean, in: r(Shape{64, 65})}, 32 * 4},
		"to a scalar, large":      {opCase{op: OpL2Loss, in: r(Shape{1 << 10, 1 << 10})}, 3200 * 4},
		"bools to one":            {opCase{op: OpAll, in: specs(Bool, Shape{64, 65})}, 32},
		"short rows":              {opCase{op: OpSum, a: Attrs{Axes: []int64{1}}, in: r(Shape{100, 1000})}, 0},
		"long rows":               {opCase{op: OpSum, a: Attrs{Axes: []int64{1}}, in: r(Shape{100, 1024})}, 1},
		"columns":                 {opCase{op: OpSum, a: Attrs{Axes: []int64{0}}, in: r(Shape{1000, 100})}, 32 * 100 * 4},
		"columns of few rows":     {opCase{op: OpSum, a: Attrs{Axes: []int64{0}}, in: r(Shape{30, 100})}, 0},
		"many columns":            {opCase{op: OpSum, a: Attrs{Axes: []int64{0}}, in: r(Shape{1000, 4096})}, 0},
		"in the middle":           {opCase{op: OpMean, a: Attrs{Axes: []int64{1, 2}}, in: r(Shape{8, 7, 7, 2048})}, 0},
		"nothing reduced":         {opCase{op: OpSum, a: Attrs{Axes: []int64{}}, in: r(Shape{100, 100})}, 0},
		"softmax of float32":      {opCase{op: OpSoftmax, in: r(Shape{4, 5, 1000})}, 20 * 8},
		"softmax of float16":      {opCase{op: OpSoftmax, in: specs(Float16, Shape{4, 5, 1000})}, 20 * 6},
		"cross entropy":           {opCase{op: OpXent, in: r(Shape{64, 10}, Shape{64, 10})}, 64 * 4},
		"transposed convolution":  {opCase{op: OpConv2DBackpropInput, a: Attrs{Strides: [2]int64{2, 2}, Padding: Same, Shape: nhwc}, in: r(Shape{2, 2, 3, 5}, Shape{2, 4, 4, 5})}, 2 * 4 * 4 * 4 * 3 * 4},
		"convolution of 1x1":      {opCase{op: OpConv2D, a: Attrs{Strides: [2]int64{1, 1}}, in: r(nhwc, Shape{1, 1, 3, 5})}, 0},
		"convolution of float16s": {opCase{op: OpConv2D, a: Attrs{Strides: [2]int64{1, 1}}, in: specs(Float16, nhwc, Shape{3, 3, 3, 5})}, 2 * 36 * 27 * 2},
	} {
		b, _, _ := applied(c.c, Float32, false)
		p, err := b.Build()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		n := &p.Nodes[len(p.Nodes)-1]
		if got := defs[n.Op].Workspace(p, n); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

// Work that is not what goes in and comes out, each once.
func TestWorkOfOpsThatTouchLessOrMore(t *testing.T) {
	for name, c := range map[string]struct {
		c    opCase
		want Cost
	}{
		"a product":           {opCase{op: OpMatMul, a: Attrs{TransposeA: true}, in: r(Shape{5, 2}, Shape{5, 3})}, Cost{2 * 5 * 6, 4 * (10 + 15 + 6)}},
		"batches of products": {opCase{op: OpBatchMatMul, a: Attrs{TransposeB: true}, in: r(Shape{7, 2, 5}, Shape{7, 3, 5})}, Cost{2 * 7 * 5 * 6, 4 * 7 * (10 + 15 + 6)}},
		"a lookup":            {opCase{op: OpGather, in: []Spec{{float, Shape{1000, 8}}, {Int64, Shape{5}}}}, Cost{0, 2*5*8*4 + 5*8}},
		"a slice":             {opCase{op: OpSlice, a: Attrs{Begin: []int64{500, 0}, Shape: Shape{5, 8}}, in: r(Shape{1000, 8})}, Cost{0, 2 * 5 * 8 * 4}},
		"momentum":            {opCase{op: OpApplyMomentum, in: r(Shape{100}, Shape{100}, nil, nil, Shape{100}), states: 2}, Cost{400, 4 * (3*100 + 2 + 2*100)}},
		"momentum of rows": {
			opCase{op: OpSparseApplyMomentum, states: 2, in: append(r(Shape{1000, 8}, Shape{1000, 8}, nil, nil, Shape{5, 8}), Spec{Int64, Shape{5}})},
			Cost{4 * 40, 5*8 + 5*8*4*5},
		},
		"a constant": {opCase{op: OpConst, a: Attrs{Shape: Shape{100}}}, Cost{}},
	} {
		b, _, _ := applied(c.c, Float32, false)
		p, err := b.Build()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Cost(&p.Nodes[len(p.Nodes)-1]); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
