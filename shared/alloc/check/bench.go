package check

import (
	"tideline/shared/alloc"
	"tideline/shared/alloc/stream"
)

// Bencher is what Bench needs of a testing.B; this package is no test.
type Bencher interface {
	Loop() bool
	ReportAllocs()
	ResetTimer()
	Fatal(args ...any)
}

// BenchLive is how many blocks Bench keeps alive.
const BenchLive = 4000

// Bench times an allocator on the random trace that the allocators of this
// project are compared on: 4,000 live blocks, sizes log-uniform from 256 bytes
// to 16 MiB, random victims; one operation is a free or an allocation. With
// streams above 1, use sets the stream before each allocation.
func Bench(b Bencher, a alloc.Allocator, streams int, use func(stream.ID)) {
	d := &seeded{x: 20261130}
	sizes := make([]int64, 1<<12)
	for i := range sizes {
		base := int64(256) << d.Draw(16)
		sizes[i] = base + int64(d.Draw(int(base)))
	}
	victims := make([]int32, 1<<14)
	for i := range victims {
		victims[i] = int32(d.Draw(BenchLive))
	}
	addrs := make([]uint64, BenchLive)
	i := 0
	do := func() {
		v := victims[i/2&(len(victims)-1)]
		if i&1 == 0 {
			if err := a.Free(addrs[v]); err != nil {
				b.Fatal(err)
			}
			addrs[v] = 0
		} else {
			if streams > 1 {
				use(stream.ID(i >> 1 & 0xff % streams))
			}
			blk, ok := a.Allocate(alloc.Request{Bytes: sizes[i/2*7&(len(sizes)-1)]})
			if !ok {
				b.Fatal("no memory")
			}
			addrs[v] = blk.Address
		}
		i++
	}
	for range 400_000 { // the tables get their size before the clock starts
		do()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		do()
	}
}
