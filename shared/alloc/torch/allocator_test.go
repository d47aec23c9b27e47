package torch_test

import (
	"fmt"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

const mib = int64(1) << 20

func newAllocator(tb testing.TB, card *alloc.Card, o torch.Options) *torch.Allocator {
	tb.Helper()
	a, err := torch.New(torch.NewDevice(card, 0), o)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func withSettings(tb testing.TB, card *alloc.Card, text string, o torch.Options) *torch.Allocator {
	tb.Helper()
	s, err := torch.ParseSettings(text)
	if err != nil {
		tb.Fatal(err)
	}
	o.Settings = s
	return newAllocator(tb, card, o)
}

// take allocates on the default stream and pool.
func take(tb testing.TB, a *torch.Allocator, bytes int64) alloc.Block {
	tb.Helper()
	return takeOn(tb, a, torch.Request{Bytes: bytes})
}

func takeOn(tb testing.TB, a *torch.Allocator, r torch.Request) alloc.Block {
	tb.Helper()
	b, ok := a.AllocateOn(r)
	if !ok {
		tb.Fatalf("no memory for %+v: %v", r, a.Failure())
	}
	if err := a.Check(); err != nil {
		tb.Fatal(err)
	}
	return b
}

func give(tb testing.TB, a *torch.Allocator, blocks ...alloc.Block) {
	tb.Helper()
	for _, b := range blocks {
		if err := a.Free(b.Address); err != nil {
			tb.Fatal(err)
		}
	}
	if err := a.Check(); err != nil {
		tb.Fatal(err)
	}
}

// freed makes a free segment of so many bytes.
func freed(tb testing.TB, a *torch.Allocator, bytes int64) alloc.Block {
	tb.Helper()
	b := take(tb, a, bytes)
	give(tb, a, b)
	return b
}

func TestOversizeBlocksServeOnlyWhatIsNearTheirSize(t *testing.T) {
	for _, c := range []struct {
		mebibytes int64
		serves    bool
	}{{100, false}, {128, false}, {180, false}, {181, true}, {200, true}, {201, false}} {
		a := withSettings(t, nil, "max_split_size_mb:128", torch.Options{})
		free := freed(t, a, 200*mib)
		b := take(t, a, c.mebibytes*mib)
		if got := b.Address == free.Address; got != c.serves {
			t.Errorf("a free 200 MiB block serves %d MiB: %v", c.mebibytes, got)
		}
		if c.serves && b.Size != 200*mib {
			t.Errorf("%d MiB got %d bytes: oversize blocks are not split", c.mebibytes, b.Size)
		}
	}
}

func TestOversizeSlackCanBeRaised(t *testing.T) {
	a := withSettings(t, nil, "max_split_size_mb:128,max_non_split_rounding_mb:60", torch.Options{})
	free := freed(t, a, 200*mib)
	if b := take(t, a, 141*mib); b.Address != free.Address {
		t.Error("200 < 141 + 60, so the block serves")
	}
}

// TestTheLargeSegmentMovesTheSlack holds what PyTorch 2.11 and later do: without
// max_non_split_rounding_mb the slack is a large segment.
func TestTheLargeSegmentMovesTheSlack(t *testing.T) {
	for _, c := range []struct {
		settings string
		bytes    int64
		serves   bool
	}{
		{"max_split_size_mb:40,large_segment_size_mb:40", 90 * mib, false}, // 130 >= 90 + 40
		{"max_split_size_mb:40,large_segment_size_mb:40", 90*mib + 512, true},
		{"max_split_size_mb:40,large_segment_size_mb:12", 118 * mib, false},
		{"max_split_size_mb:40,large_segment_size_mb:12", 118*mib + 512, true},
		{"max_split_size_mb:40,large_segment_size_mb:12,max_non_split_rounding_mb:20", 111 * mib, true},
		{"max_split_size_mb:40,large_segment_size_mb:12,max_non_split_rounding_mb:20", 110 * mib, false},
	} {
		a := withSettings(t, nil, c.settings, torch.Options{})
		free := freed(t, a, 130*mib)
		if b := take(t, a, c.bytes); (b.Address == free.Address) != c.serves {
			t.Errorf("%s: a free 130 MiB block serves %d bytes: %v", c.settings, c.bytes, !c.serves)
		}
	}
}

func TestTheSettingsCanLimitThePart(t *testing.T) {
	for _, c := range []struct {
		settings string
		fraction float64
		limit    int64
	}{
		{"per_process_memory_fraction:0.5", 0, 50 * mib},
		{"per_process_memory_fraction:1", 0, 0},
		{"per_process_memory_fraction:0.5", .25, 25 * mib},
		{"per_process_memory_fraction:0.5", 1, 0},
	} {
		a := withSettings(t, alloc.NewCard(100*mib), c.settings, torch.Options{Fraction: c.fraction})
		if a.Limit() != c.limit {
			t.Errorf("%s and %v: limit %d, want %d", c.settings, c.fraction, a.Limit(), c.limit)
		}
	}
}

func TestLargeBlocksAreHandedOutWholeUpToOneMebibyte(t *testing.T) {
	for _, c := range []struct{ bytes, size int64 }{
		{21*mib + mib/2, 22 * mib},
		{21 * mib, 22 * mib}, // the rest is exactly 1 MiB
		{20*mib + mib/2, 20*mib + mib/2},
		{21*mib - 512, 21*mib - 512},
	} {
		a := newAllocator(t, nil, torch.Options{})
		freed(t, a, 22*mib)
		if b := take(t, a, c.bytes); b.Size != c.size {
			t.Errorf("%d bytes of a free 22 MiB block: got %d, want %d", c.bytes, b.Size, c.size)
		}
	}
}

func TestStreamsNeverShareBlocks(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	one := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 1})
	give(t, a, one)
	if b := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 2}); b.Address == one.Address {
		t.Error("stream 2 got what stream 1 had freed")
	}
	if b := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 1}); b.Address != one.Address {
		t.Error("stream 1 did not get its own block again")
	}
}

func TestAnotherStreamGetsTheMemoryAfterARelease(t *testing.T) {
	a := newAllocator(t, alloc.NewCard(32*mib), torch.Options{})
	give(t, a, takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 1}))
	takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 2})
	if s := a.Statistics(); s.NumAllocRetries != 1 || s.NumOOMs != 0 || s.NumSyncAllStreams != 1 {
		t.Errorf("%+v", s)
	}
}

func TestOfEqualBlocksTheLowerAddressGoesFirst(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	low, high := take(t, a, 30*mib), take(t, a, 30*mib)
	give(t, a, high, low)
	if b := take(t, a, 30*mib); b.Address != low.Address || low.Address > high.Address {
		t.Errorf("got %x of %x and %x", b.Address, low.Address, high.Address)
	}
}

func TestAfterEmptyCacheNothingIsReserved(t *testing.T) {
	for _, text := range []string{"", "expandable_segments:True", "max_split_size_mb:32"} {
		a := withSettings(t, alloc.NewCard(1<<33), text, torch.Options{})
		var list []alloc.Block
		for i := range int64(40) {
			list = append(list, takeOn(t, a, torch.Request{Bytes: 1 + i*i*33333, Stream: torch.Stream(i % 3)}))
		}
		give(t, a, list...)
		if a.Stats().Pool == 0 {
			t.Error("freed memory is kept")
		}
		a.EmptyCache()
		if s := a.Stats(); s.Pool != 0 || len(a.ChunkMap()) != 0 {
			t.Errorf("%q: %+v", text, s)
		}
		if s := a.Statistics(); s.NumAllocRetries != 0 || s.NumDeviceAlloc == 0 || s.NumDeviceFree == 0 {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

func TestExpandableSegmentsPackAsPublished(t *testing.T) {
	for _, c := range []struct {
		text       string
		sizes      []int64 // then all are freed, then second
		reserved   []int64 // after each, in MiB
		second     int64
		secondPool int64
	}{
		{
			"expandable_segments:True",
			[]int64{16, 16, 16, 16, 16, 16, 16, 16},
			[]int64{20, 40, 60, 80, 80, 100, 120, 140},
			32, 140,
		},
		{"", []int64{16, 16, 16, 16, 16, 16, 16, 16}, []int64{16, 32, 48, 64, 80, 96, 112, 128}, 32, 256},
		{"", []int64{32, 32, 32, 32}, []int64{32, 64, 96, 128}, 16, 128},
		{"expandable_segments:True", []int64{32, 32, 32, 32}, []int64{40, 80, 100, 140}, 16, 140},
	} {
		a := withSettings(t, alloc.NewCard(1<<34), c.text, torch.Options{})
		var list []alloc.Block
		for i, n := range c.sizes {
			list = append(list, take(t, a, n*mib))
			if got := a.Stats().Pool; got != c.reserved[i]*mib {
				t.Errorf("%q, %d: %d MiB reserved, want %d", c.text, i, got/mib, c.reserved[i])
			}
		}
		give(t, a, list...)
		for range 128 / c.second {
			take(t, a, c.second*mib)
		}
		if got := a.Stats().Pool; got != c.secondPool*mib {
			t.Errorf("%q: %d MiB reserved at the end, want %d", c.text, got/mib, c.secondPool)
		}
	}
}

func TestUnmappingKeepsThePartsOfPages(t *testing.T) {
	a := withSettings(t, alloc.NewCard(1<<34), "expandable_segments:True", torch.Options{})
	first, middle, last := take(t, a, 5*mib), take(t, a, 50*mib), take(t, a, 5*mib)
	give(t, a, middle) // 5 to 55 MiB: only the page from 20 to 40 is free as a whole
	a.EmptyCache()
	if got := a.Stats().Pool; got != 40*mib {
		t.Errorf("%d MiB reserved, want 40", got/mib)
	}
	snap := a.Snapshot()
	if len(snap) != 2 || snap[0].Total != 20*mib || snap[1].Total != 20*mib || !snap[0].Expandable ||
		snap[1].Address != snap[0].Address+uint64(40*mib) {
		t.Fatalf("%+v", snap)
	}
	// The hole is filled first, so that the segment is one again.
	if again := take(t, a, 50*mib); again.Address != middle.Address || a.Stats().Pool != 60*mib {
		t.Errorf("%x with %d MiB, want %x with 60", again.Address, a.Stats().Pool/mib, middle.Address)
	}
	_, _ = first, last
}

func TestTurningExpandableSegmentsOff(t *testing.T) {
	a := withSettings(t, alloc.NewCard(1<<34), "expandable_segments:True", torch.Options{})
	b := freed(t, a, 30*mib)
	if err := a.SetSettings(torch.Settings{}); err != nil {
		t.Fatal(err)
	}
	plain := take(t, a, 30*mib)
	if plain.Address == b.Address {
		t.Error("an expandable block was handed out")
	}
	if s := a.Statistics(); s.Segment.All.Current != 1 || s.ReservedBytes.All.Current != 70*mib {
		t.Errorf("%+v", s)
	}
}

func TestTheTextOfAFailure(t *testing.T) {
	a := newAllocator(t, alloc.NewCard(100*mib), torch.Options{Fraction: .5, Device: 3})
	take(t, a, 30*mib)
	take(t, a, 1000)
	var log logged
	o := torch.Options{Device: 0, Observer: &log}
	if _, ok := a.AllocateOn(torch.Request{Bytes: 5 * mib, Stream: 2}); ok {
		t.Fatal("30 + 2 + 20 MiB fit into 50")
	}
	const want = "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total capacity of 100.00 MiB of which 68.00 MiB is free. " +
		"50.00 MiB allowed; Of the allocated memory 30.00 MiB is allocated by PyTorch, and 2.00 MiB is reserved by PyTorch but unallocated. " +
		"If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  " +
		"See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
	if got := a.Failure().Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := a.Failure().Text("Process 7 has 1.00 GiB memory in use. "); !strings.Contains(got, "is free. Process 7 has 1.00 GiB memory in use. 50.00 MiB allowed; Of") {
		t.Error(got)
	}

	a = newAllocator(t, alloc.NewCard(4*mib), o)
	private := torch.PoolID{A: 1}
	give(t, a, takeOn(t, a, torch.Request{Bytes: 1000, Pool: private}))
	take(t, a, 512)
	if _, ok := a.AllocateOn(torch.Request{Bytes: 3 << 30}); ok {
		t.Fatal("3 GiB fit into 4 MiB")
	}
	got := a.Failure().Error()
	if !strings.Contains(got, "Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 4.00 MiB of which 0 bytes is free. Of the allocated memory 2.00 MiB is "+
		"allocated by PyTorch, with 2.00 MiB allocated in private pools (e.g., CUDA Graphs), and 2.00 MiB is reserved") {
		t.Error(got)
	}
	if len(log.lines) != 1 || log.lines[0] != "W"+got {
		t.Errorf("%q", log.lines)
	}
}

type logged struct {
	alloc.NoObserver
	lines []string
}

func (l *logged) Log(s alloc.Severity, text string) { l.lines = append(l.lines, string(rune(s))+text) }

func TestSizesInTexts(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 bytes", 1024: "1024 bytes", 1025: "1.00 KiB", 1 << 20: "1024.00 KiB", 1<<20 + 1: "1.00 MiB",
		1 << 30: "1024.00 MiB", 1<<30 + 1: "1.00 GiB", 5 << 40: "5120.00 GiB", 1536: "1.50 KiB",
	} {
		if got := torch.FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestRequestsThatNeverEnter(t *testing.T) {
	a := newAllocator(t, alloc.NewCard(64*mib), torch.Options{})
	for _, n := range []int64{0, -1} {
		if b, ok := a.AllocateOn(torch.Request{Bytes: n}); ok || b != (alloc.Block{}) {
			t.Errorf("%d bytes: %+v", n, b)
		}
	}
	if a.Failure() != nil || a.Statistics().NumOOMs != 0 {
		t.Error("nothing was asked for, and yet it failed")
	}
	if _, ok := a.AllocateOn(torch.Request{Bytes: 1<<60 + 1}); ok {
		t.Error("more than 2^60 bytes")
	}
	if f := a.Failure(); f == nil || !f.Absurd || !strings.Contains(f.Error(), "more than 1EB") {
		t.Errorf("%+v", f)
	}
	if s := a.Statistics(); s.NumOOMs != 0 || s.NumAllocRetries != 0 {
		t.Errorf("%+v", s)
	}
	if _, ok := a.AllocateOn(torch.Request{Bytes: 1 << 60}); ok || a.Statistics().NumOOMs != 1 {
		t.Error("2^60 bytes are tried, and fail")
	}
	if err := a.Free(0); err != nil {
		t.Error(err)
	}
	for _, addr := range []uint64{1, 512, 1 << 32} {
		if err := a.Free(addr); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%#x", addr)) {
			t.Error(err)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	device := torch.NewDevice(alloc.NewCard(64*mib), 0)
	space, err := alloc.NewSpace(alloc.SpaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		driver alloc.SubAllocator
		o      torch.Options
		want   string
	}{
		{nil, torch.Options{}, "no driver"},
		{device, torch.Options{Fraction: 1.5}, "1.5"},
		{device, torch.Options{Fraction: -1}, "-1"},
		{space, torch.Options{Fraction: .5}, "known size"},
		{space, torch.Options{Settings: torch.Settings{Expandable: true}}, "maps pages"},
		{device, torch.Options{Settings: torch.Settings{Backend: torch.MallocAsync}}, "cudaMallocAsync"},
		{device, torch.Options{Settings: torch.Settings{MaxSplit: 5}}, "max_split_size_mb"},
		{device, torch.Options{Settings: torch.Settings{MaxSplit: 20*mib + 1}}, "multiple of 512"},
		{device, torch.Options{Settings: torch.Settings{LargeSegment: 20*mib + 1}}, "large_segment_size_mb"},
		{device, torch.Options{Settings: torch.Settings{MaxNonSplitRounding: 1}}, "max_non_split_rounding_mb"},
		{device, torch.Options{Settings: torch.Settings{GarbageCollection: 1}}, "garbage_collection_threshold"},
		{device, torch.Options{Settings: torch.Settings{Divisions: [16]int64{3}}}, "roundup_power2_divisions"},
	} {
		if _, err := torch.New(c.driver, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}

// TestAPlainDriverServes: without expandable segments any driver will do, also
// one that gives more than was asked for.
func TestAPlainDriverServes(t *testing.T) {
	card := alloc.NewCard(100 * mib)
	space, err := alloc.NewSpace(alloc.SpaceOptions{Card: card, Granularity: 3 * mib, Order: alloc.Down})
	if err != nil {
		t.Fatal(err)
	}
	a, err := torch.New(space, torch.Options{DeviceTotal: 100 * mib, Fraction: .25})
	if err != nil {
		t.Fatal(err)
	}
	if a.Limit() != 25*mib || a.Name() != "GPU_0_torch" {
		t.Errorf("limit %d, name %s", a.Limit(), a.Name())
	}
	b, ok := a.Allocate(alloc.Request{Bytes: 1000})
	if !ok || b.Size != 1024 || b.Requested != 1000 || b.ID != 1 || card.Held() != 3*mib {
		t.Errorf("%+v %v, %d held", b, ok, card.Held())
	}
	c, _ := a.Allocate(alloc.Request{Bytes: 5 * mib})
	if _, ok := a.Allocate(alloc.Request{Bytes: 16 * mib}); ok {
		t.Error("the limit was passed")
	}
	give(t, a, b)
	a.EmptyCache()
	if card.Held() != 21*mib {
		t.Errorf("%d held", card.Held())
	}
	a.Close()
	if card.Held() != 0 {
		t.Errorf("%d held after the end", card.Held())
	}
	_ = c
}

func TestAFractionOfOneIsNoLimit(t *testing.T) {
	a := newAllocator(t, alloc.NewCard(64*mib), torch.Options{Fraction: .5})
	if a.Limit() != 32*mib {
		t.Error(a.Limit())
	}
	if err := a.SetFraction(1); err != nil || a.Limit() != 0 {
		t.Error(err, a.Limit())
	}
	take(t, a, 64*mib)
}

func TestStatisticsAndTheirResets(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	b, c := take(t, a, 1000), take(t, a, 3*mib)
	give(t, a, b)
	s := a.Statistics()
	check := func(name string, got, want torch.Stat) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	check("allocation", s.Allocation.All, torch.Stat{Current: 1, Peak: 2, Allocated: 2, Freed: 1})
	check("small allocation", s.Allocation.Small, torch.Stat{Peak: 1, Allocated: 1, Freed: 1})
	check("allocated_bytes", s.AllocatedBytes.All, torch.Stat{Current: 3 * mib, Peak: 3*mib + 1024, Allocated: 3*mib + 1024, Freed: 1024})
	check("requested_bytes", s.RequestedBytes.All, torch.Stat{Current: 3 * mib, Peak: 3*mib + 1000, Allocated: 3*mib + 1000, Freed: 1000})
	check("reserved_bytes", s.ReservedBytes.All, torch.Stat{Current: 22 * mib, Peak: 22 * mib, Allocated: 22 * mib})
	check("segment", s.Segment.Large, torch.Stat{Current: 1, Peak: 1, Allocated: 1})
	check("inactive_split_bytes", s.InactiveSplitBytes.All, torch.Stat{Current: 17 * mib, Peak: 17*mib + 2*mib - 1024, Allocated: 17*mib + 2*mib - 1024, Freed: 2*mib - 1024})
	if s.MaxSplitSize != -1 || s.NumDeviceAlloc != 2 {
		t.Errorf("%+v", s)
	}
	a.ClearStats()
	s = a.Statistics()
	check("allocation", s.Allocation.All, torch.Stat{Current: 1, Peak: 1})
	check("allocated_bytes", s.AllocatedBytes.All, torch.Stat{Current: 3 * mib, Peak: 3 * mib})
	give(t, a, c)
	s = a.Statistics()
	check("allocated_bytes", s.AllocatedBytes.All, torch.Stat{Peak: 3 * mib, Freed: 3 * mib})
	if s.NumDeviceAlloc != 0 || a.Stats().LargestAlloc != 0 {
		t.Errorf("%+v", s)
	}
}

func TestGarbageCollectionTakesTheOldest(t *testing.T) {
	// 200 MiB allowed, collection once more than 100 MiB are reserved.
	a := withSettings(t, alloc.NewCard(400*mib), "garbage_collection_threshold:0.5", torch.Options{Fraction: .5})
	for _, n := range []int64{30, 32, 34} {
		freed(t, a, n*mib) // free after 1, 2 and 3 searches
	}
	take(t, a, 50*mib)
	if s := a.Statistics(); s.NumDeviceFree != 0 || s.ReservedBytes.All.Current != 146*mib {
		t.Fatalf("96 MiB were reserved, and yet: %+v", s)
	}
	take(t, a, 52*mib)
	// Ages at this fifth search: 4, 3, 2. Those at the average or above go, and
	// with them more than the 46 MiB above the threshold.
	s := a.Statistics()
	if s.ReservedBytes.All.Current != (34+50+52)*mib || s.NumDeviceFree != 2 || s.NumAllocRetries != 0 {
		t.Errorf("%d MiB reserved, %d given back", s.ReservedBytes.All.Current/mib, s.NumDeviceFree)
	}
}

func TestGarbageCollectionNeedsALimit(t *testing.T) {
	a := withSettings(t, alloc.NewCard(400*mib), "garbage_collection_threshold:0.1", torch.Options{})
	for i := range int64(5) {
		freed(t, a, (40+4*i)*mib)
	}
	if s := a.Statistics(); s.NumDeviceFree != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOversizeBlocksAreGivenBackUntilItIsEnough(t *testing.T) {
	// Three oversize blocks; a request that none serves gives back the largest
	// ones until their sum reaches it.
	a := withSettings(t, alloc.NewCard(300*mib), "max_split_size_mb:32", torch.Options{})
	x, y, z := take(t, a, 60*mib), take(t, a, 80*mib), take(t, a, 100*mib)
	give(t, a, x, y, z)
	take(t, a, 170*mib)
	s := a.Statistics()
	if s.ReservedBytes.All.Current != 230*mib || s.NumAllocRetries != 0 || s.NumDeviceFree != 2 {
		t.Errorf("%d MiB, %+v", s.ReservedBytes.All.Current/mib, s)
	}
	if s.MaxSplitSize != 32*mib {
		t.Error(s.MaxSplitSize)
	}
}

func TestACallbackCanFreeSomething(t *testing.T) {
	var a *torch.Allocator
	var held alloc.Block
	calls := 0
	a = newAllocator(t, alloc.NewCard(64*mib), torch.Options{FreeSome: func() bool {
		calls++
		if held.Address == 0 {
			return false
		}
		err := a.Free(held.Address)
		held = alloc.Block{}
		return err == nil
	}})
	first := take(t, a, 40*mib)
	held = first
	if b := take(t, a, 40*mib); b.Address != first.Address || calls != 2 {
		t.Errorf("%x after %d calls", b.Address, calls)
	}
}

func TestTheInterfaceOfAllAllocators(t *testing.T) {
	var a alloc.Allocator = newAllocator(t, alloc.NewCard(64*mib), torch.Options{Name: "x"})
	b, ok := a.Allocate(alloc.Request{Bytes: 100, Alignment: 4096, NoRetry: true})
	if !ok || b.Size != 512 || a.Name() != "x" || a.Limit() != 0 {
		t.Errorf("%+v", b)
	}
	st := a.Stats()
	if st.NumAllocs != 1 || st.InUse != 512 || st.Pool != 2*mib || st.LargestFree != 2*mib-512 || st.LargestAlloc != 512 {
		t.Errorf("%+v", st)
	}
	want := event.ChunkMap{{Address: b.Address, Size: 2 * mib, Chunks: []event.Chunk{
		{Address: b.Address, Size: 512, Requested: 100, InUse: true}, {Address: b.Address + 512, Size: 2*mib - 512},
	}}}
	if got := a.ChunkMap(); got.Encode() != want.Encode() {
		t.Errorf("%+v", got)
	}
	if err := a.Free(b.Address); err != nil {
		t.Error(err)
	}
	a.Close()
	if st := a.Stats(); st.Pool != 0 || len(a.ChunkMap()) != 0 {
		t.Errorf("%+v", st)
	}
}
