package store

import (
	"math"
	"strings"
	"testing"

	"tideline/protocol/event"
)

// script builds a timeline event by event; each has its time set.
type script struct {
	tl *Timeline
	at int64
}

func (s *script) add(e event.Event) {
	e.Time = s.at
	s.tl.Append([]event.Event{e})
}

func (s *script) id(text string) event.StringID { return s.tl.Strings().ID(text) }

func TestLostFreesAndUnknownFreesAreCountedNotBelieved(t *testing.T) {
	s := &script{tl: New(nil)}
	s.add(event.Event{Kind: event.Alloc, Address: 0x1000, Size: 256, Requested: 200})
	s.at = 5
	s.add(event.Event{Kind: event.Alloc, Address: 0x1000, Size: 512, Requested: 512})
	s.add(event.Event{Kind: event.Free, Address: 0x9000})
	s.add(event.Event{Kind: event.OpEnd, ID: 3})
	s.add(event.Event{Kind: event.Alloc, Address: 0x2000, Size: -4})
	s.add(event.Event{Kind: event.Lost, Size: 7, Text: s.id("slow")})
	if got := s.tl.Skipped(); got != 4 {
		t.Errorf("skipped %d events, want 4", got)
	}
	p := s.tl.Pools()[0]
	if now := p.Now(); now.InUse != 512 || now.Waste != 0 {
		t.Errorf("in use %d, waste %d; the block without a free must have ended", now.InUse, now.Waste)
	}
	if d := p.Alloc(0).Death; d != 5 {
		t.Errorf("the block without a free died at %d, want 5", d)
	}
	if g := s.tl.Gaps(); len(g) != 1 || g[0].Count != 7 || s.tl.Text(g[0].Text) != "slow" {
		t.Errorf("gaps are %+v", g)
	}
}

func TestTimesThatGoBackwardsAreHeldAtTheLast(t *testing.T) {
	s := &script{tl: New(nil), at: 100}
	s.add(event.Event{Kind: event.Alloc, Address: 1, Size: 8})
	s.at = 50
	s.add(event.Event{Kind: event.Free, Address: 1})
	if a := s.tl.Pools()[0].Alloc(0); a.Birth != 100 || a.Death != 100 || s.tl.Skipped() != 1 {
		t.Errorf("got %+v and %d skipped", a, s.tl.Skipped())
	}
}

func TestForwardKeepsTheBytesAndChangesWhatTheyAreFor(t *testing.T) {
	s := &script{tl: New(nil)}
	s.add(event.Event{Kind: event.Alloc, Address: 64, Size: 1024, Requested: 1000, Category: event.Activation, Stream: 2})
	s.at = 10
	s.add(event.Event{Kind: event.Forward, Address: 64, Size: 1024, Requested: 900, Category: event.Gradient, Tensor: s.id("g")})
	p := s.tl.Pools()[0]
	now := p.Now()
	if now.InUse != 1024 || now.ByCategory[event.Gradient] != 1024 || now.ByCategory[event.Activation] != 0 || now.Waste != 124 {
		t.Errorf("after a forward: %+v", now)
	}
	b := make([]MemoryBucket, 1)
	p.Buckets(Window{5, 15, 1}, b)
	if b[0].Min != 1024 {
		t.Errorf("a forward shows a dip to %d", b[0].Min)
	}
	if a := p.Alloc(1); !a.Forwarded || a.Stream != 2 || s.tl.Text(a.Tensor) != "g" || p.Alloc(0).Death != 10 {
		t.Errorf("the blocks are %+v and %+v", p.Alloc(0), a)
	}
	if l := p.LiveAt(nil, 10); len(l) != 1 || l[0] != 1 {
		t.Errorf("live after it: %v", l)
	}
}

func TestOOMsCanBeSteppedThrough(t *testing.T) {
	s := &script{tl: New(nil)}
	for _, at := range []int64{10, 20, 30} {
		s.at = at
		s.add(event.Event{Kind: event.OutOfMemory, Size: at, Cause: uint8(event.OOMFragmented), Text: s.id("r 0 1\n")})
	}
	if o, ok := s.tl.NextOOM(10); !ok || o.Time != 20 || o.Cause != event.OOMFragmented {
		t.Errorf("after 10: %+v %v", o, ok)
	}
	if o, ok := s.tl.PrevOOM(30); !ok || o.Time != 20 {
		t.Errorf("before 30: %+v %v", o, ok)
	}
	if _, ok := s.tl.NextOOM(30); ok {
		t.Error("there is one after the last")
	}
	if _, ok := s.tl.PrevOOM(10); ok {
		t.Error("there is one before the first")
	}
}

func TestTransfersAreSummedByCause(t *testing.T) {
	s := &script{tl: New(nil)}
	for i := range int64(40) {
		s.at = i * 100
		cause := event.CauseInput
		if i%4 == 0 {
			cause = event.CausePlacement
		}
		e := event.Event{Kind: event.TransferBegin, Device: 0, Peer: 1, ID: uint64(i), Size: 1000, Cause: uint8(cause)}
		s.add(e)
		s.at += 50
		e.Kind = event.TransferEnd
		s.add(e)
	}
	k := s.tl.Tracks()[0]
	busy, value, n := k.Sum(0, 4000)
	if n != 40 || value[event.CauseInput] != 30_000 || value[event.CausePlacement] != 10_000 || busy[event.CauseInput] != 1500 {
		t.Errorf("got %v busy, %v bytes, %d copies", busy, value, n)
	}
	// A bucket that ends within a copy has its part of the bytes.
	b := make([]SpanBucket, 2)
	k.Buckets(Window{0, 50, 2}, b, nil)
	if b[0].Value.Total() != 500 || b[1].Value.Total() != 500 || b[0].Busy.Total() != 25 {
		t.Errorf("halves of a copy: %+v", b)
	}
}

func TestSameInstantFollowsTheSteps(t *testing.T) {
	steps := func(each int64) *Timeline {
		s := &script{tl: New(nil)}
		for i := range int32(4) {
			s.add(event.Event{Kind: event.StepBegin, Step: i, Size: 8})
			s.at += each
			s.add(event.Event{Kind: event.StepEnd, Step: i})
		}
		return s.tl
	}
	a, b := steps(100), steps(300)
	for at, want := range map[int64]int64{0: 0, 50: 150, 100: 300, 250: 750, 400: 1200} {
		if got := SameInstant(a, b, at); got != want {
			t.Errorf("%d in a is %d in b, want %d", at, got, want)
		}
	}
	if got := SameInstant(New(nil), b, 77); got != 77 {
		t.Errorf("without steps: %d, want the same time", got)
	}
	if st, ok := b.FindStep(2); !ok || st.Begin != 600 || st.End != 900 || st.Batch != 8 {
		t.Errorf("step 2 is %+v", st)
	}
}

func TestCompareRanksWhatChangedAtThePeaks(t *testing.T) {
	build := func(size int64, name string) *Timeline {
		s := &script{tl: New(nil)}
		s.add(event.Event{Kind: event.DeviceFacts, Device: 0, Text: s.id("name=/GPU:0\nkind=gpu\n")})
		s.add(event.Event{Kind: event.AllocatorFacts, Size: 1 << 30, Text: s.id("name=" + name + "\n")})
		s.add(event.Event{Kind: event.Alloc, Address: 1 << 20, Size: 4096, Op: s.id("weights"), Category: event.Parameter})
		s.add(event.Event{Kind: event.Alloc, Address: 2 << 20, Size: size, Op: s.id("conv"), Category: event.Activation})
		return s.tl
	}
	d := Compare(build(1000, "bfc"), build(5000, "bfc"), 5)
	if len(d) != 1 || d[0].Name != "/GPU:0 bfc" || d[0].PeakA != 5096 || d[0].PeakB != 9096 {
		t.Fatalf("got %+v", d)
	}
	if d[0].ByCategory[event.Activation] != 4000 || d[0].ByCategory[event.Parameter] != 0 {
		t.Errorf("by category: %v", d[0].ByCategory)
	}
	if len(d[0].Ops) != 1 || d[0].Ops[0].Op != "conv" || d[0].Ops[0].BytesB != 5000 {
		t.Errorf("ops: %+v", d[0].Ops)
	}
	if d := Compare(build(1000, "bfc"), build(5000, "torch"), 5); len(d) != 1 || d[0].A != 0 || d[0].B != 0 || !strings.HasSuffix(d[0].Name, " bfc → torch") || d[0].PeakB-d[0].PeakA != 4000 {
		t.Errorf("pools of one device under two names: %+v", d)
	}
	if d := Compare(build(1, "bfc"), build(1, "gpu_host_bfc"), 5); len(d) != 2 || d[0].B != -1 || d[1].A != -1 {
		t.Errorf("pools that do not match: %+v", d)
	}
}

func TestSearchFindsByNameSizeAndTimeAndGoesOn(t *testing.T) {
	s := &script{tl: New(nil)}
	for i := range int64(100) {
		s.at = i
		name := "dense/MatMul"
		if i%10 == 0 {
			name = "conv1/Conv2D"
		}
		s.add(event.Event{Kind: event.Alloc, Address: uint64(i) << 12, Size: i * 10, Op: s.id(name)})
	}
	count := func(q Query) (n int) {
		for from, done := (Cursor{}), false; !done; {
			var hits []Hit
			hits, from, done = s.tl.Search(q, from)
			n += len(hits)
			if q.Limit > 0 && len(hits) > q.Limit {
				t.Fatalf("%d hits with a limit of %d", len(hits), q.Limit)
			}
		}
		return n
	}
	for _, c := range []struct {
		q    Query
		want int
	}{
		{Query{Text: "CONV"}, 10},
		{Query{Text: "conv", Limit: 3}, 10},
		{Query{Text: "conv", Rows: 7}, 10},
		{Query{Text: "nothing"}, 0},
		{Query{MinBytes: 500}, 50},
		{Query{MinBytes: 500, MaxBytes: 590}, 10},
		{Query{Text: "matmul", T0: 10, T1: 20}, 9},
		{Query{}, 100},
	} {
		if got := count(c.q); got != c.want {
			t.Errorf("%+v: %d hits, want %d", c.q, got, c.want)
		}
	}
}

func TestSeriesKeepMetricsAsTheyWere(t *testing.T) {
	s := &script{tl: New(nil)}
	for i := range 50 {
		s.at = int64(i)
		s.add(event.Event{Kind: event.Metric, Op: s.id("loss"), Step: int32(i), Size: int64(math.Float64bits(1 / float64(i+1)))})
	}
	k := s.tl.SeriesList()[0]
	if k.Len() != 50 || k.Float(3) != 0.25 {
		t.Errorf("%d points, the fourth %v", k.Len(), k.Float(3))
	}
	if at, _, step := k.Point(7); at != 7 || step != 7 {
		t.Errorf("point 7 is at %d of step %d", at, step)
	}
}

func TestRegionsKeepTheirPlacesAndReuseThoseOfRemovedOnes(t *testing.T) {
	s := &script{tl: New(nil)}
	region := func(kind event.Kind, a uint64, size int64) {
		s.at++
		s.add(event.Event{Kind: kind, Address: a, Size: size})
	}
	region(event.RegionAdd, 0x1000_0000, 1<<20)
	region(event.RegionAdd, 0x9000_0000, 2<<20)
	region(event.RegionRemove, 0x1000_0000, 1<<20)
	region(event.RegionAdd, 0x5000_0000, 1<<20)
	p := s.tl.Pools()[0]
	if p.LayoutSize() != 3<<20 || p.Now().Reserved != 3<<20 {
		t.Fatalf("layout %d, reserved %d, want 3 MiB", p.LayoutSize(), p.Now().Reserved)
	}
	if off, ok := p.Offset(0x5000_0010, s.at); !ok || off != 0x10 {
		t.Errorf("the new region's place is %d %v, want that of the removed one", off, ok)
	}
	region(event.RegionAdd, 0x3000_0000, 1<<20)
	if off, ok := p.Offset(0x3000_0000, s.at); !ok || off != 3<<20 {
		t.Errorf("one more region of that size has place %d %v, want one of its own", off, ok)
	}
	if _, ok := p.Offset(0x1000_0010, s.at); ok {
		t.Error("a removed region still has a place")
	}
	if a, ok := p.Address(1<<20+5, s.at); !ok || a != 0x9000_0005 {
		t.Errorf("the address there is %x %v", a, ok)
	}
}
