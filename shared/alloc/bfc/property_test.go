package bfc_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/reference"
	"tideline/shared/alloc/check"
)

// source draws small numbers; a seeded generator and a fuzzer's bytes both are.
type source interface {
	draw(n int) int // 0 to n-1
	more() bool
}

type seeded struct {
	*rand.Rand
	left int
}

func (s *seeded) draw(n int) int { return s.IntN(n) }
func (s *seeded) more() bool     { s.left--; return s.left >= 0 }

type fuzzed []byte

func (f *fuzzed) more() bool { return len(*f) > 0 }

func (f *fuzzed) draw(n int) int {
	v := 0
	for k := 1; k < n && len(*f) > 0; k <<= 8 {
		v = v<<8 | int((*f)[0])
		*f = (*f)[1:]
	}
	return v % n
}

// trial is one random life of an allocator, judged at every step.
type trial struct {
	t       testing.TB
	s       source
	o       bfc.Options
	space   alloc.SpaceOptions
	a       *bfc.Allocator
	ref     *reference.Allocator // nil where the reference does not reach
	judge   *check.Judge
	counter *alloc.Counter
	live    []alloc.Block
	log     []string // what was done, for the report
}

func (x *trial) RegionTaken(addr uint64, asked, received int64) {
	x.emit(event.Event{Kind: event.RegionAdd, Address: addr, Size: received, Requested: asked})
}

func (x *trial) RegionRefused(asked int64) {
	x.emit(event.Event{Kind: event.RegionRefused, Size: asked})
}

func (x *trial) RegionGiven(addr uint64, bytes int64) {
	x.emit(event.Event{Kind: event.RegionRemove, Address: addr, Size: bytes})
}

// Wait frees something half of the times.
func (x *trial) Wait(nanos int64) int64 {
	if x.s.draw(2) == 0 && len(x.live) > 0 && x.ref == nil {
		x.free(x.s.draw(len(x.live)))
		return 1 + nanos/2
	}
	return nanos
}

func (x *trial) Log(alloc.Severity, string) {}
func (x *trial) Op() string                 { return "" }

func (x *trial) emit(e event.Event) {
	x.judge.Emit(&e)
	if err := x.judge.Err(); err != nil {
		x.fatal(err)
	}
}

func (x *trial) fatal(what any) {
	x.t.Helper()
	tail := x.log[max(0, len(x.log)-20):]
	x.t.Fatalf("%v\noptions %+v\ndriver %+v\nlast steps: %q", what, x.o, x.space, tail)
}

// settings draws what kind of allocator this is.
func (x *trial) settings() {
	x.o = bfc.Options{
		Name: "trial", Limit: int64(1 + x.s.draw(1<<26)), Growth: x.s.draw(2) == 0,
		NoRetry: x.s.draw(4) > 0, GarbageCollection: x.s.draw(2) == 0, Observer: x,
	}
	if x.s.draw(3) == 0 {
		x.o.Profile = bfc.Classic
	}
	if x.s.draw(4) == 0 {
		x.o.Fragmentation = float64(1+x.s.draw(100)) / 100
		if x.o.Limit < 100 {
			x.o.Fragmentation = 0
		}
	}
	x.space = alloc.SpaceOptions{
		Order: alloc.Order(x.s.draw(3)), Joins: x.s.draw(2) == 0, Gap: int64(x.s.draw(3)) * 4096,
		IgnoreAlignment: x.s.draw(4) == 0,
	}
	if x.s.draw(3) == 0 {
		x.space.Card = alloc.NewCard(1 + x.o.Limit*int64(1+x.s.draw(10))/10)
	}
	if x.s.draw(5) == 0 {
		x.space.Granularity = 2 << 20
	} else {
		x.space.Granularity = 256
	}
	switch {
	case x.s.draw(4) == 0 && x.o.Profile == bfc.Current && !x.o.Growth:
		x.o.Partition = bfc.Partition{
			On: true, Generation: bfc.Generation(x.s.draw(2)),
			Lower: bfc.EndPolicy{Split: bfc.HoleSplit(x.s.draw(2)), Order: bfc.HoleOrder(x.s.draw(2))},
			Upper: bfc.EndPolicy{Split: bfc.HoleSplit(x.s.draw(2)), Order: bfc.HoleOrder(x.s.draw(2))},
		}
	case x.s.draw(4) == 0 && !x.o.GarbageCollection:
		// Collection together with stamps is unsafe upstream, and not covered.
		x.counter = new(alloc.Counter)
	}
}

func (x *trial) start() {
	x.settings()
	sub, err := alloc.NewSpace(x.space)
	if err != nil {
		x.fatal(err)
	}
	if x.a, err = bfc.New(sub, x.o); err != nil {
		x.fatal(err)
	}
	if x.s.draw(2) == 0 {
		x.a.ShortenWalks(4)
	}
	x.judge = check.New(func(event.DeviceID, event.AllocatorID) check.Rules {
		r := check.BFC(x.o.Limit)
		if x.space.Granularity > 256 {
			r.Limit = 0 // a pool above the limit has no limit any more, as upstream
		}
		return r
	}, nil)
	if x.counter != nil {
		if err := x.a.SetCounter(x.counter); err != nil {
			x.fatal(err)
		}
	}
	if x.counter == nil && !x.o.Partition.On && x.o.NoRetry {
		other := x.space
		if other.Card != nil {
			other.Card = alloc.NewCard(other.Card.Capacity())
		}
		driver, err := alloc.NewSpace(other)
		if err != nil {
			x.fatal(err)
		}
		x.ref = reference.New(driver, reference.Options{
			Limit: x.o.Limit, Growth: x.o.Growth, Collect: x.o.GarbageCollection,
			Fragmentation: x.o.Fragmentation, Classic: x.o.Profile == bfc.Classic,
		})
	}
}

func (x *trial) run() {
	x.start()
	for x.s.more() {
		switch k := x.s.draw(20); {
		case k < 11:
			x.allocate()
		case k < 18 && len(x.live) > 0:
			x.free(x.s.draw(len(x.live)))
		case k == 18 && x.counter != nil:
			x.a.SetSafeFrontier(x.counter.Now() - min(x.counter.Now(), uint64(x.s.draw(8))))
		case k == 19:
			x.look()
		}
		if err := x.a.Check(); err != nil {
			x.fatal(err)
		}
	}
	x.look()
	for len(x.live) > 0 {
		x.free(x.s.draw(len(x.live)))
	}
	x.look()
	x.a.Close()
	if pool, inUse, _, _ := x.judge.Totals(0, 0); pool != 0 || inUse != 0 {
		x.fatal(fmt.Sprintf("after the end the driver misses %d bytes", pool))
	}
}

func (x *trial) allocate() {
	r := alloc.Request{Bytes: int64(x.s.draw(1 << (1 + x.s.draw(25)))), NoRetry: x.s.draw(4) == 0}
	if x.s.draw(4) == 0 {
		r.Alignment = 1 << x.s.draw(17)
	}
	end := alloc.End(x.s.draw(2))
	if x.counter != nil && x.s.draw(4) == 0 {
		by := uint64(x.s.draw(int(x.counter.Now()) + 1))
		r.FreedBy = func() uint64 { return by }
	}
	x.log = append(x.log, fmt.Sprintf("alloc %d align %d %s", r.Bytes, r.Alignment, end))
	b, ok := x.a.AllocateFrom(end, r)
	if x.ref != nil {
		addr, refOK := x.ref.Allocate(r.Bytes, r.Alignment)
		if ok != refOK || b.Address != addr {
			x.fatal(fmt.Sprintf("got %x %v, the reference %x %v", b.Address, ok, addr, refOK))
		}
	}
	if !ok {
		return
	}
	if x.o.Profile == bfc.Current && r.Alignment > 0 && b.Address%uint64(r.Alignment) != 0 {
		x.fatal(fmt.Sprintf("block %x is not aligned to %d", b.Address, r.Alignment))
	}
	x.emit(event.Event{Kind: event.Alloc, Address: b.Address, Size: b.Size, Requested: b.Requested})
	x.live = append(x.live, b)
}

func (x *trial) free(i int) {
	b := x.live[i]
	x.live[i] = x.live[len(x.live)-1]
	x.live = x.live[:len(x.live)-1]
	x.log = append(x.log, fmt.Sprintf("free %x", b.Address))
	if err := x.a.Free(b.Address); err != nil {
		x.fatal(err)
	}
	if err := x.a.Free(b.Address); err == nil {
		x.fatal("a second free was taken")
	}
	if x.ref != nil && !x.ref.Free(b.Address) {
		x.fatal("the reference does not know the block")
	}
	x.emit(event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
}

// look compares all figures and the chunk map.
func (x *trial) look() {
	m := x.a.ChunkMap()
	if err := x.judge.CompareMap(0, 0, m); err != nil {
		x.fatal(err)
	}
	pool, inUse, _, largest := m.Totals()
	st := x.a.Stats()
	jp, ju, peak, blocks := x.judge.Totals(0, 0)
	if st.Pool != pool || pool != jp || st.InUse != inUse || inUse != ju || st.LargestFree != largest ||
		st.PeakInUse != peak || blocks != len(x.live) {
		x.fatal(fmt.Sprintf("stats %+v, map %d %d %d, judge %d %d %d", st, pool, inUse, largest, jp, ju, peak))
	}
	if x.ref != nil {
		x.compareWithReference(m)
	}
}

func (x *trial) compareWithReference(m event.ChunkMap) {
	if len(m) != len(x.ref.Regions) {
		x.fatal(fmt.Sprintf("%d regions, the reference has %d", len(m), len(x.ref.Regions)))
	}
	for i := range x.ref.Regions {
		r := &x.ref.Regions[i]
		chunks := r.Chunks()
		if len(m[i].Chunks) != len(chunks) {
			x.fatal(fmt.Sprintf("%d chunks in region %x, the reference has %d", len(m[i].Chunks), r.Addr, len(chunks)))
		}
		for k, c := range chunks {
			g := m[i].Chunks[k]
			if g.Address != c.Addr || g.Size != c.Size || g.InUse != c.InUse {
				x.fatal(fmt.Sprintf("chunk %+v, the reference has %+v", g, c))
			}
		}
	}
}

func TestRandomLivesObeyTheRules(t *testing.T) {
	lives := uint64(400)
	if testing.Short() {
		lives = 60
	}
	for seed := range lives {
		s := &seeded{rand.New(rand.NewPCG(seed, 20261130)), 300}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			(&trial{t: t, s: s}).run()
		})
	}
}

// TestManyFreeChunksOfOneSize makes one run of the free sets outgrow a leaf.
func TestManyFreeChunksOfOneSize(t *testing.T) {
	for _, sizes := range []int{1, 2, 7, 40} {
		sub, err := alloc.NewSpace(alloc.SpaceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := bfc.New(sub, bfc.Options{Limit: 1 << 30, NoRetry: true})
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(uint64(sizes), 1))
		var even, odd []uint64
		for i := range 6000 {
			b, ok := a.Allocate(alloc.Request{Bytes: int64(16384 + 256*rnd.IntN(sizes))})
			if !ok {
				t.Fatal("no memory")
			}
			if i%2 == 0 {
				even = append(even, b.Address)
			} else {
				odd = append(odd, b.Address)
			}
		}
		rnd.Shuffle(len(even), func(i, j int) { even[i], even[j] = even[j], even[i] })
		for i, addr := range even {
			if err := a.Free(addr); err != nil {
				t.Fatal(err)
			}
			if i%97 == 0 {
				if err := a.Check(); err != nil {
					t.Fatalf("%d sizes, free %d: %v", sizes, i, err)
				}
			}
		}
		last := uint64(0)
		for i := range even {
			b, ok := a.Allocate(alloc.Request{Bytes: 16384 - 255})
			if !ok {
				t.Fatal("no memory")
			}
			if sizes == 1 && b.Address < last {
				t.Fatalf("%x after %x: equal sizes go from the lowest address up", b.Address, last)
			}
			last = b.Address
			if i%97 == 0 {
				if err := a.Check(); err != nil {
					t.Fatalf("%d sizes, alloc %d: %v", sizes, i, err)
				}
			}
		}
		for _, addr := range odd {
			if err := a.Free(addr); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Check(); err != nil {
			t.Fatalf("%d sizes: %v", sizes, err)
		}
	}
}

func TestTheSoaksKeepTheInvariants(t *testing.T) {
	for _, s := range soaks() {
		n := 0
		s.run(t, bfc.Current, func(a *bfc.Allocator) {
			if n++; n%499 == 0 {
				if err := a.Check(); err != nil {
					t.Fatalf("%s, step %d: %v", s.name, n, err)
				}
			}
		})
	}
}

func FuzzLives(f *testing.F) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			t.Skip("long inputs only repeat short ones")
		}
		s := fuzzed(b)
		(&trial{t: t, s: &s}).run()
	})
}
