package pipeline

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
)

const ms = 1_000_000

// consume runs a training loop over a pipeline and gives the time of its end
// and of every step's end.
func consume(tb testing.TB, s Settings, train int64) (end int64, steps []int64) {
	tb.Helper()
	m := mustNew(tb, s)
	for {
		b, err := m.Next(end)
		if errors.Is(err, ErrEnd) {
			return end, steps
		}
		end = b.Ready + train
		steps = append(steps, end)
	}
}

// The artificial data set of the performance guide: opening a file takes
// 30 ms, reading a sample 15, the map function 30, training 10; three samples
// in an epoch, and each of two epochs makes a new iterator.
func TestIdealTimesOfThePerformanceGuide(t *testing.T) {
	base := Settings{Elements: 3, Epochs: 1, OpenCost: 30 * ms, FetchCost: 15 * ms, Batch: []int{1}}
	for _, c := range []struct {
		name  string
		set   func(s *Settings)
		ideal int64
	}{
		{"naive", func(*Settings) {}, 210},
		{"prefetch 1", func(s *Settings) { s.Prefetch = 1 }, 170},
		{"prefetch auto", func(s *Settings) { s.Prefetch = Auto }, 170},
		{"map, sequential", func(s *Settings) { s.Map.Cost = 30 * ms }, 390},
		{"map, parallel 3", func(s *Settings) { s.Map = Map{Parallel: 3, Cost: 30 * ms} }, 230},
		{"map, parallel 8", func(s *Settings) { s.Map = Map{Parallel: 8, Cost: 30 * ms} }, 230},
	} {
		s := base
		c.set(&s)
		end, _ := consume(t, s, 10*ms)
		if 2*end != c.ideal*ms {
			t.Errorf("%s: %d ms, want %d", c.name, 2*end/ms, c.ideal)
		}
	}
}

// Steady state: the sum without prefetch, the maximum with it, and the time of
// a batch in a parallel map is n*m/min(p, cores) or that of the serial fetch.
func TestThroughputRules(t *testing.T) {
	for _, c := range []struct {
		name        string
		s           Settings
		train, step int64
	}{
		{"sum", Settings{Map: Map{Cost: 100}}, 500, 32*100 + 500},
		{"maximum, input", Settings{Map: Map{Cost: 100}, Prefetch: 1}, 500, 3200},
		{"maximum, train", Settings{Map: Map{Cost: 100}, Prefetch: 1}, 5000, 5000},
		{"maximum, equal", Settings{Map: Map{Cost: 100}, Prefetch: 2}, 3200, 3200},
		{"auto", Settings{Map: Map{Cost: 100}, Prefetch: Auto}, 500, 3200},
		{"parallel 4", Settings{Map: Map{Parallel: 4, Cost: 100}, Prefetch: 2}, 500, 800},
		{"parallel 4 on 2 cores", Settings{Map: Map{Parallel: 4, Cost: 100, Cores: 2}, Prefetch: 2}, 500, 1600},
		{"serial fetch", Settings{Map: Map{Parallel: 32, Cost: 100}, FetchCost: 20, Prefetch: 2}, 500, 640},
		{"copying", Settings{CopyCost: 7}, 500, 32*7 + 500},
		{"shuffle costs nothing later", Settings{Map: Map{Cost: 100}, Prefetch: 1, Shuffle: 64}, 500, 3200},
	} {
		c.s.Elements, c.s.Batch, c.s.Batches = 1000, []int{32}, 60
		_, steps := consume(t, c.s, c.train)
		if got := (steps[59] - steps[39]) / 20; got != c.step {
			t.Errorf("%s: a step takes %d, want %d", c.name, got, c.step)
		}
	}
}

// Costs 4, 1, 1, 1: the first result is there after 4, the others wait for it.
func TestParallelMapDeliversInOrder(t *testing.T) {
	m, err := FromSlices(4, 0).With(Stage{Op: OpMap, Parallel: 4, Costs: []int64{4, 1, 1, 1}}).Batch(1, false).Open(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(4) {
		b, err := m.Next(0)
		if err != nil || b.Ready != 4 || b.Indices[0] != i {
			t.Errorf("element %d: %+v, %v", i, b, err)
		}
	}
}

// A slot is busy until its result is taken: with two slots the fourth element
// starts only when the second is taken at 100, however idle the workers are.
func TestParallelMapHoldsNoMoreResultsThanCalls(t *testing.T) {
	m := mustNew(t, Settings{Elements: 9, Epochs: 1, Map: Map{Parallel: 2, Cost: 10}, Batch: []int{1}})
	want := []int64{10, 100, 100, 110}
	for i, ask := range []int64{0, 100, 100, 100} {
		if b, _ := m.Next(ask); b.Ready != want[i] {
			t.Errorf("batch %d, asked at %d: ready at %d, want %d", i, ask, b.Ready, want[i])
		}
	}
}

func TestPrefetchBuffersItsLimitPlusOneInTheMaking(t *testing.T) {
	var events recorder
	m, err := New(Settings{Elements: 100, Batch: []int{1}, Map: Map{Cost: 10}, Prefetch: 2}, &events, &events.strings)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := m.Next(0)
	if b.Ready != 10 || b.Stage != StageMap {
		t.Errorf("first: %+v", b)
	}
	// By 30 two lie in the buffer; the producer waits until one is taken.
	if b, _ = m.Next(1000); b.Ready != 1000 || b.Buffered != 2 || b.Stage != "" {
		t.Errorf("second: %+v", b)
	}
	m.Advance(1005)
	if got := events.count(event.StageBegin); got != 4 {
		t.Errorf("%d elements begun, want 3 and one more after the second was taken", got)
	}
	var depths []int64
	for _, e := range events.list {
		if e.Kind == event.QueueDepth {
			depths = append(depths, e.Time, e.Size, e.Requested)
		}
	}
	if want := []int64{10, 1, 2, 10, 0, 2, 20, 1, 2, 30, 2, 2, 1000, 1, 2}; !slices.Equal(depths, want) {
		t.Errorf("depths (time, size, limit) %v, want %v", depths, want)
	}
}

func TestStallsNameTheStageToBlame(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Settings
		at   int // which batch
		want string
	}{
		{"slow map", Settings{Map: Map{Cost: 9}, FetchCost: 5}, 3, StageMap},
		{"slow read", Settings{Map: Map{Cost: 5}, FetchCost: 9}, 3, StageSource},
		{"slow copy", Settings{Map: Map{Cost: 5}, CopyCost: 9}, 3, StageBatch},
		{"first fill", Settings{Map: Map{Cost: 5}, Shuffle: 50}, 0, StageShuffle},
		{"after the fill", Settings{Map: Map{Cost: 5}, Shuffle: 50}, 1, StageMap},
		{"parallel map behind a slow read", Settings{Map: Map{Parallel: 4, Cost: 5}, FetchCost: 9}, 3, StageSource},
		{"slow parallel map", Settings{Map: Map{Parallel: 2, Cost: 50}, FetchCost: 9}, 3, StageMap},
		{"behind prefetch", Settings{Map: Map{Cost: 9}, Prefetch: 1}, 3, StageMap},
	} {
		c.s.Elements, c.s.Batch = 100, []int{4}
		m := mustNew(t, c.s)
		var b Batch
		for range c.at + 1 {
			b, _ = m.Next(0)
		}
		if b.Stage != c.want || b.Filling != (c.want == StageShuffle) {
			t.Errorf("%s: blames %q, filling %t, want %q", c.name, b.Stage, b.Filling, c.want)
		}
	}
}

func TestPrefetchTunerFollowsTheDoublingRule(t *testing.T) {
	// The consumer is always faster: the limit becomes 2 and stays.
	s := Settings{Elements: 100, Batch: []int{1}, Map: Map{Cost: 10}, Prefetch: Auto}
	m := mustNew(t, s)
	for i := range 20 {
		b, _ := m.Next(0)
		if want := min(2, i+1); b.Limit != want {
			t.Errorf("batch %d: limit %d, want %d", i, b.Limit, want)
		}
	}
	// Full once, then empty: it doubles, from 2048 on by 2048.
	tuner := NewTuner(Auto, 0)
	for _, want := range []int{2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 6144} {
		if tuner.Consumed(0) {
			t.Fatal("raised on the upswing")
		}
		tuner.Consumed(tuner.Limit())
		if !tuner.Consumed(0) || tuner.Limit() != want {
			t.Fatalf("limit %d, want %d", tuner.Limit(), want)
		}
	}
	fixed := NewTuner(3, 0)
	fixed.Consumed(3)
	if fixed.Consumed(0) || fixed.Limit() != 3 {
		t.Error("a fixed limit moved")
	}
}

func TestPrefetchTunerHeedsTheBudget(t *testing.T) {
	tuner := NewTuner(Auto, 10e6)
	tuner.Element(4e6)
	tuner.Consumed(1)
	if !tuner.Consumed(0) || tuner.Limit() != 2 {
		t.Errorf("8 MB of 10: limit %d, want 2", tuner.Limit())
	}
	tuner.Consumed(2)
	if tuner.Consumed(0) || tuner.Limit() != 2 {
		t.Errorf("16 MB of 10: limit %d, want 2", tuner.Limit())
	}
	if tuner.down {
		t.Error("a refusal leaves it on the downswing")
	}
	larger := NewTuner(Auto, 20e6)
	larger.Element(4e6)
	for _, want := range []int{2, 4, 4} { // 8 and 16 MB are granted, 32 are not
		larger.Consumed(larger.Limit())
		larger.Consumed(0)
		if larger.Limit() != want {
			t.Errorf("20 MB: limit %d, want %d", larger.Limit(), want)
		}
	}
	unknown := NewTuner(Auto, 10e6)
	unknown.Consumed(1)
	if unknown.Consumed(0) {
		t.Error("raised though nobody knows a batch's size")
	}
}

// recorder keeps events.
type recorder struct {
	strings event.Strings
	list    []event.Event
}

func (r *recorder) Emit(e *event.Event) { r.list = append(r.list, *e) }

func (r *recorder) count(k event.Kind) int {
	n := 0
	for _, e := range r.list {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// Whatever the settings and the consumer, told events never go back in time,
// begin and end pair up, the prefetch buffer stays within its limit, and no
// batch is ready before it is asked for.
func TestEventsOfRandomPipelines(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for range 300 {
		s := Settings{
			Elements: 1 + r.IntN(30), Epochs: r.IntN(4), OpenCost: r.Int64N(20), FetchCost: r.Int64N(5),
			Map:     Map{Parallel: r.IntN(6), Cost: r.Int64N(30), Cores: r.IntN(4)},
			Shuffle: r.IntN(20), Seed: r.Uint64(), Batch: []int{1 + r.IntN(6), 1 + r.IntN(6)}, Batches: 1 + r.IntN(40),
			CopyCost: r.Int64N(3), Prefetch: r.IntN(6) - 1, ElementBytes: 10, SourceBytes: 4,
		}
		var ev recorder
		m, err := New(s, &ev, &ev.strings)
		if err != nil {
			t.Fatal(err)
		}
		for now := int64(0); ; now += r.Int64N(150) {
			if m.Pending() <= now {
				m.Advance(now)
			}
			b, err := m.Next(now)
			if err != nil {
				break
			}
			if b.Ready < now || (b.Ready > now) != (b.Stage != "") {
				t.Fatalf("%+v: asked at %d: %+v", s, now, b)
			}
			now = b.Ready
		}
		m.Advance(1 << 60)
		checkEvents(t, s, ev.list)
	}
}

func checkEvents(t *testing.T, s Settings, list []event.Event) {
	t.Helper()
	open := map[uint64]event.Event{}
	var last, buffered int64
	for i, e := range list {
		if e.Time < last {
			t.Fatalf("%+v: event %d goes back from %d to %d", s, i, last, e.Time)
		}
		last = e.Time
		switch e.Kind {
		case event.StageBegin:
			open[e.ID] = e
		case event.StageEnd:
			if b, ok := open[e.ID]; !ok || b.Op != e.Op || b.Stream != e.Stream {
				t.Fatalf("%+v: %+v ends nothing", s, e)
			}
			delete(open, e.ID)
		case event.QueueDepth:
			if e.Size < 0 || e.Size > e.Requested || e.Requested == 0 {
				t.Fatalf("%+v: %d buffered of %d", s, e.Size, e.Requested)
			}
			buffered = max(buffered, e.Size)
		default:
			t.Fatalf("unexpected %v", e.Kind)
		}
	}
	if len(open) > 0 {
		t.Errorf("%+v: %d stages never end", s, len(open))
	}
}

func TestSameQuestionsSameEvents(t *testing.T) {
	run := func() []event.Event {
		var ev recorder
		m, err := New(Settings{
			Elements: 200, Map: Map{Parallel: 4, Cost: 30, Cores: 3}, FetchCost: 2, Shuffle: 50, Seed: 3,
			Batch: []int{8, 5}, Prefetch: Auto, ElementBytes: 100,
		}, &ev, &ev.strings)
		if err != nil {
			t.Fatal(err)
		}
		for i, now := 0, int64(0); i < 60; i++ {
			b, _ := m.Next(now)
			now = b.Ready + int64(i%7)*20
			m.Advance(now)
		}
		return ev.list
	}
	if a, b := run(), run(); !slices.Equal(a, b) || len(a) < 1000 {
		t.Errorf("%d and %d events, or different ones", len(a), len(b))
	}
}

func TestBuffers(t *testing.T) {
	s := Settings{
		Elements: 60000, SourceBytes: 28 * 28 * 4, ElementBytes: 4104, Map: Map{Parallel: 4}, Shuffle: 1024,
		Batch: []int{32, 48}, Prefetch: 2,
	}
	want := []Buffer{
		{Stage: StageSource, Bytes: 188160000, Count: 1},
		{Stage: StageMap, Bytes: 4104, Count: 4},
		{Stage: StageShuffle, Bytes: 4104, Count: 1024},
		{Stage: StagePrefetch, Bytes: 48 * 4104, Count: 3},
	}
	if got := s.Buffers(s.Limit()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	s = Settings{Elements: 10, SourceBytes: 1, Batch: []int{4}}
	if got := s.Buffers(s.Limit()); len(got) != 1 {
		t.Errorf("%v: only the source holds memory", got)
	}
}

func TestNextAllocatesNothingInSteadyState(t *testing.T) {
	m, err := New(Settings{
		Elements: 1438, Map: Map{Parallel: 4, Cost: 300_000}, Shuffle: 1024, Seed: 1, Batch: []int{32}, Prefetch: Auto,
	}, event.SinkFunc(func(*event.Event) {}), &event.Strings{})
	if err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	step := func() {
		b, _ := m.Next(now)
		now = b.Ready + 3*ms
		m.Advance(now)
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(200, step); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
}

func BenchmarkNext32(b *testing.B) {
	m, err := New(Settings{
		Elements: 1438, Map: Map{Parallel: 4, Cost: 300_000}, Shuffle: 1024, Seed: 1, Batch: []int{32}, Prefetch: Auto,
	}, event.SinkFunc(func(*event.Event) {}), &event.Strings{})
	if err != nil {
		b.Fatal(err)
	}
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		x, _ := m.Next(now)
		now = x.Ready + 3*ms
		m.Advance(now)
	}
}
