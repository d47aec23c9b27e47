package feed

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tideline/shared/pipeline"
)

// randomChain makes a chain of stages as they come.
func randomChain(r *rand.Rand) pipeline.Dataset {
	d := pipeline.FromSlices(r.IntN(12), 4)
	if r.IntN(3) == 0 {
		var files []pipeline.File
		for range r.IntN(6) {
			files = append(files, pipeline.File{Elements: r.IntN(5)})
		}
		cycle := 1 + r.IntN(3)
		d = pipeline.FromFiles(files...).Interleave(cycle, 1+r.IntN(3), r.IntN(cycle+1))
	}
	endless := false
	for range r.IntN(7) {
		switch r.IntN(9) {
		case 0:
			d = d.Map(0, r.IntN(6)-1)
		case 1:
			d = d.With(pipeline.Stage{Op: pipeline.OpShuffle, N: 1 + r.IntN(9), Seed: r.Uint64(), Fixed: r.IntN(2) == 0})
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
	if r.IntN(3) == 0 {
		d = d.Rewrite(pipeline.DefaultRewrites())
	}
	return d
}

// Whatever the chain, goroutines deliver what the model says, in its order,
// and leave nothing behind.
func TestChainsDeliverTheModelsElements(t *testing.T) {
	before := runtime.NumGoroutine()
	r := rand.New(rand.NewPCG(21, 22))
	for range 400 {
		d := randomChain(r)
		m, err := d.Open(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := open(t, Options{
			Dataset: d, Pixels: 1,
			Read: func(e int32, image []float32) (int64, error) {
				image[0] = float32(e)
				return int64(e), nil
			},
			Map: func(e int32, image []float32) (int64, error) {
				image[0] = float32(e) + 0.5
				return int64(e) * 2, nil
			},
		})
		mapped := slices.ContainsFunc(d.Stages, func(s pipeline.Stage) bool { return s.Op == pipeline.OpMap || s.Op == pipeline.OpMapBatch })
		for n := range 100 {
			want, wantErr := m.Next(0)
			got, err := f.Next()
			if wantErr != nil || err != nil {
				if !errors.Is(err, pipeline.ErrEnd) || !errors.Is(wantErr, pipeline.ErrEnd) {
					t.Fatalf("%v %+v: element %d: %v, the model says %v", d.Names(), d, n, err, wantErr)
				}
				break
			}
			if got.Number != want.Number || got.Filling != want.Filling || !slices.Equal(got.Indices, want.Indices) {
				t.Fatalf("%v %+v: element %d is %+v, the model's %+v", d.Names(), d, n, got.Batch, want)
			}
			for i, e := range got.Indices {
				image, label := float32(e), int64(e)
				if mapped {
					image, label = image+0.5, label*2
				}
				if got.Images[i] != image || got.Labels[i] != label {
					t.Fatalf("%v: element %d came as %v, %v", d.Names(), e, got.Images[i], got.Labels[i])
				}
			}
		}
		f.Close()
	}
	goroutinesBackTo(t, before)
}

// asyncChains have one stage each with goroutines.
func asyncChains() map[string]pipeline.Dataset {
	files := pipeline.FromFiles(pipeline.File{Elements: 40}, pipeline.File{Elements: 40})
	return map[string]pipeline.Dataset{
		"serial map":          pipeline.FromSlices(60, 4).Map(0, 1).Batch(5, false),
		"parallel map":        pipeline.FromSlices(60, 4).Map(0, 3).Batch(5, false),
		"prefetch":            pipeline.FromSlices(60, 4).Map(0, 1).Batch(5, false).Prefetch(2),
		"map and batch":       pipeline.FromSlices(60, 4).Map(0, 3).Batch(5, false).Rewrite(pipeline.DefaultRewrites()),
		"interleave":          files.Interleave(2, 1, 1).Map(0, 1),
		"parallel interleave": files.Interleave(2, 1, 2).Map(0, 2).Batch(5, false).Prefetch(1),
		"everything": files.Interleave(2, 1, 2).Cache().Repeat(-1).Map(0, pipeline.Auto).
			Shuffle(9, 1).Batch(5, false).Prefetch(pipeline.Auto).PrefetchToDevice(1, 0),
	}
}

func TestAPanicNamesStageAndElement(t *testing.T) {
	before := runtime.NumGoroutine()
	for name, d := range asyncChains() {
		f := open(t, Options{Dataset: d, Pixels: 1, Map: func(e int32, image []float32) (int64, error) {
			if e == 12 {
				var none []float32
				return 0, errors.Join(nil, errorOf(none[7]))
			}
			return 0, nil
		}})
		var err error
		for err == nil {
			_, err = f.Next()
		}
		var at *StageError
		stage := pipeline.StageMap
		if name == "map and batch" {
			stage = pipeline.StageMapBatch
		}
		if !errors.As(err, &at) || !errors.Is(err, ErrPanic) || at.Stage != stage || at.Element != 12 || !strings.Contains(err.Error(), "index out of range [7]") {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := f.Next(); !errors.Is(again, ErrPanic) {
			t.Errorf("%s: the error does not stick: %v", name, again)
		}
		f.Close()
	}
	goroutinesBackTo(t, before)
}

func errorOf(float32) error { return nil }

func TestABlockedStageIsNamed(t *testing.T) {
	before := runtime.NumGoroutine()
	for name, d := range asyncChains() {
		var f *Feed
		f = open(t, Options{Dataset: d, Pixels: 1, Timeout: 300 * time.Millisecond, Map: func(e int32, _ []float32) (int64, error) {
			if e == 7 {
				<-f.Done()
			}
			return 0, nil
		}})
		var err error
		for err == nil {
			_, err = f.Next()
		}
		var at *StageError
		if !errors.As(err, &at) || !errors.Is(err, ErrBlocked) || at.Element != 7 || !strings.HasPrefix(at.Stage, pipeline.StageMap) {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
	goroutinesBackTo(t, before)
}

// A slow pipeline whose calls return is not blocked.
func TestATimeoutIsOfOneCall(t *testing.T) {
	f := open(t, Options{
		Dataset: pipeline.FromSlices(6, 4).Map(0, 1).Batch(6, false), Pixels: 1, Timeout: time.Second,
		Map: func(int32, []float32) (int64, error) {
			time.Sleep(250 * time.Millisecond)
			return 0, nil
		},
	})
	if b, err := f.Next(); err != nil || len(b.Indices) != 6 {
		t.Errorf("%v, %v", b, err)
	}
}

// A function that never returns is given up by Close after the timeout.
func TestCloseGivesUpWhatNeverReturns(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	f := open(t, Options{
		Dataset: pipeline.FromSlices(6, 4).Map(0, 2).Prefetch(1), Pixels: 1, Timeout: 20 * time.Millisecond,
		Map: func(int32, []float32) (int64, error) { <-never; return 0, nil },
	})
	if _, err := f.Next(); !errors.Is(err, ErrBlocked) {
		t.Error(err)
	}
	f.Close() // the test hangs if it waits
}

func TestErrorsOfReadAndOpenNameTheStage(t *testing.T) {
	bad := errors.New("torn page")
	files := pipeline.FromFiles(pipeline.File{Elements: 5}, pipeline.File{Elements: 5})
	for _, parallel := range []int{1, 2} {
		d := files.Interleave(2, 1, parallel)
		for what, o := range map[string]Options{
			"read": {Dataset: d, Read: func(e int32, _ []float32) (int64, error) {
				if e == 6 {
					return 0, bad
				}
				return 0, nil
			}},
			"open": {Dataset: d, Open: func(file int) error {
				if file == 1 {
					return bad
				}
				return nil
			}},
		} {
			f := open(t, o)
			var err error
			for err == nil {
				_, err = f.Next()
			}
			want := map[string]string{"read": "interleave element 6: torn page", "open": "interleave element 5: torn page"}[what]
			if !errors.Is(err, bad) || err.Error() != want {
				t.Errorf("%s, parallel %d: %v, want %q", what, parallel, err, want)
			}
			f.Close()
		}
	}
}

// A pass that is dropped half way leaves no goroutine, and the next one begins
// from the beginning.
func TestDroppedPassesEndTheirGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	d := pipeline.FromFiles(pipeline.File{Elements: 50}, pipeline.File{Elements: 50}).
		Interleave(2, 1, 2).Map(0, 3).Prefetch(4).Take(3).Repeat(50)
	f := open(t, Options{Dataset: d, Pixels: 1, Map: cheap})
	for n := range 150 {
		b, err := f.Next()
		if err != nil || b.Indices[0] != []int32{0, 50, 1}[n%3] {
			t.Fatalf("element %d: %v, %v", n, b, err)
		}
		if n := runtime.NumGoroutine(); n > before+10 {
			t.Fatalf("%d goroutines, %d before", n, before)
		}
	}
	f.Close()
	goroutinesBackTo(t, before)
}

// A function ends the sequence with pipeline.ErrEnd: what came before it is
// delivered, and nothing after it; out of order, what was done before.
func TestAFunctionEndsTheSequence(t *testing.T) {
	for _, parallel := range []int{1, 4} {
		for _, unordered := range []bool{false, true} {
			f := open(t, Options{
				Dataset: pipeline.FromSlices(50, 4).With(pipeline.Stage{Op: pipeline.OpMap, Parallel: parallel, Unordered: unordered}).Batch(3, false), Pixels: 1,
				Map: func(e int32, _ []float32) (int64, error) {
					if e == 7 {
						return 0, pipeline.ErrEnd
					}
					return 0, nil
				},
			})
			var got []int32
			for {
				b, err := f.Next()
				if err != nil {
					if !errors.Is(err, pipeline.ErrEnd) {
						t.Error(err)
					}
					break
				}
				got = append(got, b.Indices...)
			}
			if !unordered && len(got) != 7 {
				t.Errorf("parallel %d: %v", parallel, got)
			}
			for e := range int32(7) { // the end is taken only when it is the oldest
				if !slices.Contains(got, e) {
					t.Errorf("parallel %d, unordered %t: %v lacks %d", parallel, unordered, got, e)
				}
			}
			f.Close()
		}
	}
}

// An unordered map gives all elements, whichever is first.
func TestUnorderedMapLetsTheFirstGoFirst(t *testing.T) {
	gate := make(chan struct{})
	f := open(t, Options{
		Dataset: pipeline.FromSlices(4, 4).With(pipeline.Stage{Op: pipeline.OpMap, Parallel: 4, Unordered: true}), Pixels: 1,
		Map: func(e int32, _ []float32) (int64, error) {
			if e == 0 {
				<-gate
			}
			return 0, nil
		},
	})
	var got []int32
	for range 3 {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.Indices...)
	}
	close(gate)
	b, err := f.Next()
	if err != nil || b.Indices[0] != 0 {
		t.Errorf("last: %v, %v", b, err)
	}
	if slices.Sort(got); !slices.Equal(got, []int32{1, 2, 3}) {
		t.Errorf("first three: %v", got)
	}
}

// A cached element is mapped and batched as a copy: the cache stays as it was.
func TestCacheIsNotWrittenTo(t *testing.T) {
	var reads atomic.Int64
	f := open(t, Options{
		Dataset: pipeline.FromSlices(5, 4).Cache().Repeat(4).Map(0, 2).Shuffle(3, 1).Batch(2, false), Pixels: 1,
		Read: func(e int32, image []float32) (int64, error) {
			reads.Add(1)
			image[0] = float32(e)
			return 0, nil
		},
		Map: func(e int32, image []float32) (int64, error) {
			image[0] *= 2
			return 0, nil
		},
	})
	n := 0
	for {
		b, err := f.Next()
		if err != nil {
			break
		}
		for i, e := range b.Indices {
			n++
			if b.Images[i] != 2*float32(e) {
				t.Errorf("element %d came as %v", e, b.Images[i])
			}
		}
	}
	if n != 20 || reads.Load() != 5 {
		t.Errorf("%d elements, %d reads; want 20 and 5", n, reads.Load())
	}
}

func TestAutomaticCallsGrowWithMeasuredCosts(t *testing.T) {
	var at, most atomic.Int64
	f := open(t, Options{
		Dataset: pipeline.FromSlices(50, 4).Map(0, pipeline.Auto).Repeat(-1), Pixels: 1,
		Map: func(int32, []float32) (int64, error) {
			n := at.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(2 * time.Millisecond)
			at.Add(-1)
			return 0, nil
		},
	})
	for n := 0; most.Load() < 2; n++ {
		if _, err := f.Next(); err != nil || n > 2000 {
			t.Fatalf("after %d elements %d calls at a time, %v", n, most.Load(), err)
		}
	}
	if d := f.Measured(); d.Stages[1].Cost < int64(time.Millisecond) {
		t.Errorf("a call is measured as %d ns", d.Stages[1].Cost)
	}
}

// The stage events of a real run carry the costs that a modelled one uses.
func TestRecordedCostsMakeAModelOfTheRun(t *testing.T) {
	var clock atomic.Int64
	var r recorder
	f := open(t, Options{
		Settings: pipeline.Settings{Elements: 64, Batch: []int{8}, ElementBytes: 10, Epochs: 1},
		Map: func(int32, []float32) (int64, error) {
			clock.Add(700)
			return 0, nil
		},
		Pixels: 1, Sink: &r, Strings: &r.strings, Clock: clock.Load,
	})
	for {
		if _, err := f.Next(); err != nil {
			break
		}
	}
	f.Advance(1 << 62)
	rec := pipeline.NewRecorded(&r.strings)
	for i := range r.list {
		rec.Emit(&r.list[i])
	}
	s := rec.Apply(f.o.Settings)
	if s.Map.Cost != 700 || rec.Stage(pipeline.StageMap).Calls != 64 {
		t.Errorf("map cost %d of %+v, want 700 and 64 calls", s.Map.Cost, rec.Stage(pipeline.StageMap))
	}
	m, err := pipeline.New(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := m.Next(0); b.Ready != 8*700 || b.Stage != pipeline.StageMap {
		t.Errorf("%+v: want a batch in 5600", b)
	}
}

// What Measured and the recorded events say of a chain is the same: with them
// the model has the pace of the run.
func TestMeasuredAndRecordedChainsAgree(t *testing.T) {
	var clock atomic.Int64
	var r recorder
	d := pipeline.FromFiles(pipeline.File{Elements: 16, Bytes: 4}, pipeline.File{Elements: 16, Bytes: 4}).Interleave(2, 1, 1).Map(0, 1).Batch(4, false)
	f := open(t, Options{
		Dataset: d, Pixels: 1, Sink: &r, Strings: &r.strings, Clock: clock.Load,
		Read: func(int32, []float32) (int64, error) { clock.Add(300); return 0, nil },
		Map:  func(int32, []float32) (int64, error) { clock.Add(500); return 0, nil },
	})
	for {
		if _, err := f.Next(); err != nil {
			break
		}
	}
	f.Advance(1 << 62)
	rec := pipeline.NewRecorded(&r.strings)
	for i := range r.list {
		rec.Emit(&r.list[i])
	}
	got := rec.ApplyTo(d)
	if got.Stages[0].Files[1].Read != 300 || got.Stages[2].Cost != 500 || f.Measured().Stages[2].Cost != 500 || f.Measured().Stages[0].Files[0].Read != 300 || d.Stages[2].Cost != 0 {
		t.Errorf("recorded %+v, measured %+v", got, f.Measured())
	}
	m, err := got.Open(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := m.Next(0); b.Ready != 4*800 {
		t.Errorf("%+v: want a batch in 3200", b)
	}
}
