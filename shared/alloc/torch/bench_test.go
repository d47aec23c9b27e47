package torch_test

import (
	"slices"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/random"
)

// player plays a random trace long enough that every segment is there.
func warmPlayer(tb testing.TB, settings string, shape random.Shape) *random.Player {
	tb.Helper()
	trace, err := random.Make(shape)
	if err != nil {
		tb.Fatal(err)
	}
	p := random.NewPlayer(trace, withSettings(tb, nil, settings, torch.Options{}))
	if err := p.Play(200_000); err != nil {
		tb.Fatal(err)
	}
	return p
}

func benchmarkRandom(b *testing.B, settings string, shape random.Shape) {
	b.Helper()
	p := warmPlayer(b, settings, shape)
	b.ReportAllocs()
	b.ResetTimer()
	// On a busy machine the mean says more about the neighbours, so the quickest
	// tenth of the stretches is reported beside it.
	const stretch = 5000
	var times []float64
	for left := b.N; left > 0; left -= stretch {
		n := min(left, stretch)
		start := b.Elapsed()
		if err := p.Play(n); err != nil {
			b.Fatal(err)
		}
		times = append(times, float64(b.Elapsed()-start)/float64(n))
	}
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(times[len(times)/10], "ns/op-quiet")
	b.ReportMetric(1e3*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Mop/s")
}

func BenchmarkRandomMillion(b *testing.B) { benchmarkRandom(b, "", random.Shape{}) }

func BenchmarkRandomSmall(b *testing.B) {
	benchmarkRandom(b, "", random.Shape{Least: 64, Most: 1 << 20})
}

func BenchmarkRandomLarge(b *testing.B) {
	benchmarkRandom(b, "", random.Shape{Least: 1 << 20, Most: 256 << 20})
}

func BenchmarkRandomStreams(b *testing.B) { benchmarkRandom(b, "", random.Shape{Streams: 8}) }

func BenchmarkRandomMaxSplit(b *testing.B) {
	benchmarkRandom(b, "max_split_size_mb:32", random.Shape{})
}

func BenchmarkRandomRounded(b *testing.B) {
	benchmarkRandom(b, "roundup_power2_divisions:8", random.Shape{})
}

func BenchmarkRandomExpandable(b *testing.B) {
	benchmarkRandom(b, "expandable_segments:True", random.Shape{})
}

var sink alloc.Stats

func BenchmarkStats(b *testing.B) {
	a := newAllocator(b, nil, torch.Options{})
	take(b, a, 100)
	b.ReportAllocs()
	for b.Loop() {
		sink = a.Stats()
	}
}

func TestNoOperationAllocatesOnTheHeap(t *testing.T) {
	for _, text := range []string{"", "expandable_segments:True", "max_split_size_mb:32", "roundup_power2_divisions:8"} {
		p := warmPlayer(t, text, random.Shape{Ops: 100_000, Live: 500, Streams: 2})
		allocs := testing.AllocsPerRun(5, func() {
			if err := p.Play(100_000); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 50 { // tables that grow with new segments, now and then
			t.Errorf("%q: %v heap allocations in 100,000 operations", text, allocs)
		}
	}
}
