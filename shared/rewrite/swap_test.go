package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tideline/shared/program"
	"tideline/shared/rewrite"
)

// millisecond makes every node take 1 ms.
func millisecond(*program.Program, *program.Node) int64 { return 1_000_000 }

// swapped lists the tensors that go to the host, in the order of the program.
func swapped(p *program.Program) (out []string) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == program.OpSwapOut {
			out = append(out, p.Values[n.Inputs[0]].Name)
		}
	}
	return out
}

// While the modelled peak fits nothing is swapped.
func TestSwapInactiveBelowDeviceMemory(t *testing.T) {
	p, _ := chain(t, 12, 256, 16)
	peak, _ := rewrite.LiveBytes(p)
	for _, c := range []struct {
		device int64
		want   bool
	}{{peak + 1, false}, {peak, false}, {peak - 1, true}} {
		_, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapHeuristics, DeviceBytes: c.device, Nanos: millisecond})
		if err != nil || (pairs > 0) != c.want {
			t.Errorf("peak %d on a device of %d: %d pairs, %v", peak, c.device, pairs, err)
		}
	}
}

// With the peak above by one byte the tensor with the best fitness goes, alone;
// with more above, the next ones follow in their order. In a chain that is the
// first layer's, made first and used last, then the second's.
func TestSwapTakesTheBestFitnessFirst(t *testing.T) {
	p, _ := chain(t, 12, 256, 16)
	peak, _ := rewrite.LiveBytes(p)
	const output = 256 * 16 * 4
	for want := 1; want <= 3; want++ {
		q, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{
			Mode: rewrite.SwapHeuristics, Nanos: millisecond, DeviceBytes: peak - int64(want-1)*output - 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		var first []string
		for i := range want {
			first = append(first, fmt.Sprintf("layer%03d/Tanh", i))
		}
		if got := swapped(q); pairs < want || !slices.Equal(got[:want], first) {
			t.Errorf("%d outputs above: %v go", want, got)
		}
		if after, _ := rewrite.LiveBytes(q); after > peak-int64(want-1)*output-1 {
			t.Errorf("%d outputs above: the peak is %d after, was %d", want, after, peak)
		}
	}
}

// Of two tensors that live over the peak: long ago made counts as much as late
// used, and the more readers the less.
func TestTheFitnessOfASwap(t *testing.T) {
	wait := func(b *program.Builder, x program.ValueID, nodes int) program.ValueID {
		for range nodes {
			x = b.Op(program.OpAbs, program.Attrs{}, x)
		}
		return x
	}
	for _, c := range []struct {
		name    string
		between int // nodes between the making of the first and of the second
		later   int // nodes by which the second is used after the first, or before it
		readers int // of the first, after the peak
		want    string
	}{
		{"made long before", 10, 1, 1, "Sigmoid"},
		{"used long after", 1, 10, 1, "Tanh"},
		{"read once", 1, -3, 1, "Sigmoid"},
		{"read by many", 1, -3, 4, "Tanh"},
	} {
		b := program.NewBuilder("fitness", 1)
		x := b.Input("x", program.Float32, program.Shape{1024})
		first := b.Op(program.OpSigmoid, program.Attrs{}, x)
		x = wait(b, x, c.between)
		second := b.Op(program.OpTanh, program.Attrs{}, x)
		s := b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{100, 1024}}, x))
		s = wait(b, s, 10)
		use := func() { b.Fetch("z", b.Op(program.OpMul, program.Attrs{}, second, wait(b, s, max(0, c.later)))) }
		if c.later < 0 {
			use()
		}
		y := wait(b, s, max(0, -c.later))
		for range c.readers {
			y = b.Op(program.OpMul, program.Attrs{}, first, y)
		}
		b.Fetch("y", b.Op(program.OpSum, program.Attrs{}, y))
		if c.later >= 0 {
			use()
		}
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		peak, _ := rewrite.LiveBytes(p)
		q, _, err := rewrite.ApplySwap(p, rewrite.Swap{
			Mode: rewrite.SwapHeuristics, DeviceBytes: peak - 1, Nanos: millisecond, Rate: 1 << 60, Eager: true,
		})
		if got := swapped(q); err != nil || !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %v goes (%v), want %s", c.name, got, err, c.want)
		}
	}
}

// What Grappler leaves alone: small tensors, and those that are used within a
// millisecond.
func TestSwapLeavesAlone(t *testing.T) {
	small, _ := chain(t, 12, 2, 16) // 128 bytes an output
	large, _ := chain(t, 12, 256, 16)
	quick := func(*program.Program, *program.Node) int64 { return 1000 }
	for _, c := range []struct {
		name  string
		p     *program.Program
		nanos func(*program.Program, *program.Node) int64
	}{{"small", small, millisecond}, {"soon used", large, quick}} {
		_, pairs, err := rewrite.ApplySwap(c.p, rewrite.Swap{Mode: rewrite.SwapHeuristics, DeviceBytes: 1000, Nanos: c.nanos})
		if err != nil || pairs != 0 {
			t.Errorf("%s: %d pairs, %v", c.name, pairs, err)
		}
	}
}

// At the edge: 1024 bytes stay and a float more goes; a millisecond between
// making and use stays and a nanosecond more goes.
func TestSwapLeavesAloneUpToItsBounds(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int64 // of an output, in floats
		nanos int64 // of the loss, which is between every making and use
		goes  bool
	}{
		{"1024 bytes", 256, 1_000_001, false},
		{"1028 bytes", 257, 1_000_001, true},
		{"a millisecond", 257, 1_000_000, false},
	} {
		b := program.NewBuilder("edge", 1)
		x := b.Input("x", program.Float32, program.Shape{c.width})
		y := b.Op(program.OpTanh, program.Attrs{}, x)
		big := b.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{100, c.width}}, y)
		s := b.Op(program.OpSum, program.Attrs{}, big)
		b.Fetch("z", b.Op(program.OpMul, program.Attrs{}, y, s))
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		peak, _ := rewrite.LiveBytes(p)
		_, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{
			Mode: rewrite.SwapHeuristics, DeviceBytes: peak - 1, Rate: 1 << 60,
			Nanos: func(_ *program.Program, n *program.Node) int64 {
				if n.Op == program.OpSum {
					return c.nanos
				}
				return 0
			},
		})
		if err != nil || (pairs == 1) != c.goes {
			t.Errorf("%s: %d pairs (%v), want it to go: %v", c.name, pairs, err, c.goes)
		}
	}
}

// Two peaks of one height want a round each.
func TestSwapGoesOnUntilNoPeakIsAbove(t *testing.T) {
	b := program.NewBuilder("two peaks", 1)
	x := b.Input("x", program.Float32, program.Shape{1024})
	for range 2 {
		y := b.Op(program.OpTanh, program.Attrs{}, x)
		big := b.Op(program.OpBroadcastTo, program.Attrs{Shape: program.Shape{100, 1024}}, y)
		x = b.Op(program.OpMul, program.Attrs{}, y, b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpExp, program.Attrs{}, b.Op(program.OpAbs, program.Attrs{}, big))))
	}
	b.Fetch("z", x)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	peak, _ := rewrite.LiveBytes(p)
	q, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapHeuristics, DeviceBytes: peak - 1, Nanos: millisecond})
	if after, _ := rewrite.LiveBytes(q); err != nil || pairs != 2 || after >= peak {
		t.Errorf("%d pairs (%v), peak %d, was %d; want one pair for each peak", pairs, err, after, peak)
	}
}

// Swap-in starts early enough for 16 GB/s before the tensor's first reader.
func TestSwapInStartsInTime(t *testing.T) {
	p, _ := chain(t, 20, 1<<14, 64) // 4 MiB an output: 0.26 ms on the link
	tenth := func(*program.Program, *program.Node) int64 { return 100_000 }
	peak, _ := rewrite.LiveBytes(p)
	q, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapHeuristics, DeviceBytes: peak - 1, Nanos: tenth})
	if err != nil || pairs != 1 {
		t.Fatalf("%d pairs, %v", pairs, err)
	}
	order := rewrite.FIFO(q)
	trigger, use := -1, len(order)
	for i, id := range order {
		n := &q.Nodes[id]
		if n.Op == program.OpSwapIn {
			trigger = slices.Index(order, n.Control[0])
		}
		for _, v := range n.Inputs {
			if from := q.Values[v].Producer; from != program.None && q.Nodes[from].Op == program.OpSwapIn {
				use = min(use, i)
			}
		}
	}
	// Three nodes of 0.1 ms and SwapIn itself lie between.
	if got := use - trigger - 1; got != 4 {
		t.Errorf("%d nodes between trigger and reader, want 4", got)
	}
}

// Without a distance asked for, manual swapping begins as early, too, and no
// later than DefaultAhead nodes before.
func TestSwapManualStartsInTime(t *testing.T) {
	p, _ := chain(t, 40, 1<<14, 64) // 4 MiB an output: 0.262 ms on the link
	order := rewrite.FIFO(p)
	for _, c := range []struct {
		nanos int64 // of a node
		rate  int64 // of the link
		nodes int   // between the trigger and the first reader
	}{{10_000, 0, 27}, {50_000, 0, 6}, {1_000_000, 0, rewrite.DefaultAhead}, {50_000, 8_000_000_000, 11}} {
		q, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{
			Mode: rewrite.SwapManual, Match: []string{"layer005/Tanh"}, Rate: c.rate, Nanos: func(*program.Program, *program.Node) int64 { return c.nanos },
		})
		if err != nil || pairs != 1 {
			t.Fatal(pairs, err)
		}
		place := map[string]int{} // in the order before
		for i, n := range order {
			place[p.Nodes[n].Name] = i
		}
		trigger, use := -1, len(order)
		for i := range q.Nodes {
			n := &q.Nodes[i]
			if n.Op == program.OpSwapIn {
				trigger = place[q.Nodes[n.Control[0]].Name]
			}
			for _, v := range n.Inputs {
				if from := q.Values[v].Producer; from != program.None && q.Nodes[from].Op == program.OpSwapIn {
					use = min(use, place[n.Name])
				}
			}
		}
		if got := use - trigger - 1; got != c.nodes {
			t.Errorf("nodes of %d ns: the way back begins %d nodes ahead, want %d", c.nanos, got, c.nodes)
		}
	}
}

// Manual swapping takes what matches and is large enough, and brings it back
// the given number of nodes ahead.
func TestSwapManual(t *testing.T) {
	p, _ := chain(t, 12, 256, 16)
	before, _ := rewrite.LiveBytes(p)
	for _, c := range []struct {
		swap rewrite.Swap
		want []string // the tensors' layers
	}{
		{rewrite.Swap{Match: []string{"layer003/*"}}, []string{"003"}},
		{rewrite.Swap{Match: []string{"layer00*/Tanh", "layer010/MatMul"}}, []string{"000", "001", "002", "003", "004", "005", "006", "007", "008", "009"}},
		{rewrite.Swap{Above: 256*16*4 + 1}, nil},
		{rewrite.Swap{Match: []string{"layer011/*"}}, nil}, // read again at once
	} {
		c.swap.Mode = rewrite.SwapManual
		q, _, err := rewrite.ApplySwap(p, c.swap)
		if err != nil {
			t.Fatal(err)
		}
		var layers []string
		for _, s := range swapped(q) {
			layers = append(layers, s[len("layer"):strings.IndexByte(s, '/')])
		}
		if !slices.Equal(layers, c.want) {
			t.Errorf("%+v: layers %v went, want %v", c.swap, layers, c.want)
		}
		if peak, _ := rewrite.LiveBytes(q); len(c.want) > 1 && peak >= before {
			t.Errorf("%+v: the peak is %d, was %d", c.swap, peak, before)
		}
	}
	if _, _, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapManual, Ahead: -1}); err == nil {
		t.Error("swapping -1 nodes ahead is no error")
	}
	if _, _, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapHeuristics}); err == nil {
		t.Error("a device without memory is no error")
	}
	for _, m := range []rewrite.SwapMode{rewrite.SwapManual, rewrite.SwapHeuristics} {
		if _, _, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: m, DeviceBytes: before - 1, Rate: -1}); err == nil || !strings.Contains(err.Error(), "nothing would come back") {
			t.Errorf("a link that moves nothing: %v", err)
		}
	}
}

// The farther ahead a tensor is brought back, the sooner it takes memory.
func TestSwapAheadTradesMemory(t *testing.T) {
	p, _ := chain(t, 40, 256, 16)
	last := int64(0)
	for _, ahead := range []int{1, 8, 32} {
		q, pairs, err := rewrite.ApplySwap(p, rewrite.Swap{Mode: rewrite.SwapManual, Ahead: ahead})
		if err != nil || pairs == 0 {
			t.Fatal(pairs, err)
		}
		peak, _ := rewrite.LiveBytes(q)
		t.Logf("%d nodes ahead: %d pairs, peak %d", ahead, pairs, peak)
		if peak < last {
			t.Errorf("%d nodes ahead: peak %d, less than %d with fewer", ahead, peak, last)
		}
		last = peak
	}
}

// Sums of three and more, of the types that TensorFlow accumulates.
func TestWhichSumsAreAccumulated(t *testing.T) {
	for _, c := range []struct {
		dtype program.DType
		parts int
		want  int
	}{
		{program.Float32, 2, 0},
		{program.Float32, 3, 1},
		{program.Float64, 3, 1},
		{program.Float16, 3, 1},
		{program.Int64, 3, 1},
		{program.BFloat16, 3, 0},
		{program.Int32, 3, 0},
	} {
		b := program.NewBuilder("sum", 1)
		var parts []program.ValueID
		for range c.parts {
			parts = append(parts, b.Input("x", c.dtype, program.Shape{1024}))
		}
		b.Fetch("sum", b.Op(program.OpAddN, program.Attrs{}, parts...))
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if _, sums, err := rewrite.AccumulateSums(p, 1); err != nil || sums != c.want {
			t.Errorf("a sum of %d of %s: %d accumulated, %v; want %d", c.parts, c.dtype, sums, err, c.want)
		}
	}
}

// A sum of more than two is accumulated only where the modelled peak exceeds
// 80 % of the device, and then a summand dies when it is added.
func TestAccumulateSums(t *testing.T) {
	b := program.NewBuilder("sums", 1)
	x := b.Input("x", program.Float32, mega)
	first := b.Op(program.OpTanh, program.Attrs{}, x)
	parts := []program.ValueID{first}
	y := first
	for range 6 { // each is made from the one before
		y = b.Op(program.OpMatMul, program.Attrs{}, y, y)
		parts = append(parts, y)
	}
	b.Fetch("sum", b.Op(program.OpAddN, program.Attrs{}, parts...))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	peak, _ := rewrite.LiveBytes(p)
	for _, c := range []struct {
		device int64
		sums   int
	}{{0, 0}, {peak * 10 / 8, 0}, {peak*10/8 - 64, 1}, {mib, 1}} {
		q, sums, err := rewrite.AccumulateSums(p, c.device)
		if err != nil || sums != c.sums {
			t.Errorf("peak %d on a device of %d: %d sums, %v; want %d", peak, c.device, sums, err, c.sums)
			continue
		}
		after, _ := rewrite.LiveBytes(q)
		if (after < peak/2) != (sums == 1) {
			t.Errorf("%d sums: the peak is %d, was %d", sums, after, peak)
		}
	}
}
