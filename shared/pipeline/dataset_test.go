package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/event"
)

func mustOpen(tb testing.TB, d Dataset) *Model {
	tb.Helper()
	m, err := d.Open(nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// all gives the elements of a dataset as they come, up to a limit.
func all(tb testing.TB, d Dataset, limit int) [][]int32 {
	tb.Helper()
	return drain(tb, mustOpen(tb, d), limit)
}

func TestChecklistBatchOfRange(t *testing.T) {
	if got := sizes(all(t, Range(10).Batch(3, false), 99)); !slices.Equal(got, []int{3, 3, 3, 1}) {
		t.Errorf("sizes %v", got)
	}
	if got := sizes(all(t, Range(10).Batch(3, true), 99)); !slices.Equal(got, []int{3, 3, 3}) {
		t.Errorf("drop_remainder: sizes %v", got)
	}
}

func TestChecklistBatchOfNoneIsInvalid(t *testing.T) {
	for _, n := range []int{0, -2} {
		_, err := Range(10).Batch(n, false).Open(nil, nil)
		if !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), fmt.Sprintf("batch: size %d", n)) {
			t.Errorf("batch(%d): %v", n, err)
		}
	}
}

func TestChecklistBatchNamesShapesThatDiffer(t *testing.T) {
	ragged := FromSlices(6, 8)
	ragged.Stages[0].Shapes = [][][]int64{{{5}, {2}}, {{5}, {3}}}
	for _, d := range []Dataset{ragged.Batch(2, false), ragged.Map(1, 4).Batch(2, false).Prefetch(1), ragged.Map(1, 2).Batch(2, false).Rewrite(DefaultRewrites())} {
		m := mustOpen(t, d)
		for range 3 { // an error stands for one batch
			_, err := m.Next(0)
			if !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "component 1 of element 1 of the batch has the shape [3], that of the first [2]") {
				t.Errorf("%v: %v", d.Names(), err)
			}
		}
		if _, err := m.Next(0); !errors.Is(err, ErrEnd) {
			t.Errorf("%v: after the last: %v", d.Names(), err)
		}
	}
	even := FromSlices(6, 8)
	even.Stages[0].Shapes = [][][]int64{{{5}, {2}}}
	if got := all(t, even.Batch(2, false), 9); len(got) != 3 {
		t.Errorf("equal shapes: %v", got)
	}
}

func TestChecklistShuffleIsAPermutationAndReshuffles(t *testing.T) {
	for seed := range uint64(30) {
		// Two iterations of the shuffle itself: the repeat starts it anew.
		two := flat(all(t, Range(5).Shuffle(5, seed).Repeat(2), 99))
		first, second := two[:5], two[5:]
		for _, it := range [][]int32{first, second} {
			if got := slices.Sorted(slices.Values(it)); !slices.Equal(got, []int32{0, 1, 2, 3, 4}) {
				t.Fatalf("seed %d: %v", seed, it)
			}
		}
		fixed := flat(all(t, Range(5).With(Stage{Op: OpShuffle, N: 5, Seed: seed, Fixed: true}).Repeat(2), 99))
		if !slices.Equal(fixed[:5], fixed[5:]) || !slices.Equal(fixed[:5], first) {
			t.Errorf("seed %d: without reshuffling %v, and %v first with it", seed, fixed, first)
		}
	}
	same := 0
	for seed := range uint64(30) {
		two := flat(all(t, Range(5).Shuffle(5, seed).Repeat(2), 99))
		if slices.Equal(two[:5], two[5:]) {
			same++
		}
	}
	if same > 2 { // by chance one in 120
		t.Errorf("%d of 30 iterations came in the same order again", same)
	}
}

func TestChecklistShuffleOfOneAndOfTwo(t *testing.T) {
	if got := flat(all(t, Range(6).Shuffle(1, 3), 99)); !slices.Equal(got, []int32{0, 1, 2, 3, 4, 5}) {
		t.Errorf("shuffle(1): %v", got)
	}
	seen := map[int32]bool{}
	for seed := range uint64(40) {
		got := flat(all(t, Range(4).Shuffle(2, seed), 99))
		seen[got[0]] = true
		for pos, i := range got {
			if pos < int(i)-1 {
				t.Errorf("seed %d: element %d at position %d", seed, i, pos)
			}
		}
	}
	if !seen[0] || !seen[1] || len(seen) != 2 {
		t.Errorf("first elements %v, want 0 and 1", seen)
	}
}

func TestChecklistShuffleAfterRepeatMixesEpochs(t *testing.T) {
	d := Range(3).Repeat(2).Shuffle(100, 0)
	if b := d.Buffers(1); len(b) != 1 || b[0].Count != 6 {
		t.Errorf("buffers %v, want one of 6", b)
	}
	mixed := false
	for seed := range uint64(30) {
		m := mustOpen(t, Range(3).Repeat(2).Shuffle(100, seed))
		got := drain(t, m, 1)
		if n := m.root.(*shuffler).buf.Len(); n != 5 {
			t.Errorf("seed %d: %d in the buffer after the first of 6", seed, n)
		}
		got = append(got, drain(t, m, 9)...)
		e := slices.Sorted(slices.Values(flat(got)[:3]))
		mixed = mixed || !slices.Equal(e, []int32{0, 1, 2})
	}
	if !mixed {
		t.Error("epochs never mixed")
	}
}

func TestChecklistFusedShuffleHoldsThreeEpochs(t *testing.T) {
	d := Range(3).Shuffle(100, 4).Repeat(-1).Rewrite(Rewrites{ShuffleAndRepeat: true})
	if len(d.Stages) != 2 {
		t.Fatalf("not fused: %v", d.Names())
	}
	m := mustOpen(t, d)
	var got []int32
	for range 300 {
		got = append(got, flat(drain(t, m, 1))...)
		if n := m.root.(*shuffler).buf.Len() + 1; n > 3*3+1 {
			t.Fatalf("%d elements in the buffer", n)
		}
	}
	for e := range 100 { // and epochs do not mix
		if x := slices.Sorted(slices.Values(got[3*e : 3*e+3])); !slices.Equal(x, []int32{0, 1, 2}) {
			t.Fatalf("epoch %d: %v", e, x)
		}
	}
	if b := d.Buffers(1); b[0].Count != 10 {
		t.Errorf("buffer of %d, want 10", b[0].Count)
	}
}

// A shuffle that repeats its input delivers every element as often as the two
// stages would, and ends.
func TestFusedShuffleDeliversEveryElementOfEveryTurn(t *testing.T) {
	for times := range 5 {
		d := Range(3).Shuffle(100, 4).Repeat(times).Rewrite(Rewrites{ShuffleAndRepeat: true})
		if len(d.Stages) != 2 {
			t.Fatalf("not fused: %v", d.Names())
		}
		count := map[int32]int{}
		for _, i := range flat(all(t, d, 99)) {
			count[i]++
		}
		for i := range int32(3) {
			if count[i] != times {
				t.Errorf("repeat(%d): element %d came %d times", times, i, count[i])
			}
		}
	}
	if got := all(t, Range(0).Shuffle(100, 4).Repeat(-1).Rewrite(Rewrites{ShuffleAndRepeat: true}), 99); len(got) != 0 {
		t.Errorf("an endless repeat of nothing: %v", got)
	}
}

func TestChecklistShuffleFillsBeforeTheFirstBatch(t *testing.T) {
	const mb = 1_000_000
	d := FromSlices(5000, 0).With(Stage{Op: OpMap, Cost: 10, Bytes: mb}).Shuffle(1000, 1).Batch(10, false)
	var shuffle Buffer
	for _, b := range d.Buffers(1) {
		if b.Stage == StageShuffle {
			shuffle = b
		}
	}
	if shuffle.Bytes*int64(shuffle.Count) != 1000*mb {
		t.Errorf("%+v, want 1000 MB", shuffle)
	}
	m := mustOpen(t, d)
	b, err := m.Next(0)
	if err != nil || b.Ready != (1000+9)*10 || !b.Filling || b.Stage != StageShuffle {
		t.Errorf("%+v, %v: want a wait of 1000 fetches, and one for each of the other 9", b, err)
	}
	if b, _ := m.Next(b.Ready); b.Ready != (1000+19)*10 || b.Filling {
		t.Errorf("%+v: one fetch an element later", b)
	}
}

// files has elements 0, 1, 2 in a, 10 in b, 20 and 21 in c.
func files(open, read int64) Dataset {
	return FromFiles(
		File{Elements: 3, Open: open, Read: read},
		File{Elements: 1, First: 10, Open: open, Read: read},
		File{Elements: 2, First: 20, Open: open, Read: read},
	)
}

func TestChecklistInterleaveOrder(t *testing.T) {
	for _, c := range []struct {
		cycle, block int
		want         []int32
	}{
		{2, 1, []int32{0, 10, 1, 2, 20, 21}},
		{2, 2, []int32{0, 1, 10, 2, 20, 21}},
		{1, 1, []int32{0, 1, 2, 10, 20, 21}},
		{3, 1, []int32{0, 10, 20, 1, 21, 2}},
		{9, 4, []int32{0, 1, 2, 10, 20, 21}},
	} {
		for parallel := range c.cycle + 1 {
			for _, costs := range [][2]int64{{0, 0}, {7, 2}, {0, 5}} {
				got := flat(all(t, files(costs[0], costs[1]).Interleave(c.cycle, c.block, parallel), 99))
				if !slices.Equal(got, c.want) {
					t.Errorf("cycle %d, block %d, parallel %d: %v, want %v", c.cycle, c.block, parallel, got, c.want)
				}
			}
		}
	}
	if got := flat(all(t, files(0, 0).FlatMap(), 99)); !slices.Equal(got, []int32{0, 1, 2, 10, 20, 21}) {
		t.Errorf("flat_map: %v", got)
	}
}

// The order is a function of cycle and block: whatever the costs and calls,
// and whether files are read ahead.
func TestParallelInterleaveKeepsTheOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var list []File
		for range r.IntN(12) {
			list = append(list, File{Elements: r.IntN(6), Open: r.Int64N(40), Read: r.Int64N(9)})
		}
		cycle, block := 1+r.IntN(5), 1+r.IntN(3)
		d := FromFiles(list...)
		want := flat(all(t, d.Interleave(cycle, block, 1), 999))
		p := 2
		if cycle < 2 {
			p = Auto
		}
		p = max(p, min(cycle, r.IntN(6)))
		got := flat(all(t, d.Interleave(cycle, block, p), 999))
		if !slices.Equal(got, want) {
			t.Fatalf("%v, cycle %d, block %d, parallel %d: %v, want %v", list, cycle, block, p, got, want)
		}
	}
}

func TestInterleaveRefusesMoreCallsThanItsCycle(t *testing.T) {
	_, err := files(0, 0).Interleave(2, 1, 3).Open(nil, nil)
	if !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "3 parallel calls over a cycle of 2") {
		t.Error(err)
	}
	if _, err := Range(4).Interleave(2, 1, 1).Open(nil, nil); err == nil || !strings.Contains(err.Error(), "no files") {
		t.Error(err)
	}
}

func TestInterleaveBuffersAheadOfEveryFile(t *testing.T) {
	d := files(1, 1).Interleave(2, 3, 2)
	d.Stages[0].Files[0].Bytes = 10
	want := []Buffer{{Stage: StageInterleave, Bytes: 10, Count: (2 + 2*2) * (2*3 + 1)}}
	if got := d.Buffers(1); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// One file of many elements, never asked for more: 2b+1 are read ahead.
	var ev recorder
	m, err := FromFiles(File{Elements: 100, Read: 1}).Interleave(1, 1, Auto).Open(&ev, &ev.strings)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := m.Next(0); b.Ready != 1 || b.Stage != StageInterleave {
		t.Errorf("%+v", b)
	}
	m.Advance(1000)
	if n := ev.count(event.StageBegin); n != 1+3 {
		t.Errorf("%d elements read with one taken, want 3 more", n)
	}
}

func TestChecklistParallelMapOrders(t *testing.T) {
	d := func(unordered bool) Dataset {
		return FromSlices(4, 0).With(Stage{Op: OpMap, Parallel: 4, Costs: []int64{4, 1, 1, 1}, Unordered: unordered})
	}
	for _, c := range []struct {
		unordered bool
		order     []int32
		ready     []int64
	}{
		{false, []int32{0, 1, 2, 3}, []int64{4, 4, 4, 4}},
		{true, []int32{1, 2, 3, 0}, []int64{1, 1, 1, 4}},
	} {
		m := mustOpen(t, d(c.unordered))
		for i := range c.order {
			b, err := m.Next(0)
			if err != nil || b.Indices[0] != c.order[i] || b.Ready != c.ready[i] {
				t.Errorf("unordered %t, %d: %+v, %v; want element %d at %d", c.unordered, i, b, err, c.order[i], c.ready[i])
			}
		}
	}
}

// Of several results that are there the first in the order of the input is
// taken, as TensorFlow looks through them from the front.
func TestUnorderedMapTakesTheFirstInOrderOfThoseDone(t *testing.T) {
	d := FromSlices(4, 0).With(Stage{Op: OpMap, Parallel: 4, Costs: []int64{9, 3, 2, 1}, Unordered: true})
	m := mustOpen(t, d)
	var order []int32
	for _, at := range []int64{0, 5, 5, 5} {
		b, err := m.Next(at)
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, b.Indices[0])
	}
	if want := []int32{3, 1, 2, 0}; !slices.Equal(order, want) {
		t.Errorf("elements %v, want %v", order, want)
	}
}

// Never more than 4 results, done or pending.
func TestChecklistParallelMapHoldsFour(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		var ev recorder
		m, err := FromSlices(100, 0).With(Stage{Op: OpMap, Parallel: 4, Costs: []int64{4, 1, 1, 1}, Unordered: unordered}).Open(&ev, &ev.strings)
		if err != nil {
			t.Fatal(err)
		}
		for taken, now := 1, int64(0); ; taken++ {
			b, err := m.Next(now)
			if err != nil {
				break
			}
			m.Advance(b.Ready)
			if begun := ev.count(event.StageBegin); begun > taken+4 {
				t.Fatalf("unordered %t: %d begun with %d taken", unordered, begun, taken)
			}
			now = b.Ready + 3
		}
	}
	if b := FromSlices(9, 5).Map(1, 4).Buffers(1)[1]; b != (Buffer{Stage: StageMap, Bytes: 5, Count: 4}) {
		t.Errorf("%+v", b)
	}
}

func TestChecklistPrefetchOfTwo(t *testing.T) {
	for _, c := range []struct{ k, step int64 }{{2, 10}, {0, 20}} {
		m := mustOpen(t, FromSlices(50, 4).Map(10, 1).Prefetch(int(c.k)))
		var last, step int64
		for range 40 {
			b, err := m.Next(last)
			if err != nil {
				t.Fatal(err)
			}
			step, last = b.Ready+10-last, b.Ready+10
		}
		if step != c.step {
			t.Errorf("prefetch(%d): a step takes %d, want %d", c.k, step, c.step)
		}
	}
	d := FromSlices(50, 4).Prefetch(2)
	if b := d.Buffers(1)[1]; b.Count != 3 {
		t.Errorf("%+v: two buffered and one in production", b)
	}
}

func TestChecklistCacheServesTheSecondEpoch(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		var ev recorder
		m, err := FromSlices(6, 4).Map(10, parallel).Cache().Repeat(3).Open(&ev, &ev.strings)
		if err != nil {
			t.Fatal(err)
		}
		if got := flat(drain(t, m, 99)); len(got) != 18 || !slices.Equal(got[:6], got[12:]) {
			t.Errorf("%v", got)
		}
		m.Advance(1 << 40)
		if n := ev.count(event.StageBegin); n != 6 {
			t.Errorf("parallel %d: %d map calls, want 6 of the first epoch", parallel, n)
		}
		if len(m.Warnings()) > 0 {
			t.Error(m.Warnings())
		}
	}
	if b := FromSlices(6, 4).Cache().Buffers(1)[1]; b != (Buffer{Stage: StageCache, Bytes: 4, Count: 6}) {
		t.Errorf("%+v", b)
	}
}

func TestChecklistPartialCacheIsThrownAway(t *testing.T) {
	var ev recorder
	m, err := FromSlices(6, 4).Map(10, 1).Cache().Take(4).Repeat(3).Open(&ev, &ev.strings)
	if err != nil {
		t.Fatal(err)
	}
	if got := flat(drain(t, m, 99)); !slices.Equal(got, []int32{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}) {
		t.Errorf("%v", got)
	}
	m.Advance(1 << 40)
	if n := ev.count(event.StageBegin); n != 12 {
		t.Errorf("%d map calls, want 12: nothing was cached", n)
	}
	if w := m.Warnings(); len(w) != 2 || !strings.Contains(w[0], "cache: the first pass ended after 4 elements") {
		t.Errorf("warnings %q", w)
	}
}

func TestChecklistTakeSkipRepeatAtTheirEdges(t *testing.T) {
	for _, c := range []struct {
		d    Dataset
		want []int32
		card int64
	}{
		{Range(4).Take(-1), []int32{0, 1, 2, 3}, 4},
		{Range(4).Take(0), nil, 0},
		{Range(4).Take(9), []int32{0, 1, 2, 3}, 4},
		{Range(4).Take(2), []int32{0, 1}, 2},
		{Range(4).Skip(-1), nil, 0},
		{Range(4).Skip(0), []int32{0, 1, 2, 3}, 4},
		{Range(4).Skip(3), []int32{3}, 1},
		{Range(4).Skip(9), nil, 0},
		{Range(7).Shard(3, 0), []int32{0, 3, 6}, 3},
		{Range(7).Shard(3, 1), []int32{1, 4}, 2},
		{Range(7).Shard(1, 0), []int32{0, 1, 2, 3, 4, 5, 6}, 7},
		{Range(2).Shard(5, 3), nil, 0},
		{Range(3).Shard(2, 1).Repeat(2), []int32{1, 1}, 2},
		{Range(3).Repeat(2).Shard(2, 1), []int32{1, 0, 2}, 3},
		{Range(8).Batch(2, false).Shard(2, 1), []int32{2, 3, 6, 7}, 2},
		{Range(4).Repeat(0), nil, 0},
		{Range(2).Repeat(2), []int32{0, 1, 0, 1}, 4},
		{Range(0).Repeat(-1), nil, 0},
		{Range(3).Skip(3).Repeat(-1), nil, 0},
		{Range(2).Repeat(-1).Take(5), []int32{0, 1, 0, 1, 0}, 5},
		{Range(3).Repeat(-1).Repeat(2).Skip(2).Take(2), []int32{2, 0}, 2},
		{Range(7).Batch(2, true).Repeat(2).Take(4), []int32{0, 1, 2, 3, 4, 5, 0, 1}, 4},
		{Range(7).Batch(2, false).Batch(2, false), []int32{0, 1, 2, 3, 4, 5, 6}, 2},
	} {
		if got := flat(all(t, c.d, 99)); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.d.Names(), got, c.want)
		}
		if got := c.d.Cardinality(); got != c.card {
			t.Errorf("%v: cardinality %d, want %d", c.d.Names(), got, c.card)
		}
	}
}

func TestCardinality(t *testing.T) {
	for _, c := range []struct {
		d    Dataset
		want int64
		have int64
	}{
		{Range(5).Repeat(-1), Infinite, Infinite},
		{Range(5).Repeat(-1).Batch(2, true).Skip(3), Infinite, Infinite},
		{Range(0).Repeat(-1), 0, 0},
		{files(0, 0), 3, 3},
		{files(0, 0).Interleave(2, 1, 1), Unknown, 6},
		{files(0, 0).Take(2).Interleave(2, 1, 1).Batch(3, false), Unknown, 2},
		{files(0, 0).Interleave(2, 1, 1).Repeat(3), Unknown, 18},
		{files(0, 0).Repeat(-1).Interleave(2, 1, 1), Unknown, Infinite},
		{Range(10).Map(1, 4).Shuffle(4, 1).Cache().Prefetch(2), 10, 10},
	} {
		if got := c.d.Cardinality(); got != c.want {
			t.Errorf("%v: %d, want %d", c.d.Names(), got, c.want)
		}
		if got := c.d.Elements(); got != c.have {
			t.Errorf("%v: %d elements, want %d", c.d.Names(), got, c.have)
		}
	}
}

// Elements is what comes, for chains of all kinds.
func TestElementsCountsWhatComes(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	for range 500 {
		d := randomDataset(r, true)
		n := d.Elements()
		got := len(all(t, d, 3000))
		if n >= 0 && n < 3000 && int(n) != got || n == Infinite && got < 3000 {
			t.Fatalf("%+v: %d elements came, want %d", d, got, n)
		}
	}
}

// randomDataset makes a chain of stages as they come; without time it costs
// nothing.
func randomDataset(r *rand.Rand, costs bool) Dataset {
	cost := func(n int64) int64 {
		if !costs {
			return 0
		}
		return r.Int64N(n)
	}
	d := FromSlices(r.IntN(12), 4)
	if r.IntN(3) == 0 {
		var list []File
		for range r.IntN(6) {
			list = append(list, File{Elements: r.IntN(5), Open: cost(9), Read: cost(5), Bytes: 4})
		}
		cycle := 1 + r.IntN(3)
		d = FromFiles(list...).Interleave(cycle, 1+r.IntN(3), r.IntN(cycle+1))
	}
	endless := false
	for range r.IntN(7) {
		switch r.IntN(9) {
		case 0:
			d = d.Map(cost(20), r.IntN(5))
		case 1:
			d = d.Shuffle(1+r.IntN(9), r.Uint64())
		case 2:
			n := r.IntN(5) - 1
			endless = endless || n < 0
			d = d.Repeat(n)
		case 3:
			d = d.Batch(1+r.IntN(4), r.IntN(2) == 0)
		case 4:
			if !endless {
				d = d.Cache()
			}
		case 5:
			d = d.Take(r.IntN(20) - 1)
		case 6:
			d = d.Skip(r.IntN(4))
		case 7:
			d = d.Prefetch(r.IntN(4) - 1)
		case 8:
			n := 1 + r.IntN(4)
			d = d.Shard(n, r.IntN(n))
		}
	}
	return d
}

// Costs, parallel calls and buffers change when elements come, not which.
func TestOrderDoesNotDependOnTime(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	for range 300 {
		d := randomDataset(r, true)
		plain := Dataset{slices.Clone(d.Stages)}
		for i := range plain.Stages {
			s := &plain.Stages[i]
			s.Cost, s.Open, s.Parallel = 0, 0, 1
			if s.Op == OpPrefetch {
				s.N = 0
			}
		}
		got, want := all(t, d, 200), all(t, plain, 200)
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%+v:\n%v, want\n%v", d, got, want)
		}
	}
}

// Every chain: events in the order of time, begin and end in pairs, buffers
// within their limits, batches not before they were asked for, and the same
// once more.
func TestEventsOfRandomDatasets(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 13))
	for range 300 {
		d := randomDataset(r, true)
		seed := r.Uint64()
		first := eventsOf(t, d, seed)
		for i := 1; i < len(first); i++ {
			if first[i].Time < first[i-1].Time {
				t.Fatalf("%+v: event %d goes back", d, i)
			}
		}
		if !slices.Equal(first, eventsOf(t, d, seed)) {
			t.Fatalf("%+v: other events the second time", d)
		}
	}
}

func eventsOf(t *testing.T, d Dataset, seed uint64) []event.Event {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var ev recorder
	m, err := d.Open(&ev, &ev.strings)
	if err != nil {
		t.Fatal(err)
	}
	for now, n := int64(0), 0; n < 200; n++ {
		b, err := m.Next(now)
		if err != nil {
			break
		}
		if b.Ready < now || (b.Ready > now) != (b.Stage != "") {
			t.Fatalf("%+v: asked at %d: %+v", d, now, b)
		}
		now = b.Ready + r.Int64N(50)
		m.Advance(now)
	}
	m.Advance(1 << 60)
	return ev.list
}

func TestCheckNamesTheStage(t *testing.T) {
	for want, d := range map[string]Dataset{
		"no stages":                            {},
		"from_slices: stage 1: a source comes": Range(1).With(Stage{Op: OpSlices}),
		"map: stage 0: a source comes":         {[]Stage{{Op: OpMap}}},
		"map: cost -1":                         Range(1).Map(-1, 1),
		"map_1: parallel calls -2":             Range(1).Map(1, 1).Map(1, -2),
		"shuffle: elements or count 0":         Range(1).Shuffle(0, 1),
		"interleave: cycle 0, block 1":         files(0, 0).Interleave(0, 1, 1),
		"prefetch_to_device: batch follows":    Range(1).PrefetchToDevice(1, 0).Batch(1, false),
		"files: file 0":                        FromFiles(File{Elements: -1}),
		"there is no op 99":                    Range(1).With(Stage{Op: 99}),
		"shard: index 3 of 3 shards":           Range(1).Shard(3, 3),
		"shard: index -1 of 3 shards":          Range(1).Shard(3, -1),
		"shard: elements or count 0":           Range(1).Shard(0, 0),
		"repeat: elements or count -2":         Range(1).Repeat(-2),
		"map: cost -3":                         Range(1).With(Stage{Op: OpMap, Costs: []int64{1, -3}}),
	} {
		if err := d.Check(); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestChecklistSlicesHoldTheirSourceOnce(t *testing.T) {
	b := FromSlices(60000, 28*28*4).Batch(32, false).Buffers(1)
	if len(b) != 1 || b[0] != (Buffer{Stage: StageSource, Bytes: 188160000, Count: 1}) {
		t.Errorf("%v", b)
	}
}

func TestTensorSlicesAgreeInTheirFirstDimension(t *testing.T) {
	d, err := FromTensorSlices(Component{[]int64{60000, 28, 28}, 4}, Component{[]int64{60000}, 8})
	if err != nil || d.Cardinality() != 60000 || d.bytes(0) != 28*28*4+8 {
		t.Errorf("%v, %v", d.Stages, err)
	}
	for want, list := range map[string][]Component{
		"component 1 has 59999 slices, the first has 60000": {{[]int64{60000, 28, 28}, 4}, {[]int64{59999}, 8}},
		"component 0 is a scalar":                           {{nil, 4}},
		"no arrays":                                         nil,
		"which cannot be":                                   {{[]int64{1, -3}, 4}},
		"-1 slices":                                         {{[]int64{-1}, 4}},
	} {
		if _, err := FromTensorSlices(list...); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestSlicesInAGraphAreThereTwiceUpTo2GB(t *testing.T) {
	d := FromSlices(60000, 28*28*4)
	d.Stages[0].InGraph = true
	if b := d.Buffers(1); b[0].Count != 2 || b[0].Bytes != 188160000 {
		t.Errorf("%v", b)
	}
	d.Stages[0].Bytes = 1 << 20
	if _, err := d.Open(nil, nil); !errors.Is(err, ErrInvalidArgument) || !strings.Contains(err.Error(), "no more than 2 GB") {
		t.Error(err)
	}
}

// The first element claims its budget even where there is none left, with a
// warning, and the buffer stays as it is.
func TestPrefetchWarnsOfABudgetThatIsTooSmall(t *testing.T) {
	d := FromSlices(50, 4_000_000).Map(10, 1).With(Stage{Op: OpPrefetch, N: Auto, Budget: 3_000_000})
	m := mustOpen(t, d)
	for now := int64(0); ; {
		b, err := m.Next(now)
		if err != nil {
			break
		}
		if now = b.Ready + 3; b.Limit != 1 {
			t.Fatalf("limit %d", b.Limit)
		}
	}
	if w := m.Warnings(); len(w) != 1 || !strings.Contains(w[0], "prefetch: 1 elements of 4000000 bytes are more than the budget of 3000000") {
		t.Errorf("%q", w)
	}
}

// Of 10 MB, batches of 4 MB: from 1 to 2 is granted, to 4 is not.
func TestChecklistPrefetchWithinABudget(t *testing.T) {
	for budget, want := range map[int64]int{10_000_000: 2, 16_000_000: 4, 0: 8} {
		m := mustOpen(t, FromSlices(200, 4_000_000).Map(10, 1).With(Stage{Op: OpPrefetch, N: Auto, Budget: budget}))
		limit := 0
		now := int64(0)
		for i := range 40 { // a long pause fills the buffer, then a rush empties it
			b, err := m.Next(now)
			if err != nil {
				t.Fatal(err)
			}
			now, limit = b.Ready, b.Limit
			if i%10 == 9 && i < 20 {
				now += 1000
			}
		}
		if limit != want {
			t.Errorf("budget %d: limit %d, want %d", budget, limit, want)
		}
	}
}

// prefetch_to_device: k batches there, one on its way, and the one in use is
// the consumer's.
func TestPrefetchToDeviceHoldsDeviceMemory(t *testing.T) {
	d := FromSlices(90, 4).Batch(3, false).PrefetchToDevice(2, 7)
	b := d.Buffers(1)
	if b[1] != (Buffer{Stage: StageDevice, Bytes: 12, Count: 3, Device: true}) {
		t.Errorf("%+v", b)
	}
	m := mustOpen(t, d)
	if b, _ := m.Next(0); b.Ready != 7 || b.Stage != StageDevice {
		t.Errorf("first: %+v, want it after the copy", b)
	}
	if b, _ := m.Next(100); b.Ready != 100 || b.Buffered != 2 || b.Stage != "" {
		t.Errorf("second: %+v, want it at once", b)
	}
}

func TestMapAndBatchHoldsBatchesNotElements(t *testing.T) {
	plain := FromSlices(100, 4).Map(40, 4).With(Stage{Op: OpBatch, Sizes: []int{8}, Cost: 3})
	d := plain.Rewrite(Rewrites{MapAndBatch: true})
	if !slices.Equal(d.Names(), []string{StageSource, StageMapBatch}) {
		t.Fatalf("%v", d.Names())
	}
	if b := d.Buffers(1); b[1] != (Buffer{Stage: StageMapBatch, Bytes: 32, Count: 4}) {
		t.Errorf("%+v", b)
	}
	if a, b := all(t, plain, 99), all(t, d, 99); !slices.EqualFunc(a, b, slices.Equal) {
		t.Errorf("%v, want %v", b, a)
	}
	m := mustOpen(t, d)
	if b, _ := m.Next(0); b.Ready != 80 || b.Stage != StageMapBatch {
		t.Errorf("%+v: 8 calls, 4 at a time, of 40 and no copies: 80", b)
	}
	if b, _ := m.Next(80); b.Ready != 160 {
		t.Errorf("%+v", b)
	}
	if b, _ := m.Next(100000); b.Ready != 100000 {
		t.Errorf("%+v", b)
	}
}

func TestRewriteKeepsTheElements(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 15))
	for range 300 {
		d := randomDataset(r, true)
		for _, w := range []Rewrites{{MapAndBatch: true}, {Noops: true}, {ParallelMap: true}, {Prefetch: true}} {
			if a, b := all(t, d, 200), all(t, d.Rewrite(w), 200); !slices.EqualFunc(a, b, slices.Equal) {
				t.Fatalf("%+v, %+v:\n%v, want\n%v", d, w, b, a)
			}
		}
	}
	d := Range(4).Take(-1).Skip(0).Repeat(1).Map(1, 1).Prefetch(0)
	if got := d.Rewrite(Rewrites{Noops: true, ParallelMap: true, Prefetch: true}); !slices.Equal(got.Names(), []string{StageRange, StageMap, StagePrefetch}) || got.Stages[1].Parallel != Auto {
		t.Errorf("%+v", got)
	}
}

// What is rewritten unless a program turns it off: a serial map stays serial,
// and a prefetch is put at the end where there is none.
func TestDefaultRewrites(t *testing.T) {
	for _, c := range []struct {
		d    Dataset
		want []string
	}{
		{Range(9).Map(1, 1), []string{StageRange, StageMap, StagePrefetch}},
		{Range(9).Map(1, 4).Batch(3, false), []string{StageRange, StageMapBatch, StagePrefetch}},
		{Range(9).Map(1, 1).Batch(3, false), []string{StageRange, StageMap, StageBatch, StagePrefetch}},
		{Range(9).Shuffle(3, 1).Repeat(2).Prefetch(3), []string{StageRange, StageShuffle, StagePrefetch}},
		{Range(9).Take(-1).Skip(0).Repeat(1).Prefetch(0), []string{StageRange, StagePrefetch}},
		{Range(9).Batch(3, false).PrefetchToDevice(1, 1), []string{StageRange, StageBatch, StageDevice}},
	} {
		got := c.d.Rewrite(DefaultRewrites())
		if !slices.Equal(got.Names(), c.want) {
			t.Errorf("%v becomes %v, want %v", c.d.Names(), got.Names(), c.want)
		}
		for i, s := range got.Stages {
			if s.Op == OpMap && s.Parallel == Auto {
				t.Errorf("%v: stage %d runs in parallel, which nobody asked for", c.d.Names(), i)
			}
		}
		if last := got.Stages[len(got.Stages)-1]; last.Op == OpPrefetch && c.d.Stages[len(c.d.Stages)-1].N != last.N && last.N != Auto {
			t.Errorf("%v: a prefetch of %d is put at the end, want an automatic one", c.d.Names(), last.N)
		}
	}
}

// The artificial data set of the performance guide, for chains that are not
// Settings: see TestIdealTimesOfThePerformanceGuide.
func TestIdealTimesOfThePerformanceGuideWithFiles(t *testing.T) {
	file := File{Elements: 3, Open: 30 * ms, Read: 15 * ms}
	twice := func(d Dataset) int64 { // two epochs, each of a new iterator
		var end int64
		for range 2 {
			m := mustOpen(t, d)
			for {
				b, err := m.Next(end)
				if err != nil {
					break
				}
				end = b.Ready + 10*ms
			}
		}
		return end / ms
	}
	one, two := FromFiles(file), FromFiles(file, file)
	for _, c := range []struct {
		name string
		d    Dataset
		want int64
	}{
		{"naive", one.FlatMap(), 210},
		{"prefetch", one.FlatMap().Prefetch(1), 170},
		{"prefetch auto", one.FlatMap().Prefetch(Auto), 170},
		{"sequential interleave over 2 files", two.Interleave(2, 1, 1), 420},
		{"parallel interleave over 2 files", two.Interleave(2, 1, 2), 210},
		{"map, sequential", one.FlatMap().Map(30*ms, 1), 390},
		{"map, parallel 3", one.FlatMap().Map(30*ms, 3), 230},
	} {
		if got := twice(c.d); got != c.want {
			t.Errorf("%s: %d ms, want %d", c.name, got, c.want)
		}
	}
	m := mustOpen(t, one.FlatMap().Map(30*ms, 1).Cache().Repeat(5))
	var end int64
	for {
		b, err := m.Next(end)
		if err != nil {
			break
		}
		end = b.Ready + 10*ms
	}
	if end != (195+4*30)*ms {
		t.Errorf("map and cache, 5 epochs: %d ms, want 315", end/ms)
	}
}

func TestSettingsWithFilesAndCache(t *testing.T) {
	s := Settings{
		Elements: 10, Epochs: 3, Interleave: Interleave{Cycle: 2}, Cache: true, Map: Map{Parallel: 2, Cost: 10},
		Batch: []int{4}, ElementBytes: 8, SourceBytes: 2,
	}
	var ev recorder
	m, err := New(s, &ev, &ev.strings)
	if err != nil {
		t.Fatal(err)
	}
	got := flat(drain(t, m, 99))
	if want := []int32{0, 5, 1, 6, 2, 7, 3, 8, 4, 9}; len(got) != 30 || !slices.Equal(got[:10], want) || !slices.Equal(got[20:], want) {
		t.Errorf("%v", got)
	}
	m.Advance(1 << 40)
	if n := ev.count(event.StageBegin); n != 10 {
		t.Errorf("%d map calls, want 10", n)
	}
	want := []Buffer{{Stage: StageMap, Bytes: 8, Count: 2}, {Stage: StageCache, Bytes: 8, Count: 10}}
	if b := s.Buffers(s.Limit()); !slices.Equal(b, want) {
		t.Errorf("%v, want %v", b, want)
	}
}
