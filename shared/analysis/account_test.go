package analysis_test

import (
	"os"
	"path/filepath"
	"testing"

	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis"
	"tideline/shared/analysis/ledger"
	"tideline/shared/launch"
)

// TestEveryByteOfASimulatedCardIsAccountedFor: on simulated cards nothing is
// unexplained, no row is negative, and the rows are the card, at every event
// that moves memory and at every failure.
func TestEveryByteOfASimulatedCardIsAccountedFor(t *testing.T) {
	ledgers, failures := 0, 0
	run := func(name string, w launch.HashCase) {
		table := new(event.Strings)
		tl := analysis.NewTimeline(table)
		check := func(l *ledger.Ledger, where string) {
			if l == nil {
				return
			}
			ledgers++
			var sum int64
			for r := range ledger.Row(ledger.NumRows) {
				if l.Row(r).N < 0 {
					t.Fatalf("%s, %s: %s is %d", name, where, r.Key(), l.Row(r).N)
				}
				sum += l.Row(r).N
			}
			if n := l.Row(ledger.Unaccounted); sum != l.Total || !n.Known || n.N != 0 {
				t.Fatalf("%s, %s: %d of %d bytes, %d not accounted for", name, where, sum, l.Total, n.N)
			}
		}
		devices := map[event.DeviceID]bool{}
		_, err := launch.Run(w.Workload, launch.Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
			tl.Emit(e)
			switch e.Kind {
			case event.AllocatorFacts:
				devices[e.Device] = true
			case event.RegionAdd, event.RegionRemove, event.Alloc, event.Free, event.Forward:
				for d := range devices {
					check(tl.Ledger(d), e.Kind.String())
				}
			default:
			}
		})})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, f := range tl.Summary().Failures {
			check(f.Ledger, "failure")
			if f.Ledger != nil {
				failures++
			}
		}
	}
	cases := launch.PairwiseCases()
	for i := range cases {
		if i%3 == 0 { // a third of them has every pair of most settings
			run(cases[i].Name, cases[i])
		}
	}
	for _, name := range []string{"fragmentation", "oom-batch", "guide-two-logical", "swap"} {
		text, err := os.ReadFile(filepath.Join("../../examples", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		w, problems := workfile.Parse(text)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		run(name, launch.HashCase{Name: name, Workload: *w})
		if name == "oom-batch" {
			for _, kind := range []string{"torch", "async", "ort", "rmm-pool", "rmm-arena"} {
				x := w.Clone()
				x.Devices[0].Allocator, x.Devices[0].Growth = kind, false
				run(kind, launch.HashCase{Name: kind, Workload: *x})
			}
		}
	}
	t.Logf("%d ledgers, %d of them of failures", ledgers, failures)
	if ledgers < 10_000 || failures < 6 {
		t.Errorf("%d ledgers, %d of failures: these runs test little", ledgers, failures)
	}
}

// TestTheRowsOfAFailureAreItsOwn: what a run knows of its card is in the rows.
func TestTheRowsOfAFailureAreItsOwn(t *testing.T) {
	strs := new(event.Strings)
	tl := analysis.NewTimeline(strs)
	card := strs.ID("name=/GPU:0\ncard=a\ntotal=1000\nheld=100\ncontext=50\nfree=850\n")
	for _, e := range []event.Event{
		{Kind: event.DeviceFacts, Device: 0, Text: card},
		{Kind: event.DeviceFacts, Device: 1, Text: card},
		{Kind: event.AllocatorFacts, Device: 0, Allocator: 0, Size: 400, Text: strs.ID("name=GPU_0_bfc\nkind=bfc\n")},
		{Kind: event.AllocatorFacts, Device: 1, Allocator: 1, Size: 300, Text: strs.ID("name=GPU_1_bfc\nkind=bfc\n")},
		{Kind: event.RegionAdd, Device: 0, Allocator: 0, Address: 1, Size: 300},
		{Kind: event.RegionAdd, Device: 1, Allocator: 1, Address: 1, Size: 200},
		{Kind: event.Alloc, Device: 0, Allocator: 0, Address: 1, Size: 200, Requested: 190},
		{Kind: event.Alloc, Device: 1, Allocator: 1, Address: 1, Size: 70, Requested: 64},
		{Kind: event.OutOfMemory, Device: 0, Allocator: 0, Size: 256, Requested: 256, Text: strs.ID("r 1 300\nu 1 200 190\nf c9 100 0\n")},
	} {
		tl.Emit(&e)
	}
	l := tl.Summary().Failures[0].Ledger
	if l == nil {
		t.Fatal("no ledger")
	}
	for r, want := range map[ledger.Row]int64{
		ledger.Others: 100, ledger.Outside: 50, ledger.Live: 254, ledger.Waste: 16, ledger.Pending: 0,
		ledger.Idle: 100, ledger.Stranded: 130, ledger.Never: 200, ledger.Beyond: 150, ledger.Unaccounted: 0,
	} {
		if got := l.Row(r); !got.Known || got.N != want {
			t.Errorf("%s: %+v, want %d", r.Key(), got, want)
		}
	}
}

// TestStrandedSegmentsAreThoseOfTheAllocator: what is said from the map of a
// failure is what PyTorch's allocator knows of its pools.
func TestStrandedSegmentsAreThoseOfTheAllocator(t *testing.T) {
	const mib = 1 << 20
	a, err := torch.New(torch.NewDevice(alloc.NewCard(64*mib), 0), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, n := range []int64{300 << 10, 700 << 10, 900 << 10, 3 * mib, 30 * mib} {
		if _, ok := a.Allocate(alloc.Request{Bytes: n}); !ok {
			t.Fatalf("%d bytes were refused", n)
		}
	}
	const n = 18 * mib
	if _, ok := a.Allocate(alloc.Request{Bytes: n}); ok {
		t.Fatal("the request fits: nothing failed")
	}
	f := a.Failure()
	if got := analysis.OtherSegments(a.ChunkMap(), n); got != f.IdleOtherPool || got == 0 {
		t.Errorf("%d bytes in the other segments, the allocator says %d", got, f.IdleOtherPool)
	}
}
