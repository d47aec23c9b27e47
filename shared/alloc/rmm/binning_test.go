package rmm_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/rmm"
	"tideline/shared/alloc/stream"
)

// plainBin is a bin written for clarity, over the plain pool.
type plainBin struct {
	size  int64
	order []stream.ID
	lists map[stream.ID][]uint64
}

func (b *plainBin) touch(s stream.ID) {
	if _, ok := b.lists[s]; !ok {
		b.lists[s] = nil
		b.order = append(b.order, s)
	}
}

type plainBinning struct {
	pool *plainPool
	bins []*plainBin
	of   map[uint64]*plainBin // a block in use; nil: of the pool
}

func (p *plainBinning) fill(b *plainBin, s stream.ID) bool {
	addr, ok := p.pool.allocate(s, b.size*128)
	if ok {
		for i := range uint64(128) {
			b.lists[s] = append(b.lists[s], addr+i*uint64(b.size))
		}
	}
	return ok
}

func (p *plainBinning) allocate(s stream.ID, n int64) (uint64, bool) {
	i := slices.IndexFunc(p.bins, func(b *plainBin) bool { return n <= b.size })
	if i < 0 {
		addr, ok := p.pool.allocate(s, n)
		if ok {
			p.of[addr] = nil
		}
		return addr, ok
	}
	b := p.bins[i]
	b.touch(s)
	from := s
	if len(b.lists[s]) == 0 {
		at := slices.IndexFunc(b.order, func(o stream.ID) bool { return len(b.lists[o]) > 0 })
		switch {
		case at >= 0:
			from = b.order[at]
			p.pool.waits++
		case !p.fill(b, s):
			return 0, false
		}
	}
	addr := b.lists[from][0]
	b.lists[from] = b.lists[from][1:]
	p.of[addr] = b
	return addr, true
}

func (p *plainBinning) free(s stream.ID, addr uint64) {
	b := p.of[addr]
	delete(p.of, addr)
	if b == nil {
		p.pool.free(s, addr)
		return
	}
	b.touch(s)
	b.lists[s] = append(b.lists[s], addr)
}

func TestBinsGiveTheAddressesOfThePlainOnes(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		least := 8 + rnd.IntN(5)
		most := least + rnd.IntN(4)
		first := int64(128) << (most + 1)
		maximum := int64(0)
		if rnd.IntN(2) == 0 {
			maximum = (2*first + rnd.Int64N(4<<20)) &^ 255
		}
		waits := 0
		bins, err := rmm.NewBinning(space(t, 0), rmm.BinningOptions{LeastBin: least, MostBin: most, Pool: rmm.PoolOptions{
			Maximum: maximum, OnWait: func(_, _ stream.ID) { waits++ },
		}})
		if err != nil {
			t.Fatal(err)
		}
		plain := &plainBinning{pool: newPlainPool(space(t, 0), 0, maximum), of: map[uint64]*plainBin{}}
		for e := least; e <= most; e++ {
			b := &plainBin{size: 1 << e, lists: map[stream.ID][]uint64{}}
			b.touch(0)
			plain.fill(b, 0)
			plain.bins = append(plain.bins, b)
		}
		streams := 1 + rnd.IntN(4)
		var live []uint64
		for step := range 600 {
			s := stream.ID(rnd.IntN(streams))
			bins.UseStream(s)
			plain.pool.touch(s)
			if len(live) > 0 && rnd.IntN(5) < 2 {
				i := rnd.IntN(len(live))
				if err := bins.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				plain.free(s, live[i])
				live = slices.Delete(live, i, i+1)
				continue
			}
			n := 1 + rnd.Int64N(1<<(1+rnd.IntN(most+3)))
			b, ok := bins.Allocate(alloc.Request{Bytes: n})
			addr, want := plain.allocate(s, n)
			if ok != want || b.Address != addr || waits != plain.pool.waits {
				t.Fatalf("seed %d, step %d: %d bytes: %x %v after %d waits, the plain bins %x %v after %d", seed, step, n, b.Address, ok, waits, addr, want, plain.pool.waits)
			}
			if ok {
				live = append(live, addr)
			}
		}
	}
}

func TestBinsHoldTheSmallestPowerThatFits(t *testing.T) {
	b, err := rmm.NewBinning(space(t, 0), rmm.BinningOptions{LeastBin: 10, MostBin: 12})
	if err != nil {
		t.Fatal(err)
	}
	if s := b.Stats(); s.Pool < 128*(1<<10+1<<11+1<<12) || s.InUse != 0 || s.LargestFree < 1<<12 {
		t.Errorf("%+v", s)
	}
	for bytes, want := range map[int64]int64{1: 1024, 1024: 1024, 1025: 2048, 4096: 4096, 4097: 4352} {
		if x := get(t, b, bytes); x.Size != want {
			t.Errorf("%d bytes got %d", bytes, x.Size)
		}
	}
	x := get(t, b, 100)
	free(t, b, x)
	if err := b.Free(x.Address); err == nil || !strings.Contains(err.Error(), "no block in use") {
		t.Error(err)
	}
	if err := b.Free(12345); err == nil {
		t.Error("an address of nobody was taken back")
	}
}

func TestFreedBlocksOfABinAreServedInTheOrderOfFreeing(t *testing.T) {
	b, err := rmm.NewBinning(space(t, 0), rmm.BinningOptions{LeastBin: 8, MostBin: 8})
	if err != nil {
		t.Fatal(err)
	}
	var all []alloc.Block
	for range rmm.RunBlocks {
		all = append(all, get(t, b, 256))
	}
	for _, i := range []int{7, 3, 90} {
		free(t, b, all[i])
	}
	for _, i := range []int{7, 3, 90} {
		if x := get(t, b, 1); x.Address != all[i].Address {
			t.Errorf("%x, want %x", x.Address, all[i].Address)
		}
	}
	if x := get(t, b, 1); x.Address == all[0].Address {
		t.Error("no new run was taken")
	}
}

func TestBinsThatCannotBe(t *testing.T) {
	for _, o := range []rmm.BinningOptions{
		{LeastBin: 7, MostBin: 9},
		{LeastBin: 12, MostBin: 11},
		{LeastBin: 8, MostBin: 60},
		{LeastBin: 20, MostBin: 20, Pool: rmm.PoolOptions{Maximum: 64 << 20}},
		{Pool: rmm.PoolOptions{Initial: 5}},
	} {
		if _, err := rmm.NewBinning(space(t, 0), o); err == nil {
			t.Errorf("%+v was made", o)
		}
	}
}

func TestTheLimitingAdaptorCountsWhatIsInUse(t *testing.T) {
	p, _ := pool(t, rmm.PoolOptions{Initial: 8 * mib}, 0)
	l, err := rmm.NewLimiting(p, 1024)
	if err != nil {
		t.Fatal(err)
	}
	x := get(t, l, 513) // 768
	if _, ok := l.Allocate(alloc.Request{Bytes: 257}); ok || !strings.Contains(l.Failure(), "768 in use, limit 1024") {
		t.Errorf("%v %s", ok, l.Failure())
	}
	y := get(t, l, 256)
	free(t, l, x)
	get(t, l, 768)
	free(t, l, y)
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if _, err := rmm.NewLimiting(p, 0); err == nil {
		t.Error("no limit is no adaptor")
	}
}
