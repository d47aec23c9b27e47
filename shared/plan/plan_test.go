package plan

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// kind is what random problems are made of.
type kind struct {
	align, fixed, gaps, windows, zero bool
}

var kinds = map[string]kind{
	"plain":   {},
	"aligned": {align: true},
	"fixed":   {fixed: true},
	"gaps":    {gaps: true},
	"windows": {gaps: true, windows: true},
	"all":     {true, true, true, true, true},
}

// random makes a problem of n buffers; fixed ones never conflict.
func (k kind) random(r *rand.Rand, n int) *Problem {
	p := &Problem{}
	for i := range n {
		b := Buffer{ID: fmt.Sprint("b", i), Lower: r.Int64N(12) - 3, Size: 1 + r.Int64N(20)}
		b.Upper = b.Lower + 1 + r.Int64N(8)
		if k.zero && r.IntN(8) == 0 {
			b.Size = 0
		}
		if k.align {
			b.Align = 1 << r.IntN(4)
		}
		if k.gaps && b.Upper-b.Lower > 2 && r.IntN(2) == 0 {
			g := Gap{Lower: b.Lower + 1, Upper: b.Upper - 1}
			if k.windows && b.Size > 0 {
				g.Low = r.Int64N(b.Size)
				g.High = g.Low + r.Int64N(b.Size-g.Low+1)
			}
			b.Gaps = []Gap{g}
		}
		p.Buffers = append(p.Buffers, b)
		if k.fixed && r.IntN(4) == 0 {
			f := &p.Buffers[i]
			f.Fixed = true
			f.Offset = r.Int64N(5) * 8
			if _, _, err := BestGreedy(p); err != nil {
				f.Fixed, f.Offset = false, 0
			}
		}
	}
	return p
}

// bruteForce is the least height: that of the best order, each buffer in turn
// at the lowest offset with room. Whole buffers only.
func bruteForce(p *Problem) int64 {
	g, err := newGreedy(p)
	if err != nil {
		panic(err)
	}
	order := make([]int32, len(p.Buffers))
	for i := range order {
		order[i] = int32(i)
	}
	best := int64(1) << 62
	var permute func(k int)
	permute = func(k int) {
		if k == len(order) {
			plan, _ := g.plan(order, First, nil)
			best = min(best, plan.Height)
			return
		}
		for i := k; i < len(order); i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
	return best
}

// TestProvenIsOptimal: on up to 6 buffers, every order tried.
func TestProvenIsOptimal(t *testing.T) {
	aboveLoad := 0
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 1))
			for i := range 250 {
				p := k.random(r, 1+i%6)
				res, err := Minimize(p, Options{Nodes: 20000})
				if err != nil {
					t.Fatal(err)
				}
				if err := Check(p, res.Plan); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				want := bruteForce(p)
				switch {
				case k.windows && res.Height > want, !k.windows && (res.Height != want || !res.Proven()):
					t.Errorf("%d: height %d, floor %d, every order tried gives %d: %+v", i, res.Height, res.Floor, want, p.Buffers)
				case k.windows && res.Floor > want:
					t.Errorf("%d: floor %d above a plan of height %d", i, res.Floor, want)
				}
				if want > res.Load {
					aboveLoad++
				}
			}
		})
	}
	if aboveLoad == 0 {
		t.Error("no problem had its optimum above the load")
	}
}

// TestPlansObeyTheRules: larger problems of all kinds.
func TestPlansObeyTheRules(t *testing.T) {
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 2))
			for i := range 60 {
				p := k.random(r, 5+i)
				res, err := Minimize(p, Options{Nodes: 3000})
				if err != nil {
					t.Fatal(err)
				}
				if err := Check(p, res.Plan); err != nil {
					t.Fatalf("%d: %v", i, err)
				}
				if res.Load > res.Floor || res.Floor > res.Height || res.Height > res.Greedy || res.Load != Load(p) || res.Floor < Floor(p) {
					t.Errorf("%d: load %d, floor %d, height %d, greedy %d", i, res.Load, res.Floor, res.Height, res.Greedy)
				}
				for _, m := range Methods() {
					plan, err := Greedy(p, m)
					if err != nil {
						t.Fatal(err)
					}
					if err := Check(p, plan); err != nil {
						t.Errorf("%d %s: %v", i, m, err)
					}
					if plan.Height < res.Height {
						t.Errorf("%d: %s has height %d, the search %d", i, m, plan.Height, res.Height)
					}
				}
			}
		})
	}
}

// optimum fails unless the optimum is proven.
func optimum(t *testing.T, p *Problem) int64 {
	t.Helper()
	r, err := Minimize(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Proven() {
		t.Fatalf("height %d, floor %d: not proven", r.Height, r.Floor)
	}
	return r.Height
}

// TestScalingReversingSplitting: scaling all sizes scales the height, reversed
// time keeps load and optimum, parts that never meet are independent.
func TestScalingReversingSplitting(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 3))
	for range 60 {
		p := kind{}.random(r, 4+r.IntN(8))
		want := optimum(t, p)
		scaled, reversed, joined := &Problem{}, &Problem{}, &Problem{}
		for _, b := range p.Buffers {
			s, v := b, b
			s.Size *= 1000
			v.Lower, v.Upper = -b.Upper, -b.Lower
			scaled.Buffers = append(scaled.Buffers, s)
			reversed.Buffers = append(reversed.Buffers, v)
			joined.Buffers = append(joined.Buffers, b)
		}
		other := kind{}.random(r, 4+r.IntN(8))
		for _, b := range other.Buffers {
			b.Lower, b.Upper = b.Lower+100, b.Upper+100
			joined.Buffers = append(joined.Buffers, b)
		}
		for _, m := range Methods() {
			a, errA := Greedy(p, m)
			b, errB := Greedy(scaled, m)
			if errA != nil || errB != nil || b.Height != 1000*a.Height {
				t.Errorf("%s: height %d, with sizes times 1000 %d", m, a.Height, b.Height)
			}
		}
		if got := optimum(t, scaled); got != 1000*want {
			t.Errorf("scaled by 1000: %d, want %d", got, 1000*want)
		}
		if got := optimum(t, reversed); got != want || Load(reversed) != Load(p) {
			t.Errorf("reversed: %d load %d, want %d and %d", got, Load(reversed), want, Load(p))
		}
		if got := optimum(t, joined); got != max(want, optimum(t, other)) {
			t.Errorf("joined: %d, want the larger of %d and %d", got, want, optimum(t, other))
		}
	}
}

// TestSimpleProblems: empty, one, disjoint, all at once.
func TestSimpleProblems(t *testing.T) {
	life := func(lower, upper, size int64) Buffer { return Buffer{Lower: lower, Upper: upper, Size: size} }
	for _, c := range []struct {
		name    string
		buffers []Buffer
		height  int64
	}{
		{"empty", nil, 0},
		{"one", []Buffer{life(3, 9, 7)}, 7},
		{"nothing but size 0", []Buffer{life(0, 1, 0), life(0, 1, 0)}, 0},
		{"disjoint", []Buffer{life(0, 1, 7), life(1, 2, 9), life(5, 6, 3)}, 9},
		{"all overlapping", []Buffer{life(0, 4, 7), life(1, 5, 9), life(3, 6, 3)}, 19},
		{"half-open lives", []Buffer{life(0, 3, 7), life(3, 6, 7)}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Problem{Buffers: c.buffers}
			if got := optimum(t, p); got != c.height {
				t.Errorf("height %d, want %d", got, c.height)
			}
			for _, m := range Methods() {
				plan, err := Greedy(p, m)
				if err != nil || plan.Height != c.height || len(plan.Offsets) != len(c.buffers) {
					t.Errorf("%s: %+v (%v), want height %d", m, plan, err, c.height)
				}
				if len(c.buffers) == 1 && plan.Offsets[0] != 0 {
					t.Errorf("%s: one buffer at %d, want 0", m, plan.Offsets[0])
				}
			}
		})
	}
}

// TestAlignmentAndFixedOffsets: multiples of 256, a fixed offset kept, and
// contradicting ones named.
func TestAlignmentAndFixedOffsets(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 4))
	p := &Problem{}
	for range 40 {
		lower := r.Int64N(20)
		p.Buffers = append(p.Buffers, Buffer{Lower: lower, Upper: lower + 1 + r.Int64N(9), Size: 1 + r.Int64N(5000), Align: 256})
	}
	p.Buffers[7].Fixed, p.Buffers[7].Offset = true, 2048
	res, err := Minimize(p, Options{Nodes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(p, res.Plan); err != nil {
		t.Error(err)
	}
	if i := slices.IndexFunc(res.Offsets, func(o int64) bool { return o%256 != 0 }); i >= 0 {
		t.Errorf("buffer %d at %d: not a multiple of 256", i, res.Offsets[i])
	}
	if res.Offsets[7] != 2048 {
		t.Errorf("the fixed buffer is at %d, want 2048", res.Offsets[7])
	}
	two := &Problem{Buffers: []Buffer{
		{ID: "left", Upper: 4, Size: 8, Fixed: true},
		{ID: "free", Upper: 4, Size: 8},
		{ID: "right", Lower: 3, Upper: 6, Size: 8, Fixed: true, Offset: 7},
	}}
	_, err = Minimize(two, Options{})
	if !errors.Is(err, ErrFixed) || !strings.Contains(err.Error(), "left") || !strings.Contains(err.Error(), "right") {
		t.Errorf("error %v, want the conflict of left and right", err)
	}
}

// TestFloorsAreSharperThanLoads: offsets that are multiples of 256 cost all
// buffers but the topmost their padding, and a fixed offset is as high as it is.
func TestFloorsAreSharperThanLoads(t *testing.T) {
	for _, c := range []struct {
		name        string
		buffers     []Buffer
		load, floor int64
	}{
		{"aligned", []Buffer{{Upper: 3, Size: 5, Align: 256}, {Upper: 3, Size: 4, Align: 256}}, 9, 256 + 4},
		{"the topmost saves most", []Buffer{{Upper: 3, Size: 255, Align: 256}, {Upper: 3, Size: 1, Align: 256}, {Upper: 3, Size: 256, Align: 256}}, 512, 513},
		{"one is not aligned", []Buffer{{Upper: 3, Size: 5, Align: 256}, {Upper: 3, Size: 4}}, 9, 9},
		{"fixed", []Buffer{{Upper: 3, Size: 5, Fixed: true, Offset: 100}}, 5, 105},
	} {
		p := &Problem{Buffers: c.buffers}
		if Load(p) != c.load || Floor(p) != c.floor || optimum(t, p) < c.floor {
			t.Errorf("%s: load %d, floor %d, optimum %d; want %d and %d", c.name, Load(p), Floor(p), optimum(t, p), c.load, c.floor)
		}
	}
}

// TestGapsShareBytes: what a gap leaves free is used.
func TestGapsShareBytes(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: "a", Upper: 9, Size: 10, Gaps: []Gap{{Lower: 3, Upper: 6}}},
		{ID: "b", Lower: 3, Upper: 6, Size: 10},
	}}
	if got := optimum(t, p); got != 10 {
		t.Errorf("height %d, want 10", got)
	}
	p.Buffers[0].Gaps[0].High = 4 // the lower 4 bytes stay
	if got := optimum(t, p); got != 14 {
		t.Errorf("with a window: height %d, want 14", got)
	}
}

// TestCheckRefusesCorruptedPlans: one offset moved by 1, and other damage.
func TestCheckRefusesCorruptedPlans(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: "a", Upper: 4, Size: 8},
		{ID: "b", Lower: 2, Upper: 6, Size: 8},
		{ID: "c", Lower: 3, Upper: 5, Size: 4},
		{ID: "d", Lower: 4, Upper: 6, Size: 8, Align: 4},
	}}
	good := Plan{[]int64{0, 8, 16, 0}, 20}
	if err := Check(p, good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		plan Plan
		want string
	}{
		"a + 1":     {Plan{[]int64{1, 8, 16, 0}, 20}, "buffers a and b overlap at time 2"},
		"b + 1":     {Plan{[]int64{0, 9, 16, 0}, 20}, "buffers b and c overlap at time 3"},
		"c + 1":     {Plan{[]int64{0, 8, 17, 0}, 20}, "says height 20, its buffers reach 21"},
		"d + 1":     {Plan{[]int64{0, 8, 16, 1}, 20}, "not a multiple of its alignment 4"},
		"d + 4":     {Plan{[]int64{0, 8, 16, 4}, 20}, "buffers b and d overlap at time 4"},
		"below 0":   {Plan{[]int64{-8, 8, 16, 0}, 20}, "out of range"},
		"too short": {Plan{[]int64{0, 8, 16}, 20}, "3 offsets for 4 buffers"},
	} {
		if err := Check(p, c.plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestInvalidProblemsAreRefused: by every entry.
func TestInvalidProblemsAreRefused(t *testing.T) {
	for want, b := range map[string]Buffer{
		"which is empty":     {Lower: 3, Upper: 3, Size: 1},
		"size -1":            {Upper: 1, Size: -1},
		"power of two":       {Upper: 1, Size: 1, Align: 3},
		"multiple of":        {Upper: 1, Size: 1, Align: 4, Fixed: true, Offset: 2},
		"without Fixed":      {Upper: 1, Size: 1, Offset: 2},
		"outside the life":   {Upper: 3, Size: 1, Gaps: []Gap{{Lower: 2, Upper: 4}}},
		"sum up to more":     {Upper: 3, Size: 1 << 62},
		"begins before the":  {Upper: 9, Size: 1, Gaps: []Gap{{Lower: 2, Upper: 4}, {Lower: 3, Upper: 5}}},
		"keeps the bytes [2": {Upper: 9, Size: 1, Gaps: []Gap{{2, 4, 2, 3}}},
	} {
		p := &Problem{Buffers: []Buffer{{Upper: 1, Size: 1}, b}}
		_, errA := Greedy(p, Method{})
		_, _, errB := BestGreedy(p)
		_, errC := Minimize(p, Options{})
		errD := Check(p, Plan{make([]int64, 2), 1})
		for _, err := range []error{errA, errB, errC, errD} {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "buffer #1") {
				t.Errorf("error %v, want %q for buffer #1", err, want)
			}
		}
	}
}

func puzzle(r *rand.Rand, pieces int, width, height int64) *Problem {
	return Puzzle(pieces, width, height, r.Uint64())
}

// TestPuzzlesAreSolved: perfect packings without a byte to spare.
func TestPuzzlesAreSolved(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 5))
	for i := range 20 {
		p := puzzle(r, 10+2*i, 30, 10000)
		if got := optimum(t, p); got != 10000 {
			t.Errorf("%d pieces: height %d, want 10000", len(p.Buffers), got)
		}
	}
}

// TestPartsArePlannedApart: hard parts that never meet are no harder together.
func TestPartsArePlannedApart(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 10))
	joined := &Problem{}
	for i := range int64(8) {
		for _, b := range puzzle(r, 60, 60, 10000).Buffers {
			b.Lower, b.Upper = b.Lower+100*i, b.Upper+100*i
			joined.Buffers = append(joined.Buffers, b)
		}
	}
	r.Shuffle(len(joined.Buffers), func(i, j int) {
		joined.Buffers[i], joined.Buffers[j] = joined.Buffers[j], joined.Buffers[i]
	})
	res, err := Minimize(joined, Options{})
	if err != nil || !res.Proven() || res.Height != 10000 {
		t.Fatalf("height %d, floor %d (%v), want 10000 proven", res.Height, res.Floor, err)
	}
	if err := Check(joined, res.Plan); err != nil {
		t.Error(err)
	}
}

// TestAProofOfOnePartSaysNothingOfAnother: heights of the first part are even,
// and 32 can be had; that the second needs 33 does not make that 34.
func TestAProofOfOnePartSaysNothingOfAnother(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{Lower: -3, Upper: -2, Size: 14},
		{Lower: -3, Upper: 1, Size: 10, Align: 4},
		{Lower: 0, Upper: 1, Size: 16, Align: 8},
		{Lower: -2, Upper: 1, Size: 2, Align: 8, Gaps: []Gap{{Lower: -1, Upper: 0}}},
		{Lower: 7, Upper: 10, Size: 17, Align: 8, Gaps: []Gap{{Lower: 8, Upper: 9}}},
		{Lower: 7, Upper: 8, Size: 11, Align: 8},
	}}
	if got := optimum(t, p); got != 33 {
		t.Errorf("height %d, want 33", got)
	}
}

// TestSameBudgetSamePlan: the plan that a budget gives is part of what this
// package promises. The number was recorded natively; the same test runs as
// WebAssembly. It changes, on purpose, whenever the search does.
func TestSameBudgetSamePlan(t *testing.T) {
	const want = 4756181518434839918
	h := fnv.New64a()
	r := rand.New(rand.NewPCG(7, 6))
	for i := range 6 {
		p := puzzle(r, 60+20*i, 80, 100000)
		for _, nodes := range []int64{1, 100, 20000} {
			a, errA := Minimize(p, Options{Nodes: nodes})
			b, errB := Minimize(p, Options{Nodes: nodes})
			if errA != nil || errB != nil || !slices.Equal(a.Offsets, b.Offsets) || a.Nodes != b.Nodes {
				t.Fatalf("two searches of %d nodes differ", nodes)
			}
			fmt.Fprint(h, a.Offsets, a.Nodes, a.Floor)
		}
	}
	if h.Sum64() != want {
		t.Errorf("hash of the plans %d, want %d", h.Sum64(), uint64(want))
	}
}

// TestCancelLeavesAValidPlan: whenever it comes, at once included.
func TestCancelLeavesAValidPlan(t *testing.T) {
	p := puzzle(rand.New(rand.NewPCG(7, 7)), 300, 200, 100000)
	for _, after := range []int{0, 1, 2, 5, 20, 100} {
		asked := 0
		r, err := Minimize(p, Options{Nodes: 1 << 40, Stop: func() bool { asked++; return asked > after }})
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(p, r.Plan); err != nil {
			t.Errorf("after %d: %v", after, err)
		}
		if !r.Proven() && asked != after+1 {
			t.Errorf("asked %d times, though the answer was yes after %d", asked, after)
		}
	}
}

// TestGoalEndsTheSearch: at a plan low enough, or at proof that there is none.
func TestGoalEndsTheSearch(t *testing.T) {
	p := puzzle(rand.New(rand.NewPCG(7, 8)), 40, 30, 10000)
	r, err := Minimize(p, Options{Goal: 12000})
	if err != nil || r.Height > 12000 {
		t.Errorf("height %d (%v), want 12000 or less", r.Height, err)
	}
	r, err = Minimize(p, Options{Goal: 9999})
	if err != nil || r.Floor <= 9999 || r.Nodes > 40 {
		t.Errorf("floor %d after %d nodes (%v), want it above 9999 at once", r.Floor, r.Nodes, err)
	}
}

// TestProgressOnlyImproves: heights fall, the floor rises.
func TestProgressOnlyImproves(t *testing.T) {
	p := puzzle(rand.New(rand.NewPCG(7, 9)), 80, 60, 10000)
	var heights, floors []int64
	r, err := Minimize(p, Options{Progress: func(r *Result) {
		heights, floors = append(heights, r.Height), append(floors, r.Floor)
	}})
	if err != nil || len(heights) < 2 || heights[len(heights)-1] != r.Height {
		t.Fatalf("heights %v, result %d (%v)", heights, r.Height, err)
	}
	if !slices.IsSortedFunc(heights, func(a, b int64) int { return int(b - a) }) || !slices.IsSorted(floors) {
		t.Errorf("heights %v, floors %v", heights, floors)
	}
}

// TestMadeUpProblems: as many buffers as asked for, valid, and planned.
func TestMadeUpProblems(t *testing.T) {
	for name, p := range map[string]*Problem{"puzzle": Puzzle(200, 100, 1<<20, 1), "training": Training(2000, 1)} {
		plan, _, err := BestGreedy(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(p, plan); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(p.Buffers); n != 200 && n != 2000 {
			t.Errorf("%s: %d buffers", name, n)
		}
	}
	if got := Load(Puzzle(200, 100, 1<<20, 1)); got != 1<<20 {
		t.Errorf("the puzzle's load is %d, want its height %d", got, 1<<20)
	}
}

func TestMethodNames(t *testing.T) {
	for _, m := range Methods() {
		if again, err := ParseMethod(m.String()); err != nil || again != m {
			t.Errorf("%s: %v %v", m, again, err)
		}
	}
	if _, err := ParseMethod("size"); err == nil || !strings.Contains(err.Error(), "size-first, size-best") {
		t.Errorf("error %v, want the choices", err)
	}
}
