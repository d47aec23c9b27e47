package ort_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/ort"
	"tideline/shared/alloc/stream"
	"tideline/shared/golden"
)

const mib = 1 << 20

// hearer keeps what an arena says and takes.
type hearer struct {
	alloc.NoObserver
	text    []string
	taken   []int64
	given   []int64
	refused int
}

func (h *hearer) Log(_ alloc.Severity, text string)       { h.text = append(h.text, text) }
func (h *hearer) RegionTaken(_ uint64, _, received int64) { h.taken = append(h.taken, received) }
func (h *hearer) RegionGiven(_ uint64, bytes int64)       { h.given = append(h.given, bytes) }
func (h *hearer) RegionRefused(int64)                     { h.refused++ }

func arena(tb testing.TB, o ort.Options, capacity int64) (*ort.Arena, *hearer) {
	tb.Helper()
	sub, err := alloc.NewSpace(alloc.SpaceOptions{Card: alloc.NewCard(capacity)})
	if err != nil {
		tb.Fatal(err)
	}
	h := &hearer{}
	o.Observer = h
	a, err := ort.New(sub, o)
	if err != nil {
		tb.Fatal(err)
	}
	return a, h
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

// Case 13 is a real log: every line of the arena in it must be ours but for
// the addresses, which are the driver's.
func TestRegionsAndWordsOfTheRealLog(t *testing.T) {
	log, err := os.ReadFile(filepath.Join(golden.Cases(t), "13-ort-2022-arena-power-of-two", "input.log"))
	if err != nil {
		t.Fatal(err)
	}
	a, h := arena(t, ort.Options{}, 0)
	get(t, a, 160000)
	get(t, a, 19888128)
	same(t, "regions", h.taken, []int64{1 << 20, 32 << 20})
	address := regexp.MustCompile(`0x[0-9a-f]+`)
	i := 0
	for line := range bytes.Lines(log) {
		_, text, ok := strings.Cut(strings.TrimSpace(string(line)), "] ")
		if !ok || !strings.Contains(string(line), "bfc_arena.cc") {
			continue
		}
		if i == len(h.text) || address.ReplaceAllString(h.text[i], "A") != address.ReplaceAllString(text, "A") {
			t.Fatalf("record %d of %q, want %q", i, h.text, text)
		}
		i++
	}
	if i != len(h.text) || i == 0 {
		t.Errorf("%d records, the real log has %d", len(h.text), i)
	}
}

func TestSameAsRequestedTakesTheRoundedRequests(t *testing.T) {
	a, h := arena(t, ort.Options{Strategy: ort.SameAsRequested}, 0)
	get(t, a, 160000)
	get(t, a, 19888128)
	get(t, a, 1)
	same(t, "regions", h.taken, []int64{160000, 19888128, 256})
}

func TestLimitNamesWhatIsAvailable(t *testing.T) {
	a, h := arena(t, ort.Options{MaxMemory: 10 * mib}, 0)
	get(t, a, 6*mib)
	same(t, "regions", h.taken, []int64{8 * mib})
	if _, ok := a.Allocate(alloc.Request{Bytes: 5 * mib}); ok {
		t.Fatal("5 MiB fit into 2")
	}
	if want := "Available memory of 2097152 is smaller than requested bytes of 5242880"; a.Failure() != want {
		t.Errorf("%q, want %q", a.Failure(), want)
	}
}

func TestSplitNeedsTwiceOrTooMuchDead(t *testing.T) {
	for _, c := range []struct {
		dead, request, size int64
	}{
		{0, 1 * mib, 1 * mib},
		{0, 1677824, 3 * mib}, // 1.6 MiB
		{1 * mib, 1677824, 1677824},
	} {
		a, _ := arena(t, ort.Options{Strategy: ort.SameAsRequested, MaxDead: c.dead}, 0)
		free(t, a, get(t, a, 3*mib))
		if b := get(t, a, c.request); b.Size != c.size {
			t.Errorf("max dead %d, request %d: block of %d, want %d", c.dead, c.request, b.Size, c.size)
		}
	}
}

func TestShrinkKeepsTheFirstRegionOfADoublingArena(t *testing.T) {
	for _, c := range []struct {
		name string
		o    ort.Options
		kept int64
	}{
		{"strategy 0", ort.Options{}, 1 * mib},
		{"strategy 1", ort.Options{Strategy: ort.SameAsRequested}, 0},
		{"strategy 0 of the plugin", ort.Options{Profile: ort.Plugin}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, h := arena(t, c.o, 0)
			var blocks []alloc.Block
			for _, n := range []int64{1000, 3 * mib, 20 * mib} {
				blocks = append(blocks, get(t, a, n))
			}
			for _, b := range blocks {
				free(t, a, b)
			}
			a.Shrink()
			s := a.Statistics()
			if s.TotalAllocated != c.kept || s.NumShrinkages != int64(len(h.given)) || s.NumExtensions != 3-s.NumShrinkages {
				t.Errorf("%+v", s)
			}
			if a.Stats().NextRegion != 2*mib {
				t.Errorf("the next region is %d", a.Stats().NextRegion)
			}
			h.taken = nil
			get(t, a, 1500000) // more than the first region has
			want := int64(2 * mib)
			if c.o.Strategy == ort.SameAsRequested {
				want = 1500160
			}
			same(t, "regions after the shrink", h.taken, []int64{want})
		})
	}
}

func TestShrinkKeepsRegionsInUse(t *testing.T) {
	a, h := arena(t, ort.Options{}, 0)
	get(t, a, 3*mib) // the first region is of 4 MiB
	x := get(t, a, 8*mib)
	y := get(t, a, 16*mib)
	free(t, a, x)
	a.Shrink()
	same(t, "given back", h.given, []int64{8 * mib})
	free(t, a, y)
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestAFreeOnOneStreamServesAnotherOnlyAfterASynchronisation(t *testing.T) {
	var order stream.Order
	a, _ := arena(t, ort.Options{Order: &order}, 0)
	a.UseStream(1)
	x := get(t, a, 1*mib)
	free(t, a, x)
	a.UseStream(2)
	y := get(t, a, 1*mib)
	if y.Address == x.Address {
		t.Fatal("stream 2 got the chunk of stream 1")
	}
	order.Wait(2, 1)
	if z := get(t, a, 1*mib); z.Address != x.Address {
		t.Errorf("stream 2 waited for stream 1 and got %x instead of %x", z.Address, x.Address)
	}
	// A wait before the free is none behind it.
	a.UseStream(1)
	x = get(t, a, 1*mib)
	order.Wait(2, 1)
	free(t, a, x)
	a.UseStream(2)
	if z := get(t, a, 1*mib); z.Address == x.Address {
		t.Error("stream 2 got what stream 1 freed after the wait")
	}
}

func TestCrossStreamTakesTheChunkWholeAfterAWait(t *testing.T) {
	var order stream.Order
	var waits [][2]stream.ID
	a, h := arena(t, ort.Options{Order: &order, CrossStream: true, OnWait: func(by, on stream.ID) { waits = append(waits, [2]stream.ID{by, on}) }}, 0)
	a.UseStream(1)
	x := get(t, a, 1*mib)
	free(t, a, x)
	a.UseStream(2)
	if y := get(t, a, 1000); y.Address != x.Address || y.Size != 1*mib || len(waits) != 1 || waits[0] != [2]stream.ID{2, 1} || len(h.taken) != 1 {
		t.Errorf("%+v after the waits %v", y, waits)
	}
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestTheEndOfAStreamMergesItsChunks(t *testing.T) {
	a, _ := arena(t, ort.Options{Strategy: ort.SameAsRequested}, 0)
	free(t, a, get(t, a, 4*mib))
	a.UseStream(1)
	x := get(t, a, 1*mib)
	a.UseStream(2)
	y := get(t, a, 1*mib)
	z := get(t, a, 1*mib)
	free(t, a, x)
	free(t, a, y)
	free(t, a, z)
	if n := len(a.ChunkMap()[0].Chunks); n != 3 {
		t.Fatalf("%d chunks, want 3: stream 1's, stream 2's and the rest", n)
	}
	a.EndStream(2)
	if n := len(a.ChunkMap()[0].Chunks); n != 2 {
		t.Errorf("%d chunks after the end of stream 2, want 2", n)
	}
	a.EndStream(1)
	if n := len(a.ChunkMap()[0].Chunks); n != 1 {
		t.Errorf("%d chunks after the end of both streams, want 1", n)
	}
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestReservationsAreInUseAndInNoBin(t *testing.T) {
	a, h := arena(t, ort.Options{MaxMemory: 4 * mib, Dump: true}, 0)
	b, ok := a.Reserve(1*mib + 5)
	if !ok || b.Size != 1*mib+5 {
		t.Fatalf("%+v %v", b, ok)
	}
	s := a.Statistics()
	if s.BytesInUse != 1*mib+5 || s.TotalAllocated != 1*mib+5 || s.NumReserves != 1 || s.NumExtensions != 0 || s.NumAllocs != 1 {
		t.Errorf("%+v", s)
	}
	h.text = nil
	if _, ok := a.Allocate(alloc.Request{Bytes: 3 * mib}); ok {
		t.Error("3 MiB fit beside the reservation")
	}
	if got, want := a.Failure(), "Available memory of 3145472 is smaller than requested bytes of 3145728"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, l := range h.text {
		if strings.Contains(l, ". Bytes ") {
			t.Errorf("a bin is not empty: %s", l)
		}
	}
	a.Shrink()
	free(t, a, b)
	if s := a.Statistics(); s.BytesInUse != 0 || s.TotalAllocated != 0 || len(h.given) != 1 {
		t.Errorf("%+v", s)
	}
}

func TestOnlyThePluginHoldsReservationsToTheLimit(t *testing.T) {
	core, _ := arena(t, ort.Options{MaxMemory: mib}, 0)
	if _, ok := core.Reserve(2 * mib); !ok {
		t.Error("the core's reservations know no limit")
	}
	plugin, _ := arena(t, ort.Options{MaxMemory: mib, Profile: ort.Plugin}, 0)
	if _, ok := plugin.Reserve(2 * mib); ok {
		t.Error("the plugin reserved past the limit")
	}
}

// Cases 14 and 15 are real failures.
func TestWordsOfRealFailures(t *testing.T) {
	for _, c := range []struct {
		dir   string
		setup func(t *testing.T) *ort.Arena
		bytes int64
	}{
		{"14-ort-2024-arena-limit-reached", func(t *testing.T) *ort.Arena {
			t.Helper()
			a, _ := arena(t, ort.Options{MaxMemory: 1*mib + 100}, 0)
			get(t, a, 1*mib)
			return a
		}, 2000},
		{"15-ort-2024-impossible-size", func(t *testing.T) *ort.Arena {
			t.Helper()
			a, _ := arena(t, ort.Options{}, 16<<30)
			return a
		}, 4585490524328388608 - 17},
	} {
		t.Run(c.dir, func(t *testing.T) {
			log, err := os.ReadFile(filepath.Join(golden.Cases(t), c.dir, "input.log"))
			if err != nil {
				t.Fatal(err)
			}
			a := c.setup(t)
			if _, ok := a.Allocate(alloc.Request{Bytes: c.bytes}); ok {
				t.Fatal("it fits")
			}
			if !strings.HasSuffix(strings.TrimSpace(string(log)), " "+a.Failure()) {
				t.Errorf("%q is not the end of %s", a.Failure(), log)
			}
		})
	}
}

// The case file tells the regions once more, as numbers.
func TestExtensionsOfTheCaseFile(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(golden.Cases(t), "13-ort-2022-arena-power-of-two", "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Expected struct {
			Extensions []struct {
				Bin, Requested int64
				ExtendedBy     int64 `json:"extended_by"`
				Total          int64
			}
		}
	}
	if err := json.Unmarshal(b, &c); err != nil || len(c.Expected.Extensions) != 2 {
		t.Fatal(err)
	}
	a, h := arena(t, ort.Options{}, 0)
	for i, e := range c.Expected.Extensions {
		get(t, a, e.Requested)
		if h.taken[i] != e.ExtendedBy || a.Statistics().TotalAllocated != e.Total || int64(ort.BinOf(e.Requested)) != e.Bin {
			t.Errorf("extension %d: %v, total %d, bin %d, want %+v", i, h.taken, a.Statistics().TotalAllocated, ort.BinOf(e.Requested), e)
		}
	}
}

func TestTheCapHoldsDoublingButNoRequest(t *testing.T) {
	a, h := arena(t, ort.Options{MaxExtend: 4 * mib}, 0)
	for range 5 {
		get(t, a, 1*mib)
	}
	get(t, a, 2*mib)
	get(t, a, 4*mib) // from the third region's rest and a fourth
	same(t, "regions", h.taken, []int64{1 * mib, 2 * mib, 4 * mib, 4 * mib})
	get(t, a, 9*mib)
	same(t, "regions", h.taken, []int64{1 * mib, 2 * mib, 4 * mib, 4 * mib, 16 * mib})
}

func TestBackpedalling(t *testing.T) {
	a, h := arena(t, ort.Options{}, 3*mib+mib/2)
	get(t, a, 700*1024)
	get(t, a, 1*mib) // the second region would be of 2 MiB
	same(t, "regions", h.taken, []int64{1 * mib, 2 * mib})
	// What is left on the card are 512 KiB: 4 MiB, less and less, down to below.
	if _, ok := a.Allocate(alloc.Request{Bytes: 1500 * 1024}); ok {
		t.Error("1,500 KiB fit")
	}
	if want := "Failed to allocate memory for requested buffer of size 1536000"; a.Failure() != want || h.refused != 10 {
		t.Errorf("%q after %d refusals, want %q after 10", a.Failure(), h.refused, want)
	}
	get(t, a, 1*mib)
	get(t, a, 450*1024)
	if n := len(h.taken); n != 3 || h.taken[2] < 450*1024 || h.taken[2] > 512*1024 || h.taken[2]%256 != 0 {
		t.Errorf("regions %v", h.taken)
	}
}

func TestDumpReadsAsTheFormatSays(t *testing.T) {
	a, h := arena(t, ort.Options{MaxMemory: 1 * mib, Dump: true}, 0)
	get(t, a, 1000)
	x := get(t, a, 2000)
	get(t, a, 1000)
	free(t, a, x)
	h.text = nil
	a.Allocate(alloc.Request{Bytes: 2 * mib})
	want := []string{
		"Extending BFCArena for Cuda. bin_num:13 (requested) num_bytes: 2097152 (actual) rounded_bytes:2097152",
		"BFC Arena ran out of memory trying to allocate 2097152.  Current allocation summary follows.",
		"Allocator:Cuda",
		"Bin size: Chunks in_use/total (if not zero). Allocated bytes in_use/total. Requested bytes.",
		"1024: Chunks 2/2. Bytes 2048/2048. Requested 2000.",
		"2048: Chunks 0/1. Bytes 0/2048. Requested 0.",
		"524288: Chunks 0/1. Bytes 0/1044480. Requested 0.",
		"Diff between in-use and requested bytes is 48",
		"Bin for 2097152 bytes has max bytes of 2097152, Chunk State: ",
		"Overall chunks summary:",
		"  Chunk at 0x7f0000000000 of size 1024",
		"  Free  at 0x7f0000000400 of size 2048",
		"  Chunk at 0x7f0000000c00 of size 1024",
		"  Free  at 0x7f0000001000 of size 1044480",
		"Summary of in-use chunks by size: ",
		"  2 chunks of size 1024. Total 2048",
		"Sum Total of in-use chunks: 2048",
		"Stats: \nLimit:                    1048576\nInUse:                    2048\nTotalAllocated:           1048576\nMaxInUse:                 4096\n" +
			"NumAllocs:                3\nNumReserves:              0\nNumArenaExtensions:       1\nNumArenaShrinkages:       0\nMaxAllocSize:             2048\n",
		"Available memory of 0 is smaller than requested bytes of 2097152",
	}
	if len(h.text) != len(want) {
		t.Fatalf("%d records, want %d: %q", len(h.text), len(want), h.text)
	}
	for i := range want {
		if h.text[i] != want[i] {
			t.Errorf("record %d: %q, want %q", i, h.text[i], want[i])
		}
	}
}
