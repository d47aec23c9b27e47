package pipeline

import (
	"math"
	"slices"
	"testing"
)

func TestAutomaticMapStartsWithOneCallAndGrows(t *testing.T) {
	d := FromSlices(1000, 4).Map(8*ms, Auto).Batch(8, false).Prefetch(1)
	m := mustOpen(t, d)
	p := m.root.(*prefetch).in.(*batcher).in.(*parallel)
	var gaps []int64
	for now := int64(0); len(gaps) < 20; {
		b, err := m.Next(now)
		if err != nil {
			t.Fatal(err)
		}
		gaps = append(gaps, b.Ready-now)
		now = b.Ready
	}
	if b := d.Tuned().Buffers(1)[1]; b.Stage != StageMap || b.Count != DefaultCores {
		t.Errorf("%+v: want room for as many results as there are calls in the end", b)
	}
	if gaps[0] != 64*ms || p.limit != DefaultCores {
		t.Errorf("first batch after %d ms with one call, %d calls in the end", gaps[0]/ms, p.limit)
	}
	if last := gaps[len(gaps)-1]; last != 8*ms {
		t.Errorf("a batch takes %d ms in the end, want 8: %v", last/ms, gaps)
	}
}

func TestAutomaticParallelismStaysWithinCoresAndCycle(t *testing.T) {
	_, tuned := FromFiles(File{Elements: 9, Read: ms}, File{Elements: 9}, File{Elements: 9}).Interleave(3, 1, Auto).
		With(Stage{Op: OpMap, Cost: ms, Parallel: Auto, Cores: 2}).Performance(16)
	if tuned[1].Max != 3 || tuned[2].Max != 2 || tuned[1].Value != 1 || tuned[1].Name != "parallelism" {
		t.Errorf("%+v, %+v", tuned[1], tuned[2])
	}
	if FromFiles().Interleave(Auto, 1, 1).Stages[1].Cycle != DefaultCores {
		t.Error("an automatic cycle is the number of cores")
	}
}

func TestHillClimbPutsCallsWhereTheTimeGoes(t *testing.T) {
	root, tuned := FromSlices(100, 4).Map(100, Auto).With(Stage{Op: OpMap, Cost: 1000, Parallel: Auto}).Prefetch(1).Performance(64)
	if !HillClimb(root, 4, 0) {
		t.Fatal("refused without a budget")
	}
	if slow, fast := tuned[2].Value, tuned[1].Value; slow <= fast || slow < 4 {
		t.Errorf("%d calls for the slow map, %d for the fast one", slow, fast)
	}
	// Work over cores is reached, and with one core less there are more calls
	// than needed.
	if now := root.OutputTime(0); now >= root.ProcessingTime()/4 {
		t.Errorf("output time %v, work a core %v", now, root.ProcessingTime()/4)
	}
}

func TestHillClimbRefusesBeyondTheBudget(t *testing.T) {
	root, tuned := FromSlices(100, 1000).Map(1000, Auto).Performance(64)
	tuned[1].Value = 3
	if HillClimb(root, 64, 5000) {
		t.Error("accepted 64 results of 1000 bytes in a budget of 5000")
	}
	if tuned[1].Value != 3 {
		t.Errorf("%d calls after the refusal, 3 before", tuned[1].Value)
	}
}

func TestHillClimbAtMostDoublesBuffers(t *testing.T) {
	p := &Parameter{BufferSize, 4, 1, 1000}
	source := &Node{Self: 100}
	root := &Node{Self: 100, Ratio: 1, Input: &Node{Async: true, Ratio: 1, Tuned: p, Input: source}}
	HillClimb(root, 64, 0)
	if p.Value != 8 {
		t.Errorf("buffer %d, want 8", p.Value)
	}
	HillClimb(root, 64, 0)
	if p.Value < 9 || p.Value > 16 {
		t.Errorf("buffer %d, want more and no more than 16", p.Value)
	}
}

// A larger buffer must bring more than a nanosecond an element; one more call
// is taken for less.
func TestHillClimbWantsMoreThanANanosecondOfABuffer(t *testing.T) {
	for _, c := range []struct {
		parameter string
		self      float64 // of the producer
		want      int
	}{{BufferSize, 2, 1}, {BufferSize, 1000, 8}, {Parallelism, 2, 8}} {
		p := &Parameter{c.parameter, 4, 1, 8}
		source := &Node{Self: c.self}
		root := &Node{Self: c.self, Ratio: 1, Input: &Node{Async: true, Ratio: 1, Self: c.self, Tuned: p, Input: source}}
		HillClimb(root, 64, 0)
		if p.Value != c.want {
			t.Errorf("%s over work of %v ns: %d, want %d", c.parameter, c.self, p.Value, c.want)
		}
	}
}

func TestWaitOnABuffer(t *testing.T) {
	for _, c := range []struct {
		producer, consumer float64
		k                  int
		want               float64
	}{
		{0, 5, 1, 0},
		{7, 0, 3, 7},
		{8, 8, 3, 2},        // equal: empty one time in k+1
		{10, 5, 1, 20. / 3}, // ratio 1/2: (1-1/2)/(1-1/4) = 2/3
		{5, 10, 1, 5. / 3},
	} {
		if got := wait(c.producer, c.consumer, c.k); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("wait(%v, %v, %d) = %v, want %v", c.producer, c.consumer, c.k, got, c.want)
		}
	}
	if wait(10, 10, 1) <= wait(10, 10, 8) {
		t.Error("a larger buffer does not shorten the wait")
	}
}

func TestOptimizerLooksAtDoublingIntervals(t *testing.T) {
	m := mustOpen(t, FromSlices(9, 4).Map(1, Auto).Repeat(-1))
	var looks []int64
	last := m.tuning.at
	for now := int64(0); now < 200*ms; now += ms {
		_, _ = m.Next(now)
		if m.tuning.at != last {
			last = m.tuning.at
			looks = append(looks, last/ms)
		}
	}
	if want := []int64{10, 30, 70, 150, 310}; !slices.Equal(looks, want) {
		t.Errorf("looks at %v ms, want %v", looks, want)
	}
	m.now = 1 << 60
	m.retune()
	if m.tuning.interval != 60_000*ms {
		t.Errorf("interval %d ms, want a minute at most", m.tuning.interval/ms)
	}
}

// A RAM budget that the calls' results would go beyond leaves them at one.
func TestAutomaticMapHeedsTheBudget(t *testing.T) {
	for budget, want := range map[int64]int{0: DefaultCores, 1_000_000: DefaultCores, 5000: 1} {
		s := Settings{Elements: 100, ElementBytes: 1000, Map: Map{Parallel: Auto, Cost: ms}, Batch: []int{1}, RAMBudget: budget}
		m := mustNew(t, s)
		for now := int64(0); now < 100*ms; now += ms {
			_, _ = m.Next(now)
		}
		if got := m.root.(*batcher).in.(*parallel).limit; got != want {
			t.Errorf("budget %d: %d calls, want %d", budget, got, want)
		}
	}
}
