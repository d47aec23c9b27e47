package torch_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// benchOp frees what slot holds where bytes is 0, else fills the slot.
type benchOp struct {
	slot   int32
	stream int32
	bytes  int64
}

// randomTrace draws n operations that keep about live blocks alive: log-uniform
// sizes between the bounds, random victims.
func randomTrace(n, live int, least, most float64, streams int) []benchOp {
	rnd := rand.New(rand.NewPCG(20261130, uint64(n+live)))
	ops := make([]benchOp, 0, n)
	free := make([]int32, 0, live)
	for i := range live {
		free = append(free, int32(live-1-i))
	}
	used := make([]int32, 0, live)
	for len(ops) < n {
		// Full: free one; otherwise fill up first, then a coin.
		if len(free) == 0 || len(used) > live*49/50 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(used))
			s := used[i]
			used[i] = used[len(used)-1]
			used = used[:len(used)-1]
			free = append(free, s)
			ops = append(ops, benchOp{slot: s})
			continue
		}
		s := free[len(free)-1]
		free = free[:len(free)-1]
		used = append(used, s)
		bytes := int64(least * math.Exp(rnd.Float64()*math.Log(most/least)))
		ops = append(ops, benchOp{s, int32(rnd.IntN(streams)), bytes})
	}
	return ops
}

func benchmarkRandom(b *testing.B, settings string, least, most float64, streams int) {
	b.Helper()
	const live = 4000
	ops := randomTrace(1_000_000, live, least, most, streams)
	s, err := torch.ParseSettings(settings)
	if err != nil {
		b.Fatal(err)
	}
	a, err := torch.New(torch.NewDevice(nil, 0), torch.Options{Settings: s})
	if err != nil {
		b.Fatal(err)
	}
	addrs := make([]uint64, live)
	i := 0
	do := func() {
		op := &ops[i]
		if i++; i == len(ops) {
			i = 0
		}
		if op.bytes == 0 {
			if err := a.Free(addrs[op.slot]); err != nil {
				b.Fatal(err)
			}
			addrs[op.slot] = 0
			return
		}
		if addrs[op.slot] != 0 { // left from the pass before
			if err := a.Free(addrs[op.slot]); err != nil {
				b.Fatal(err)
			}
		}
		blk, ok := a.AllocateOn(torch.Request{Bytes: op.bytes, Stream: torch.Stream(op.stream)})
		if !ok {
			b.Fatal("no memory")
		}
		addrs[op.slot] = blk.Address
	}
	for range 200_000 { // the first segments come before the clock starts
		do()
	}
	b.ReportAllocs()
	b.ResetTimer()
	// On a busy machine the mean says more about the neighbours, so the quickest
	// tenth of the stretches is reported beside it.
	const stretch = 5000
	var times []float64
	for left := b.N; left > 0; left -= stretch {
		n := min(left, stretch)
		start := b.Elapsed()
		for range n {
			do()
		}
		times = append(times, float64(b.Elapsed()-start)/float64(n))
	}
	b.StopTimer()
	slices.Sort(times)
	b.ReportMetric(times[len(times)/10], "ns/op-quiet")
	b.ReportMetric(1e3*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Mop/s")
}

func BenchmarkRandomMillion(b *testing.B) { benchmarkRandom(b, "", 256, 64<<20, 1) }
func BenchmarkRandomSmall(b *testing.B)   { benchmarkRandom(b, "", 64, 1<<20, 1) }
func BenchmarkRandomLarge(b *testing.B)   { benchmarkRandom(b, "", 1<<20, 256<<20, 1) }
func BenchmarkRandomStreams(b *testing.B) { benchmarkRandom(b, "", 256, 64<<20, 8) }
func BenchmarkRandomMaxSplit(b *testing.B) {
	benchmarkRandom(b, "max_split_size_mb:32", 256, 64<<20, 1)
}

func BenchmarkRandomRounded(b *testing.B) {
	benchmarkRandom(b, "roundup_power2_divisions:8", 256, 64<<20, 1)
}

func BenchmarkRandomExpandable(b *testing.B) {
	benchmarkRandom(b, "expandable_segments:True", 256, 64<<20, 1)
}

var sink alloc.Stats

func BenchmarkStats(b *testing.B) {
	a, err := torch.New(torch.NewDevice(nil, 0), torch.Options{})
	if err != nil {
		b.Fatal(err)
	}
	a.AllocateOn(torch.Request{Bytes: 100})
	b.ReportAllocs()
	for b.Loop() {
		sink = a.Stats()
	}
}
