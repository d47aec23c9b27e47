package rmm_test

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/rmm"
	"tideline/shared/alloc/stream"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

type hearer struct {
	alloc.NoObserver
	taken []int64
}

func (h *hearer) RegionTaken(_ uint64, _, received int64) { h.taken = append(h.taken, received) }

func space(tb testing.TB, capacity int64) alloc.SubAllocator {
	tb.Helper()
	s, err := alloc.NewSpace(alloc.SpaceOptions{Card: alloc.NewCard(capacity)})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func pool(tb testing.TB, o rmm.PoolOptions, capacity int64) (*rmm.Pool, *hearer) {
	tb.Helper()
	h := &hearer{}
	o.Observer = h
	p, err := rmm.NewPool(space(tb, capacity), o)
	if err != nil {
		tb.Fatal(err)
	}
	return p, h
}

func get(tb testing.TB, a alloc.Allocator, bytes int64) alloc.Block {
	tb.Helper()
	b, ok := a.Allocate(alloc.Request{Bytes: bytes})
	if !ok {
		tb.Fatalf("%d bytes do not fit", bytes)
	}
	return b
}

func free(tb testing.TB, a alloc.Allocator, b alloc.Block) {
	tb.Helper()
	if err := a.Free(b.Address); err != nil {
		tb.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want []int64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s %v, want %v", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s %v, want %v", what, got, want)
		}
	}
}

func chunks(m event.ChunkMap) (sizes []int64) {
	for _, r := range m {
		for _, c := range r.Chunks {
			n := c.Size
			if !c.InUse {
				n = -n
			}
			sizes = append(sizes, n)
		}
	}
	return sizes
}

func TestPoolWithoutMaximumDoublesAndItsBlocksNeverMerge(t *testing.T) {
	p, h := pool(t, rmm.PoolOptions{Initial: gib}, 0)
	b := get(t, p, gib+256)
	same(t, "upstream blocks", h.taken, []int64{gib, gib + 256})
	free(t, p, b)
	m := p.ChunkMap()
	same(t, "chunks", chunks(m), []int64{-gib, -(gib + 256)})
	if m[0].Address+uint64(m[0].Size) != m[1].Address {
		t.Error("the two blocks do not touch, so that nothing was tested")
	}
	// They touch, yet only one of them serves.
	if _, ok := p.Allocate(alloc.Request{Bytes: 2 * gib}); !ok {
		t.Fatal("2 GiB do not fit")
	}
	same(t, "upstream blocks", h.taken, []int64{gib, gib + 256, 2*gib + 256})
}

func TestPoolWithMaximumTakesHalfOfWhatIsLeft(t *testing.T) {
	p, h := pool(t, rmm.PoolOptions{Initial: gib, Maximum: 4 * gib}, 0)
	get(t, p, gib)
	get(t, p, 1000)
	same(t, "upstream blocks", h.taken, []int64{gib, 3 * gib / 2})
	if _, ok := p.Allocate(alloc.Request{Bytes: 2 * gib}); ok {
		t.Error("the pool grew past its maximum")
	}
	for _, want := range []string{"maximum pool size exceeded", "request 2147483648", "pool 2684354560", "maximum 4294967296"} {
		if !strings.Contains(p.Failure(), want) {
			t.Errorf("%q lacks %q", p.Failure(), want)
		}
	}
}

func TestPoolHalvesWhatUpstreamRefuses(t *testing.T) {
	p, h := pool(t, rmm.PoolOptions{Initial: 1024 * mib}, 1400*mib)
	get(t, p, gib)
	get(t, p, 200*mib)
	same(t, "upstream blocks", h.taken, []int64{gib, 256 * mib})
	if _, ok := p.Allocate(alloc.Request{Bytes: 130 * mib}); ok {
		t.Error("upstream had 120 MiB")
	}
	if !strings.Contains(p.Failure(), "upstream has no more") {
		t.Error(p.Failure())
	}
}

func TestPoolFreeMergesBothSidesButNotOverAHead(t *testing.T) {
	p, _ := pool(t, rmm.PoolOptions{Initial: 1024}, 0)
	a, b, c, d := get(t, p, 256), get(t, p, 256), get(t, p, 256), get(t, p, 256)
	next := get(t, p, 512) // a second upstream block of 1,024 bytes, right behind
	free(t, p, a)
	free(t, p, c)
	same(t, "chunks", chunks(p.ChunkMap()), []int64{-256, 256, -256, 256, 512, -512})
	free(t, p, b)
	same(t, "chunks", chunks(p.ChunkMap()), []int64{-768, 256, 512, -512})
	free(t, p, next)
	free(t, p, d)
	same(t, "chunks", chunks(p.ChunkMap()), []int64{-1024, -1024})
}

func TestPoolServesAnotherStreamAfterARecordedWait(t *testing.T) {
	var order stream.Order
	var waits [][2]stream.ID
	p, h := pool(t, rmm.PoolOptions{Initial: mib, Maximum: mib, Order: &order, OnWait: func(by, on stream.ID) { waits = append(waits, [2]stream.ID{by, on}) }}, 0)
	p.UseStream(1)
	x := get(t, p, mib/2)
	y := get(t, p, mib/2)
	free(t, p, x)
	mark := order.Mark(1)
	p.UseStream(2)
	z := get(t, p, mib/4)
	if z.Address != x.Address || len(waits) != 3 || waits[2] != [2]stream.ID{2, 1} {
		// The first two are stream 1's for what stream 0 got initially.
		t.Fatalf("%+v after the waits %v", z, waits)
	}
	if !order.Behind(2, 1, mark) {
		t.Error("stream 2 is not behind stream 1")
	}
	// The remainder is still stream 1's: another wait.
	if r := get(t, p, mib/4); r.Address != z.Address+mib/4 || len(waits) != 4 || waits[3] != [2]stream.ID{2, 1} {
		t.Errorf("%+v after the waits %v", r, waits)
	}
	_ = y
	same(t, "upstream blocks", h.taken, []int64{mib})
}

func TestPoolMergesListsBeforeItGrows(t *testing.T) {
	p, h := pool(t, rmm.PoolOptions{Initial: mib}, 0)
	var blocks []alloc.Block
	for s := range 4 {
		p.UseStream(stream.ID(s))
		blocks = append(blocks, get(t, p, mib/4))
	}
	for s, b := range blocks {
		p.UseStream(stream.ID(s))
		free(t, p, b)
	}
	p.UseStream(3)
	get(t, p, mib)
	same(t, "upstream blocks", h.taken, []int64{mib})
}

func TestPoolOptionsThatAreWrong(t *testing.T) {
	for want, o := range map[string]rmm.PoolOptions{
		"initial size 100 is no multiple": {Initial: 100},
		"maximum size 100 is no multiple": {Maximum: 100},
		"above the maximum":               {Initial: 1024, Maximum: 512},
		"upstream has no":                 {Initial: 2 * gib},
	} {
		if _, err := rmm.NewPool(space(t, gib), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func arena(tb testing.TB, o rmm.ArenaOptions) *rmm.Arena {
	tb.Helper()
	a, err := rmm.NewArena(space(tb, 0), o)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestArenaIsHalfOfTheFreeMemoryByDefault(t *testing.T) {
	if a := arena(t, rmm.ArenaOptions{Free: 16*gib + 300}); a.Limit() != 8*gib {
		t.Errorf("the arena has %d bytes", a.Limit())
	}
	if _, err := rmm.NewArena(space(t, 0), rmm.ArenaOptions{}); err == nil || !strings.Contains(err.Error(), "at least 1 MiB") {
		t.Error(err)
	}
}

func TestArenaServesUpToOneMiBFromTheStreamsOwn(t *testing.T) {
	a := arena(t, rmm.ArenaOptions{Size: 16 * mib})
	a.UseStream(1)
	small := get(t, a, mib)     // takes the first superblock for stream 1
	large := get(t, a, mib+256) // the next one, of the global arena
	if large.Address != small.Address+mib {
		t.Fatalf("%x, %x", small.Address, large.Address)
	}
	free(t, a, small)
	free(t, a, large)
	// The small one's superblock is still stream 1's: stream 2 gets none of it,
	// but all of the large one's, which went back into the global arena at once.
	a.UseStream(2)
	if b := get(t, a, mib+256); b.Address != large.Address {
		t.Errorf("the large block came from %x, want %x", b.Address, large.Address)
	}
	a.UseStream(1)
	if b := get(t, a, mib); b.Address != small.Address {
		t.Errorf("the small block came from %x, want %x", b.Address, small.Address)
	}
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestArenaSplitsSuperblocksOfTwoMiBAndMore(t *testing.T) {
	a := arena(t, rmm.ArenaOptions{Size: 3*mib - 256})
	a.UseStream(1)
	x := get(t, a, 256) // 1 MiB of the 3 is split off
	a.UseStream(2)
	y := get(t, a, 256) // 2 MiB - 256 are left, too few to be split
	if y.Address != x.Address+mib {
		t.Fatalf("%x, %x", x.Address, y.Address)
	}
	a.UseStream(3)
	if _, ok := a.Allocate(alloc.Request{Bytes: 256}); ok {
		t.Error("all superblocks are taken, yet stream 3 got memory")
	}
}

func TestArenaStrandsSuperblocksUntilADefragmentation(t *testing.T) {
	var syncs []bool
	a := arena(t, rmm.ArenaOptions{Size: 8 * mib, OnSync: func(_ stream.ID, all bool) { syncs = append(syncs, all) }})
	a.UseStream(1)
	var blocks []alloc.Block
	for range 8 {
		blocks = append(blocks, get(t, a, mib))
	}
	for _, b := range blocks {
		free(t, a, b)
	}
	if len(syncs) != 0 {
		t.Error("a stream's own frees need no wait")
	}
	// All is free, but stream 1's: only a defragmentation helps.
	a.UseStream(2)
	get(t, a, 8*mib)
	if a.Defragmentations() != 1 || len(syncs) != 1 || !syncs[0] {
		t.Errorf("%d defragmentations, waits %v", a.Defragmentations(), syncs)
	}
}

func TestArenaExplainsWhatIsStranded(t *testing.T) {
	a := arena(t, rmm.ArenaOptions{Size: 8 * mib})
	a.UseStream(1)
	var blocks []alloc.Block
	for range 16 {
		blocks = append(blocks, get(t, a, mib/2))
	}
	for i, b := range blocks {
		if i%2 == 0 { // every superblock keeps one block
			free(t, a, b)
		}
	}
	a.UseStream(2)
	if _, ok := a.Allocate(alloc.Request{Bytes: mib / 2}); ok {
		t.Fatal("stream 2 got stream 1's memory")
	}
	f := a.Failure()
	if f.Stranded != 4*mib || f.LargestFree != 0 || f.LargestStranded != mib/2 || f.TotalFree != 4*mib || f.Fragmentation() != 87.5 {
		t.Errorf("%+v, %g %%", f, f.Fragmentation())
	}
	if !strings.Contains(f.Error(), "4194304 bytes are stranded in another arena") {
		t.Error(f)
	}
	a.UseStream(1)
	get(t, a, mib/2) // the owner may
}

func TestArenaFreeFromAnotherStreamWaitsForIt(t *testing.T) {
	var order stream.Order
	var waits []stream.ID
	a := arena(t, rmm.ArenaOptions{Size: 8 * mib, Order: &order, OnSync: func(s stream.ID, _ bool) { waits = append(waits, s) }})
	a.UseStream(1)
	x := get(t, a, 1000)
	a.UseStream(2)
	free(t, a, x)
	if len(waits) != 1 || waits[0] != 2 {
		t.Fatalf("the waits %v", waits)
	}
	a.UseStream(1)
	if y := get(t, a, 1000); y.Address != x.Address {
		t.Error("the block did not return to its superblock")
	}
}
