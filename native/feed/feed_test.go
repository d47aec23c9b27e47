package feed

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tideline/native/dataset"
	"tideline/protocol/event"
	"tideline/shared/pipeline"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

const pixels = 28 * 28

// digits is the map stage over the digits.
func digits(tb testing.TB) func(int32, []float32) (int64, error) {
	tb.Helper()
	d, err := dataset.Training()
	if err != nil {
		tb.Fatal(err)
	}
	return func(i int32, image []float32) (int64, error) { return d.Map(i, image, 28) }
}

// cheap is a map stage that writes the element's number.
func cheap(i int32, image []float32) (int64, error) {
	image[0] = float32(i)
	return int64(i) * 2, nil
}

func open(tb testing.TB, o Options) *Feed {
	tb.Helper()
	f, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.Close)
	return f
}

var shapes = []pipeline.Settings{
	{Elements: 10, Epochs: 1, Batch: []int{3}},
	{Elements: 10, Epochs: 2, Batch: []int{3}, DropRemainder: true, Shuffle: 4, Seed: 3},
	{Elements: 23, Epochs: 3, Batch: []int{4, 2}, Shuffle: 7, Seed: 1},
	{Elements: 5, Batch: []int{4}, Batches: 30, Shuffle: 100, Seed: 9},
	{Elements: 100, Batch: []int{8}, Batches: 40, Shuffle: 50, Seed: 2},
	{Elements: 0, Batch: []int{8}},
}

func TestFeedDeliversTheModelsBatches(t *testing.T) {
	for _, s := range shapes {
		for _, prefetch := range []int{0, 1, 3, pipeline.Auto} {
			for _, parallel := range []int{1, 2, 5} {
				s.Prefetch, s.Map.Parallel = prefetch, parallel
				compare(t, s)
			}
		}
	}
}

func compare(t *testing.T, s pipeline.Settings) {
	t.Helper()
	m, err := pipeline.New(s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, Options{Settings: s, Map: cheap, Pixels: 1})
	for n := 0; ; n++ {
		want, wantErr := m.Next(0)
		got, err := f.Next()
		if wantErr != nil || err != nil {
			if !errors.Is(err, pipeline.ErrEnd) || !errors.Is(wantErr, pipeline.ErrEnd) {
				t.Errorf("%+v: batch %d: %v, the model says %v", s, n, err, wantErr)
			}
			if _, again := f.Next(); !errors.Is(again, pipeline.ErrEnd) {
				t.Errorf("%+v: the end does not stick: %v", s, again)
			}
			return
		}
		if got.Number != want.Number || got.Filling != want.Filling || !slices.Equal(got.Indices, want.Indices) {
			t.Fatalf("%+v: batch %d is %+v, the model's %+v", s, n, got.Batch, want)
		}
		for i, e := range got.Indices {
			if got.Images[i] != float32(e) || got.Labels[i] != int64(e)*2 {
				t.Fatalf("%+v: element %d came as %v, %v", s, e, got.Images[i], got.Labels[i])
			}
		}
	}
}

func TestBatchesHoldTheDigits(t *testing.T) {
	d, err := dataset.Training()
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, Options{
		Settings: pipeline.Settings{
			Elements: d.Len(), Batch: []int{16}, Shuffle: 100, Seed: 4, Map: pipeline.Map{Parallel: 3}, Prefetch: 2,
		},
		Map: digits(t), Pixels: pixels,
	})
	want := make([]float32, pixels)
	for range 20 {
		b, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range b.Indices {
			label, _ := d.Map(e, want, 28)
			if b.Labels[i] != label || !slices.Equal(b.Images[i*pixels:][:pixels], want) {
				t.Fatalf("element %d is not itself", e)
			}
		}
	}
}

// goroutinesBackTo waits for the runtime to reap what has ended.
func goroutinesBackTo(t *testing.T, n int) {
	t.Helper()
	for range 200 {
		if runtime.NumGoroutine() <= n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), n, buf[:runtime.Stack(buf, true)])
}

func TestCloseReleasesAllGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, taken := range []int{0, 1, 5, 1000} {
		for _, prefetch := range []int{0, 2} {
			f := open(t, Options{
				Settings: pipeline.Settings{Elements: 50, Epochs: 4, Batch: []int{7}, Map: pipeline.Map{Parallel: 4}, Prefetch: prefetch, Shuffle: 20},
				Map:      cheap, Pixels: 1,
			})
			for range taken {
				if _, err := f.Next(); err != nil {
					break
				}
			}
			f.Close()
			f.Close()
			if _, err := f.Next(); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
	}
	goroutinesBackTo(t, before)
}

func TestCloseWakesANextThatWaits(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, prefetch := range []int{0, 2} {
		for _, parallel := range []int{1, 3} {
			gate, inside := make(chan struct{}), make(chan struct{}, 100)
			f := open(t, Options{
				Settings: pipeline.Settings{Elements: 50, Batch: []int{7}, Map: pipeline.Map{Parallel: parallel}, Prefetch: prefetch},
				Map: func(int32, []float32) (int64, error) {
					inside <- struct{}{}
					<-gate
					return 0, nil
				},
				Pixels: 1,
			})
			result := make(chan error)
			go func() {
				_, err := f.Next()
				result <- err
			}()
			<-inside // a map call is under way
			closed := make(chan struct{})
			go func() { f.Close(); close(closed) }()
			<-f.stop
			close(gate) // a map function cannot be interrupted, only awaited
			if err := <-result; !errors.Is(err, ErrClosed) {
				t.Errorf("prefetch %d, parallel %d: %v", prefetch, parallel, err)
			}
			<-closed
		}
	}
	goroutinesBackTo(t, before)
}

func TestMapErrorsNameTheElementAndStick(t *testing.T) {
	for _, prefetch := range []int{0, 2} {
		for _, parallel := range []int{1, 4} {
			f := open(t, Options{
				Settings: pipeline.Settings{Elements: 50, Batch: []int{5}, Map: pipeline.Map{Parallel: parallel}, Prefetch: prefetch},
				Map: func(i int32, _ []float32) (int64, error) {
					if i == 12 {
						return 0, errors.New("torn page")
					}
					return 0, nil
				},
				Pixels: 1,
			})
			for n := range 5 {
				_, err := f.Next()
				if n < 2 && err != nil || n >= 2 && (err == nil || !strings.Contains(err.Error(), "map element 12: torn page")) {
					t.Errorf("prefetch %d, parallel %d, batch %d: %v", prefetch, parallel, n, err)
				}
			}
		}
	}
}

// All calls of a parallel map must run at the same time, and never may more
// results be done or pending than there are calls.
func TestParallelMapRunsAllItsCallsAndHoldsNoMore(t *testing.T) {
	const calls = 4
	var started atomic.Int64
	var meet sync.WaitGroup
	meet.Add(calls)
	f := open(t, Options{
		Settings: pipeline.Settings{Elements: 1000, Batch: []int{1}, Map: pipeline.Map{Parallel: calls}},
		Map: func(i int32, _ []float32) (int64, error) {
			started.Add(1)
			if i < calls {
				meet.Done()
				meet.Wait() // returns only when all four are inside
			}
			return 0, nil
		},
		Pixels: 1,
	})
	for n := range 100 {
		if _, err := f.Next(); err != nil {
			t.Fatal(err)
		}
		// n+1 are taken; the taking of this one may already have let one more in.
		if got := started.Load(); got > int64(n+1+calls) {
			t.Fatalf("%d elements begun with %d taken", got, n+1)
		}
	}
}

type recorder struct {
	strings event.Strings
	list    []event.Event
}

func (r *recorder) Emit(e *event.Event) { r.list = append(r.list, *e) }

func TestPrefetchFillsUpAndThenNobodyWaits(t *testing.T) {
	var r recorder
	f := open(t, Options{
		Settings: pipeline.Settings{Elements: 100, Batch: []int{4}, Prefetch: 3, Map: pipeline.Map{Parallel: 2}, ElementBytes: 8},
		Map:      cheap, Pixels: 1, Sink: &r, Strings: &r.strings,
	})
	if _, err := f.Next(); err != nil {
		t.Fatal(err)
	}
	prefetch := r.strings.ID(pipeline.StagePrefetch)
	full := func() bool {
		f.Advance(f.o.Clock())
		return slices.ContainsFunc(r.list, func(e event.Event) bool {
			return e.Kind == event.QueueDepth && e.Op == prefetch && e.Size == 3 && e.Requested == 3
		})
	}
	for !full() {
		runtime.Gosched()
	}
	if b, err := f.Next(); err != nil || b.Stage != "" || b.Buffered != 3 || b.Limit != 3 {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestEventsStayInOrderAndPair(t *testing.T) {
	var r recorder
	f := open(t, Options{
		Settings: pipeline.Settings{
			Elements: 60, Epochs: 2, Batch: []int{8}, Shuffle: 16, Prefetch: pipeline.Auto, Map: pipeline.Map{Parallel: 3}, ElementBytes: 8,
		},
		Map: cheap, Pixels: 1, Sink: &r, Strings: &r.strings,
	})
	p := f.Pipeline()
	for {
		if p.Pending() <= f.o.Clock() {
			p.Advance(f.o.Clock())
		}
		b, err := p.Next(0)
		if err != nil {
			break
		}
		if c := f.Current(); c == nil || !slices.Equal(c.Indices, b.Indices) {
			t.Fatal("Current is another batch")
		}
	}
	f.Advance(1 << 62)
	var last int64
	open := map[uint64]bool{}
	mapped, batched := r.strings.ID(pipeline.StageMap), r.strings.ID(pipeline.StageBatch)
	begun := map[event.StringID]int{}
	for _, e := range r.list {
		if e.Time < last {
			t.Fatalf("time goes back from %d to %d", last, e.Time)
		}
		last = e.Time
		switch e.Kind {
		case event.StageBegin:
			open[e.ID] = true
			begun[e.Op]++
		case event.StageEnd:
			if !open[e.ID] {
				t.Fatalf("%+v ends nothing", e)
			}
			delete(open, e.ID)
		default:
		}
	}
	if begun[mapped] != 120 || begun[batched] != 15 || len(open) != 0 {
		t.Errorf("%d elements begun and %d batches, %d not ended", begun[mapped], begun[batched], len(open))
	}
}

func TestNewRefusesBadOptions(t *testing.T) {
	good := Options{Settings: pipeline.Settings{Elements: 1, Batch: []int{1}}, Map: cheap, Pixels: 1}
	for want, spoil := range map[string]func(o *Options){
		"batch 0":         func(o *Options) { o.Settings.Batch = []int{0} },
		"no map function": func(o *Options) { o.Map = nil },
		"of 0 pixels":     func(o *Options) { o.Pixels = 0 },
	} {
		o := good
		spoil(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func benchmarkFeed(b *testing.B, parallel int) {
	b.Helper()
	f := open(b, Options{
		Settings: pipeline.Settings{Elements: 1438, Batch: []int{32}, Shuffle: 1024, Prefetch: 2, Map: pipeline.Map{Parallel: parallel}},
		Map:      digits(b), Pixels: pixels,
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Next(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(32*float64(b.N)/b.Elapsed().Seconds(), "images/s")
}

func BenchmarkFeedSerialMap(b *testing.B)   { benchmarkFeed(b, 1) }
func BenchmarkFeedParallelMap(b *testing.B) { benchmarkFeed(b, 4) }

func TestFillCopiesTheBatchTakenLast(t *testing.T) {
	d, err := dataset.Training()
	if err != nil {
		t.Fatal(err)
	}
	p, err := zoo.Program("mlp", zoo.Options{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, Options{
		Settings: pipeline.Settings{Elements: d.Len(), Batch: []int{4}, Shuffle: 30, Seed: 4, Prefetch: 1}, Map: digits(t), Pixels: pixels,
	})
	x, y := &p.Values[p.Inputs[0]], &p.Values[p.Inputs[1]]
	if err := f.Fill([]int32{1}, 0, x, make([]byte, x.Bytes())); err == nil {
		t.Error("filled before there was a batch")
	}
	b, err := f.Pipeline().Next(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []*program.Value{x, y} {
		got, want := memory(make([]int64, v.Bytes()/8)), memory(make([]int64, v.Bytes()/8))
		if err := f.Fill(b.Indices, i, v, got); err != nil {
			t.Fatal(err)
		}
		if err := d.Fill(b.Indices, i, v, want); err != nil || !slices.Equal(got, want) {
			t.Errorf("input %d differs from what the data set fills in: %v", i, err)
		}
		for want, err := range map[string]error{
			"are not the batch": f.Fill(b.Indices[1:], i, v, got),
			"bytes of a batch":  f.Fill(b.Indices, i, v, got[:8]),
			"want images":       f.Fill(b.Indices, 1-i, v, got),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("input %d: error %v, want %q in it", i, err, want)
			}
		}
	}
}
