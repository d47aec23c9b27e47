package torch_test

import (
	"reflect"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

func TestARecordedStreamHoldsTheBlockBack(t *testing.T) {
	var p torch.Progress
	h := torch.NewHistory(100)
	a := newAllocator(t, nil, torch.Options{Streams: &p, Tracer: h})
	b := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 1})
	for _, s := range []torch.Stream{2, 3, 2, 1} { // 2 twice counts once, 1 is its own
		if err := a.RecordStream(b.Address, s); err != nil {
			t.Fatal(err)
		}
	}
	give(t, a, b)
	s := a.Statistics()
	if s.AllocatedBytes.All.Current != 0 || s.ActiveBytes.All.Current != b.Size || s.Allocation.All.Current != 0 || s.Active.All.Current != 1 {
		t.Errorf("%+v", s)
	}
	if state := a.Snapshot()[0].Blocks[0].State; state != torch.ActivePendingFree || state.String() != "active_pending_free" {
		t.Error(state)
	}
	if err := a.Free(b.Address); err == nil {
		t.Error("a pending block was freed again")
	}
	if err := a.RecordStream(b.Address, 2); err == nil || !strings.Contains(err.Error(), "stream 2") {
		t.Error(err)
	}
	p.Finish(2)
	if c := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 1}); c.Address == b.Address {
		t.Error("the block came back while stream 3 was at it")
	}
	p.Finish(3)
	if c := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 1}); c.Address != b.Address {
		t.Error("the block did not come back")
	}
	var words []string
	for _, e := range h.Entries() {
		words = append(words, e.Action.String())
	}
	if want := []string{"segment_alloc", "alloc", "free_requested", "snapshot", "segment_alloc", "alloc", "free_completed", "alloc"}; !reflect.DeepEqual(words, want) {
		t.Errorf("%q", words)
	}
}

func TestEventsPassInTheOrderOfTheirStream(t *testing.T) {
	var p torch.Progress
	a := newAllocator(t, nil, torch.Options{Streams: &p})
	x, y := take(t, a, 30*mib), take(t, a, 40*mib)
	for _, b := range []alloc.Block{x, y} {
		if err := a.RecordStream(b.Address, 2); err != nil {
			t.Fatal(err)
		}
	}
	give(t, a, x, y)
	p.Step(2)
	a.ProcessEvents()
	if got := a.Statistics().ActiveBytes.All.Current; got != y.Size {
		t.Errorf("%d active, want %d", got, y.Size)
	}
	p.Step(2)
	a.ProcessEvents()
	if got := a.Statistics().ActiveBytes.All.Current; got != 0 {
		t.Errorf("%d active", got)
	}
}

func TestPendingBlocksDoNotMerge(t *testing.T) {
	var p torch.Progress
	a := newAllocator(t, nil, torch.Options{Streams: &p})
	x, y, z := take(t, a, 512), take(t, a, 512), take(t, a, 512)
	if err := a.RecordStream(y.Address, 9); err != nil {
		t.Fatal(err)
	}
	give(t, a, y, x, z)
	if n := len(a.Snapshot()[0].Blocks); n != 3 {
		t.Errorf("%d blocks: the pending one stands between two free ones", n)
	}
	p.Finish(9)
	a.ProcessEvents()
	if n := len(a.Snapshot()[0].Blocks); n != 1 {
		t.Errorf("%d blocks", n)
	}
}

func TestAFailingRequestWaitsForStreams(t *testing.T) {
	var p torch.Progress
	a := newAllocator(t, alloc.NewCard(32*mib), torch.Options{Streams: &p})
	b := take(t, a, 30*mib)
	if err := a.RecordStream(b.Address, 5); err != nil {
		t.Fatal(err)
	}
	give(t, a, b)
	take(t, a, 24*mib)
	if s := a.Statistics(); s.NumAllocRetries != 1 || s.NumSyncAllStreams != 1 {
		t.Errorf("%+v", s)
	}
}

func TestWithoutStreamsRecordedWorkIsDoneAtTheNextRequest(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	b := take(t, a, 30*mib)
	if err := a.RecordStream(b.Address, 5); err != nil {
		t.Fatal(err)
	}
	give(t, a, b)
	if a.Statistics().Active.All.Current != 1 {
		t.Error("the block is held until the next request")
	}
	if c := take(t, a, 30*mib); c.Address != b.Address {
		t.Error("the block did not come back")
	}
}

func TestPrivatePoolsShareNothing(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	p, q := torch.PoolID{A: 1}, torch.PoolID{B: 2}
	x := takeOn(t, a, torch.Request{Bytes: 30 * mib, Pool: p})
	give(t, a, x)
	for _, other := range []torch.PoolID{{}, q} {
		if b := takeOn(t, a, torch.Request{Bytes: 30 * mib, Pool: other}); b.Address == x.Address {
			t.Errorf("pool %v got a block of %v", other, p)
		}
	}
	if b := takeOn(t, a, torch.Request{Bytes: 30 * mib, Pool: p}); b.Address != x.Address {
		t.Error("the pool did not get its own block")
	}
	a.Use(0, q)
	b, ok := a.Allocate(alloc.Request{Bytes: 100})
	if !ok {
		t.Fatal("no memory")
	}
	for _, s := range a.Snapshot() {
		if s.Address == b.Address && (s.Pool != q || s.Type() != "small") {
			t.Errorf("%+v", s)
		}
	}
	want := []torch.PoolBytes{{q, 32 * mib}, {p, 30 * mib}}
	if got := a.Statistics().ReservedByPrivatePools; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestAPrivatePoolIsGivenBackAfterItsLastUser(t *testing.T) {
	for _, text := range []string{"", "expandable_segments:True"} {
		a := withSettings(t, alloc.NewCard(1<<30), text, torch.Options{})
		id := torch.PoolID{A: 1}
		for range 2 {
			if err := a.OpenPool(id, torch.PoolOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		x, y := takeOn(t, a, torch.Request{Bytes: 30 * mib, Pool: id}), takeOn(t, a, torch.Request{Bytes: 90 * mib, Pool: id})
		give(t, a, x)
		a.EmptyCache()
		held := a.Stats().Pool
		if held < 120*mib {
			t.Errorf("%q: %d MiB: a pool in use keeps its idle memory", text, held/mib)
		}
		if err := a.ReleasePool(id); err != nil {
			t.Fatal(err)
		}
		a.EmptyCache()
		if a.Stats().Pool != held {
			t.Errorf("%q: the pool has another user", text)
		}
		if err := a.ReleasePool(id); err != nil {
			t.Fatal(err)
		}
		if err := a.ReleasePool(id); err == nil || !strings.Contains(err.Error(), "(1, 0)") {
			t.Error(err)
		}
		a.EmptyCache()
		if got := a.Stats().Pool; got >= held {
			t.Errorf("%q: the idle segment was kept: %d", text, got)
		}
		if len(a.Statistics().ReservedByPrivatePools) != 1 {
			t.Error("the pool is gone before its last block")
		}
		give(t, a, y)
		a.EmptyCache()
		if s := a.Statistics(); a.Stats().Pool != 0 || len(s.ReservedByPrivatePools) != 0 {
			t.Errorf("%q: %+v", text, s)
		}
		if err := a.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestPoolsThatAreNeverSplit(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	id := torch.PoolID{A: 1}
	if err := a.OpenPool(id, torch.PoolOptions{NoSplit: true}); err != nil {
		t.Fatal(err)
	}
	if b := takeOn(t, a, torch.Request{Bytes: 100, Pool: id}); b.Size != 2*mib {
		t.Errorf("%d bytes", b.Size)
	}
	if b := takeOn(t, a, torch.Request{Bytes: 3 * mib, Pool: id}); b.Size != 20*mib {
		t.Errorf("%d bytes", b.Size)
	}
	if err := a.OpenPool(torch.PoolID{}, torch.PoolOptions{}); err == nil {
		t.Error("the default pool was opened")
	}
}

func TestAPoolThatServesWhatWouldFail(t *testing.T) {
	for _, serves := range []bool{false, true} {
		a := newAllocator(t, alloc.NewCard(64*mib), torch.Options{})
		id := torch.PoolID{A: 1}
		if err := a.OpenPool(id, torch.PoolOptions{OnOOM: serves}); err != nil {
			t.Fatal(err)
		}
		x := takeOn(t, a, torch.Request{Bytes: 40 * mib, Pool: id})
		give(t, a, x)
		b, ok := a.AllocateOn(torch.Request{Bytes: 40 * mib})
		if ok != serves || ok && b.Address != x.Address {
			t.Errorf("%v: got %+v %v", serves, b, ok)
		}
	}
}

func TestACaptureDivertsItsStream(t *testing.T) {
	var p torch.Progress
	a := newAllocator(t, alloc.NewCard(128*mib), torch.Options{Streams: &p})
	id := torch.PoolID{B: 7}
	waits := take(t, a, 20*mib)
	if err := a.RecordStream(waits.Address, 4); err != nil {
		t.Fatal(err)
	}
	give(t, a, waits)
	p.Finish(4)
	if err := a.BeginCapture(id, 3); err != nil {
		t.Fatal(err)
	}
	if err := a.BeginCapture(id, 5); err == nil {
		t.Error("two captures into one pool")
	}
	x := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 3})
	y := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 6})
	pools := map[uint64]torch.PoolID{}
	for _, s := range a.Snapshot() {
		pools[s.Address] = s.Pool
	}
	if pools[x.Address] != id || !pools[y.Address].Default() {
		t.Errorf("%v", pools)
	}
	// No event is asked for, and nothing is given back, until the end.
	if a.Statistics().Active.All.Current != 3 {
		t.Error("an event was asked for within a capture")
	}
	a.EmptyCache()
	if _, ok := a.AllocateOn(torch.Request{Bytes: 60 * mib}); ok {
		t.Error("cached memory was given back within a capture")
	}
	if s := a.Statistics(); s.NumAllocRetries != 0 || s.NumOOMs != 1 {
		t.Errorf("%+v", s)
	}
	// Freed within the capture: what was recorded before it needs an event,
	// what was recorded within it does not.
	if err := a.RecordStream(x.Address, 8); err != nil {
		t.Fatal(err)
	}
	give(t, a, x)
	if err := a.EndCapture(id); err != nil {
		t.Fatal(err)
	}
	if err := a.EndCapture(id); err == nil {
		t.Error("a capture ended twice")
	}
	a.ProcessEvents()
	if got := a.Statistics().Active.All.Current; got != 1 {
		t.Errorf("%d blocks active, want y alone", got)
	}
	if b := takeOn(t, a, torch.Request{Bytes: 30 * mib, Stream: 3, Pool: id}); b.Address != x.Address {
		t.Error("the captured pool did not keep its block")
	}
	if err := a.BeginCaptureAll(torch.PoolID{B: 9}); err != nil {
		t.Fatal(err)
	}
	z := takeOn(t, a, torch.Request{Bytes: 100, Stream: 77})
	for _, s := range a.Snapshot() {
		if s.Address == z.Address && s.Pool.B != 9 {
			t.Errorf("%+v", s)
		}
	}
}

func TestRecordsBeforeACaptureKeepTheirEvent(t *testing.T) {
	var p torch.Progress
	a := newAllocator(t, nil, torch.Options{Streams: &p})
	b := take(t, a, 30*mib)
	if err := a.RecordStream(b.Address, 2); err != nil {
		t.Fatal(err)
	}
	if err := a.BeginCapture(torch.PoolID{A: 1}, 3); err != nil {
		t.Fatal(err)
	}
	give(t, a, b)
	if err := a.EndCapture(torch.PoolID{A: 1}); err != nil {
		t.Fatal(err)
	}
	a.ProcessEvents()
	if a.Statistics().Active.All.Current != 1 {
		t.Error("stream 2 is still at it")
	}
	p.Finish(2)
	a.ProcessEvents()
	if a.Statistics().Active.All.Current != 0 {
		t.Error("stream 2 has passed")
	}
}

// TestEmptyCacheWithinACapture: it may not wait, so the default pool keeps its
// idle memory, and so does every pool in use; those that lost their last user
// give theirs back.
func TestEmptyCacheWithinACapture(t *testing.T) {
	a := newAllocator(t, nil, torch.Options{})
	unused, used := torch.PoolID{A: 1}, torch.PoolID{A: 2}
	give(t, a, take(t, a, 30*mib))
	for _, id := range []torch.PoolID{unused, used} {
		if err := a.OpenPool(id, torch.PoolOptions{}); err != nil {
			t.Fatal(err)
		}
		give(t, a, takeOn(t, a, torch.Request{Bytes: 40 * mib, Pool: id}))
	}
	if err := a.ReleasePool(unused); err != nil {
		t.Fatal(err)
	}
	if err := a.BeginCapture(torch.PoolID{A: 3}, 0); err != nil {
		t.Fatal(err)
	}
	syncs := a.Statistics().NumSyncAllStreams
	a.EmptyCache()
	if s := a.Statistics(); a.Stats().Pool != 70*mib || s.NumSyncAllStreams != syncs || len(s.ReservedByPrivatePools) != 2 {
		t.Errorf("%d MiB are held, %+v", a.Stats().Pool/mib, s)
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
}

func TestHistoryKeepsTheLastEntries(t *testing.T) {
	h := torch.NewHistory(3)
	a := newAllocator(t, nil, torch.Options{Tracer: h})
	b := take(t, a, 100)
	give(t, a, b)
	a.EmptyCache()
	want := []torch.TraceEntry{
		{Action: torch.ActionFreeRequested, Addr: b.Address, Size: 100},
		{Action: torch.ActionFreeCompleted, Addr: b.Address, Size: 100},
		{Action: torch.ActionSegmentFree, Addr: b.Address, Size: 2 * mib},
	}
	if got := h.Entries(); !reflect.DeepEqual(got, want) || h.Lost() != 2 {
		t.Errorf("%+v, %d lost", got, h.Lost())
	}
	if s := torch.Action(200).String(); s != "unknown" {
		t.Error(s)
	}
}

func TestAFailureLeavesATraceEntry(t *testing.T) {
	h := torch.NewHistory(10)
	a := newAllocator(t, alloc.NewCard(10*mib), torch.Options{Tracer: h})
	if _, ok := a.AllocateOn(torch.Request{Bytes: 5000001, Stream: 4}); ok {
		t.Fatal("20 MiB fit into 10")
	}
	want := torch.TraceEntry{Action: torch.ActionOOM, Addr: uint64(10 * mib), Size: 5000192, Stream: 4}
	if e := h.Entries(); len(e) != 1 || e[0] != want {
		t.Errorf("%+v", e)
	}
}
