package bfc_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
)

func TestTheCopiedAnswersAreReproduced(t *testing.T) {
	const dir = "testdata/golden"
	traces, err := filepath.Glob(dir + "/*.trace.gz")
	if err != nil || len(traces) < 8 {
		t.Fatalf("only %d cases found, error %v", len(traces), err)
	}
	for _, f := range traces {
		name := strings.TrimSuffix(filepath.Base(f), ".trace.gz")
		t.Run(name, func(t *testing.T) {
			checkCurrent(t, dir, name)
			want, ok := read(t, filepath.Join(dir, name+".log-2024.txt"))
			if !ok {
				return
			}
			in, _ := read(t, filepath.Join(dir, name+".trace"))
			_, log, _ := answer(t, in, bfc.Classic)
			compare(t, "log of 2024", log, want)
		})
	}
}

func newAllocator(t *testing.T, o bfc.Options) *bfc.Allocator {
	t.Helper()
	sub, err := alloc.NewSpace(alloc.SpaceOptions{Alignment: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	a, err := bfc.New(sub, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Upstream's own test "AllocationsAndDeallocations": one block of every size.
func TestStatsOfOneBlockOfEverySize(t *testing.T) {
	a := newAllocator(t, bfc.Options{Limit: 1 << 30, NoRetry: true})
	for n := int64(1); n < 1024; n++ {
		if _, ok := a.Allocate(alloc.Request{Bytes: n}); !ok {
			t.Fatalf("%d bytes do not fit", n)
		}
	}
	s := a.Stats()
	if s.NumAllocs != 1023 || s.InUse != 654336 || s.PeakInUse != 654336 || s.LargestAlloc != 1024 {
		t.Errorf("stats %+v", s)
	}
	a.ClearStats()
	if s = a.Stats(); s.NumAllocs != 0 || s.PeakInUse != 654336 || s.LargestAlloc != 0 || s.PeakPool != 1<<30 {
		t.Errorf("stats after clearing %+v", s)
	}
}

func TestStatsOfManyRounds(t *testing.T) {
	a := newAllocator(t, bfc.Options{Limit: 1 << 30, NoRetry: true})
	get := func(n int64) uint64 {
		b, ok := a.Allocate(alloc.Request{Bytes: n})
		if !ok {
			t.Fatalf("%d bytes do not fit", n)
		}
		return b.Address
	}
	give := func(addr uint64) {
		if err := a.Free(addr); err != nil {
			t.Fatal(err)
		}
	}
	first := get(4096)
	give(first)
	for range 1024 {
		b := []uint64{get(4096), get(8388608), get(16384), get(41943040)}
		if b[0] != first {
			t.Fatalf("%x instead of the first address %x", b[0], first)
		}
		for _, addr := range b {
			give(addr)
		}
	}
	s := a.Stats()
	if s.NumAllocs != 4097 || s.InUse != 0 || s.PeakInUse != 50352128 || s.LargestAlloc != 41943040 {
		t.Errorf("stats %+v", s)
	}
}

func TestHumanBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 1000: "1000B", 1023: "1023B", 1024: "1.0KiB", 1280: "1.2KiB", 1048575: "1024.0KiB",
		48182480: "45.95MiB", 15678832640: "14.60GiB", 1073741568: "1024.00MiB", 1 << 40: "1.00TiB",
		1 << 50: "1.00PiB", 1<<63 - 1: "8.00EiB", -1 << 63: "-8.00EiB", -27262976: "-26.00MiB", -5: "-5B",
	} {
		if got := bfc.HumanBytes(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestBinOf(t *testing.T) {
	for size, want := range map[int64]int{
		0: 0, 1: 0, 256: 0, 511: 0, 512: 1, 1023: 1, 1024: 2, 1<<28 - 256: 19, 1 << 28: 20, 1 << 40: 20,
	} {
		if got := bfc.BinOf(size); got != want {
			t.Errorf("%d bytes are in bin %d, want %d", size, got, want)
		}
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	sub, err := alloc.NewSpace(alloc.SpaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]bfc.Options{
		"the limit -1 is negative": {Limit: -1},
		"no room for rounding":     {Limit: 1<<63 - 1},
		"not between 0 and 1":      {Limit: 1 << 20, Fragmentation: 1.5},
		"less than a byte":         {Limit: 1 << 20, Fragmentation: 1e-9},
		"classic profile":          {Limit: 1 << 20, Profile: bfc.Classic, Partition: bfc.Partition{On: true}},
		"growth must be off":       {Limit: 1 << 20, Growth: true, Partition: bfc.Partition{On: true}},
	} {
		if _, err := bfc.New(sub, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

func TestBadFreesAreRefused(t *testing.T) {
	a := newAllocator(t, bfc.Options{Name: "GPU_0_bfc", Limit: 1 << 20, NoRetry: true})
	if err := a.Free(0x1234); err == nil {
		t.Error("a free before the first region passed")
	}
	b, _ := a.Allocate(alloc.Request{Bytes: 1000})
	before := a.Stats()
	for _, addr := range []uint64{b.Address + 1, b.Address + 256, b.Address + 1024, b.Address - 256, 1 << 63, b.Address + 1<<40} {
		if err := a.Free(addr); err == nil {
			t.Errorf("freeing %x passed", addr)
		}
	}
	if err := a.Free(0); err != nil {
		t.Errorf("freeing no block: %v", err)
	}
	if a.Stats() != before {
		t.Errorf("stats changed from %+v to %+v", before, a.Stats())
	}
	if got, ok := a.Lookup(b.Address); !ok || got != b {
		t.Errorf("lookup gives %+v %v, want %+v", got, ok, b)
	}
	if _, ok := a.Lookup(b.Address + 1024); ok {
		t.Error("lookup found a free chunk")
	}
}

func TestCloseGivesEverythingBack(t *testing.T) {
	sub, err := alloc.NewSpace(alloc.SpaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := bfc.New(sub, bfc.Options{Limit: 1 << 26, Growth: true, NoRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		a.Allocate(alloc.Request{Bytes: 3 << 20})
	}
	if sub.Held() == 0 {
		t.Fatal("nothing was taken")
	}
	a.Close()
	if n := sub.Held(); n != 0 {
		t.Errorf("the driver still misses %d bytes", n)
	}
}

func TestOneFailureLogForAProcess(t *testing.T) {
	var log alloc.FailureLog
	var texts bytes.Buffer
	for _, name := range []string{"GPU_0_bfc", "GPU_1_bfc"} {
		a := newAllocator(t, bfc.Options{Name: name, Limit: 256, NoRetry: true, Failures: &log, Observer: logTo{&texts}})
		for range 8 {
			a.Allocate(alloc.Request{Bytes: 1000})
		}
	}
	if n := strings.Count(texts.String(), "with freed_by_count"); n != alloc.MaxFailureLogs {
		t.Errorf("%d failures were logged, want %d", n, alloc.MaxFailureLogs)
	}
}

type logTo struct{ w *bytes.Buffer }

func (l logTo) RegionTaken(uint64, int64, int64)  {}
func (l logTo) RegionRefused(int64)               {}
func (l logTo) RegionGiven(uint64, int64)         {}
func (l logTo) Wait(n int64) int64                { return n }
func (l logTo) Log(_ alloc.Severity, text string) { l.w.WriteString(text + "\n") }
func (l logTo) Op() string                        { return "" }

func TestOutOfMemoryTextIsTheDump(t *testing.T) {
	a := newAllocator(t, bfc.Options{Name: "GPU_0_bfc", Limit: 1 << 20, NoRetry: true})
	a.Allocate(alloc.Request{Bytes: 1000})
	r := a.OutOfMemoryText(1<<21, alloc.Lower)
	if len(r) < 25 || r[0].Severity != alloc.Warning || !strings.HasPrefix(r[0].Text, "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00MiB (rounded to 2097152)") {
		t.Errorf("the dump is %+v", r)
	}
}

// TestSteadyStateAllocatesNothing: the tables have their size after a warm-up.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	a := newAllocator(t, bfc.Options{Limit: 1 << 30, NoRetry: true})
	round := func() {
		var held [200]uint64
		for i := range held {
			b, _ := a.Allocate(alloc.Request{Bytes: int64(1+i%17) * 1000})
			held[i] = b.Address
		}
		for i := range held {
			if a.Free(held[i*7%200]) != nil {
				t.Fatal("a free failed")
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n != 0 {
		t.Errorf("%v heap allocations a round", n)
	}
}
