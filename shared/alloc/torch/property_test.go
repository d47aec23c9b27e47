package torch_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/reference"
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

// refStreams is a Progress for the reference, whose streams are plain numbers.
type refStreams struct{ p torch.Progress }

func (r *refStreams) Mark(s uint64) uint64       { return r.p.Mark(torch.Stream(s)) }
func (r *refStreams) Passed(s, mark uint64) bool { return r.p.Passed(torch.Stream(s), mark) }
func (r *refStreams) Wait(s, mark uint64)        { r.p.Wait(torch.Stream(s), mark) }

// trial is one random life of an allocator beside the reference, judged at
// every step.
type trial struct {
	alloc.NoObserver
	t        testing.TB
	s        source
	settings torch.Settings
	capacity int64
	fraction float64
	limit    int64
	sizes    int // 0 mixed, 1 small, 2 large
	a        *torch.Allocator
	card     *alloc.Card
	progress torch.Progress
	ref      *reference.Allocator
	refs     refStreams
	judge    *check.Judge
	history  *torch.History
	live     []alloc.Block
	released map[torch.PoolID]bool
	log      []string
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

func (x *trial) emit(e event.Event) {
	x.judge.Emit(&e)
	if err := x.judge.Err(); err != nil {
		x.fatal(err)
	}
}

func (x *trial) fatal(what any) {
	x.t.Helper()
	tail := x.log[max(0, len(x.log)-20):]
	x.t.Fatalf("%v\nsettings %+v\ncapacity %d, fraction %v\nlast steps: %q", what, x.settings, x.capacity, x.fraction, tail)
}

func (x *trial) drawSettings() {
	s := torch.Settings{}
	if x.s.draw(3) == 0 {
		s.MaxSplit = int64(20+x.s.draw(100)) << 20
	}
	if s.MaxSplit > 0 && x.s.draw(2) == 0 {
		s.MaxNonSplitRounding = int64(20+x.s.draw(40)) << 20
	}
	if x.s.draw(3) == 0 {
		s.GarbageCollection = float64(1+x.s.draw(98)) / 100
	}
	if x.s.draw(3) == 0 {
		for i := range s.Divisions {
			s.Divisions[i] = int64(1) << x.s.draw(6) &^ 1
		}
	}
	if x.s.draw(8) == 0 {
		s.LargeSegment = int64(11+2*x.s.draw(16)) << 20
		if s.MaxSplit > 0 {
			s.LargeSegment = min(s.LargeSegment, s.MaxSplit)
		}
		if s.MaxNonSplitRounding > 0 {
			s.MaxNonSplitRounding = max(s.LargeSegment, s.MaxNonSplitRounding)
		}
	}
	s.Expandable = x.s.draw(3) == 0
	x.settings = s
}

func (x *trial) refOptions() reference.Options {
	s := x.settings
	o := reference.Options{
		MaxSplit: s.MaxSplit, NonSplit: s.MaxNonSplitRounding, LargeSegment: s.LargeSegment,
		Threshold: s.GarbageCollection, Divisions: s.Divisions, Expandable: s.Expandable,
		Total: x.capacity, Limit: x.limit, Streams: &x.refs,
	}
	return o
}

func (x *trial) start() {
	x.drawSettings()
	x.capacity = int64(1+x.s.draw(300)) << 21
	x.sizes = x.s.draw(3)
	if x.s.draw(2) == 0 {
		x.fraction = float64(1+x.s.draw(100)) / 100
	}
	x.card = alloc.NewCard(x.capacity)
	x.history = torch.NewHistory(64)
	x.released = map[torch.PoolID]bool{}
	rules := check.Rules{Granule: torch.Granule, Limit: x.capacity}
	x.judge = check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return rules }, nil)
	var err error
	x.a, err = torch.New(torch.NewDevice(x.card, 0), torch.Options{
		Settings: x.settings, Fraction: x.fraction, Streams: &x.progress, Observer: x, Tracer: x.history,
	})
	if err != nil {
		x.fatal(err)
	}
	x.limit = x.a.Limit()
	x.ref = reference.New(torch.NewDevice(alloc.NewCard(x.capacity), 0), x.refOptions())
}

func (x *trial) run() {
	x.start()
	for x.s.more() {
		switch k := x.s.draw(40); {
		case k < 20:
			x.allocate()
		case k < 33 && len(x.live) > 0:
			x.free(x.s.draw(len(x.live)))
		case k < 35 && len(x.live) > 0:
			x.record()
		case k == 35:
			s := torch.Stream(x.s.draw(3))
			x.log = append(x.log, fmt.Sprintf("stream %d steps", s))
			x.progress.Step(s)
			x.refs.p.Step(s)
		case k == 36 && x.s.draw(4) == 0:
			x.log = append(x.log, "empty the cache")
			x.a.EmptyCache()
			x.ref.ReleaseAll()
		case k == 37 && x.s.draw(4) == 0:
			x.change()
		case k == 38:
			x.pool()
		}
		x.look()
	}
	x.end()
}

func (x *trial) drawSize() int64 {
	top := 28
	if x.sizes == 1 {
		top = 20
	}
	n := int64(1 + x.s.draw(1<<(1+x.s.draw(top))))
	if x.sizes == 2 {
		n += int64(x.s.draw(30)) << 20
	}
	if x.s.draw(3) == 0 {
		n = (n + 1<<18) &^ (1<<18 - 1) // so that sizes come again
	}
	return n
}

func (x *trial) drawPool() torch.PoolID {
	if x.s.draw(4) > 0 {
		return torch.PoolID{}
	}
	return torch.PoolID{A: uint64(x.s.draw(2)), B: 1}
}

func (x *trial) allocate() {
	r := torch.Request{Bytes: x.drawSize(), Stream: torch.Stream(x.s.draw(3)), Pool: x.drawPool()}
	x.log = append(x.log, fmt.Sprintf("alloc %+v", r))
	b, ok := x.a.AllocateOn(r)
	want := x.ref.Allocate(r.Bytes, uint64(r.Stream), reference.ID(r.Pool))
	if ok != (want != nil) || ok && (b.Address != want.Addr || b.Size != want.Size) {
		x.fatal(fmt.Sprintf("got %+v %v, the reference %+v", b, ok, want))
	}
	if !ok {
		x.checkFailure(r)
		return
	}
	x.emit(event.Event{Kind: event.Alloc, Address: b.Address, Size: b.Size, Requested: b.Requested})
	x.live = append(x.live, b)
}

// checkFailure: every byte that is held has its place in the failure's figures.
func (x *trial) checkFailure(r torch.Request) {
	o := x.a.Failure()
	if o == nil || o.Requested != r.Bytes || o.Stream != r.Stream || o.Pool != r.Pool {
		x.fatal(fmt.Sprintf("failure %+v of %+v", o, r))
	}
	if sum := o.Allocated + o.Pending + o.IdleSameStream + o.IdleOtherStreams + o.IdleOtherPool; sum != o.Reserved {
		x.fatal(fmt.Sprintf("%+v sums to %d", o, sum))
	}
	if o.DeviceFree != x.card.Capacity()-x.card.Held() || len(o.Error()) < 100 {
		x.fatal(o)
	}
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
	if !x.ref.Free(b.Address) {
		x.fatal("the reference does not know the block")
	}
	x.emit(event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
}

func (x *trial) record() {
	b, s := x.live[x.s.draw(len(x.live))], torch.Stream(x.s.draw(3))
	x.log = append(x.log, fmt.Sprintf("record stream %d on %x", s, b.Address))
	if err := x.a.RecordStream(b.Address, s); err != nil {
		x.fatal(err)
	}
	x.ref.Record(b.Address, uint64(s))
}

func (x *trial) change() {
	x.drawSettings()
	x.log = append(x.log, fmt.Sprintf("settings %+v", x.settings))
	if err := x.a.SetSettings(x.settings); err != nil {
		x.fatal(err)
	}
	x.ref.Set(x.refOptions())
}

// pool opens a pool with options, or takes its last user away.
func (x *trial) pool() {
	id := torch.PoolID{A: uint64(x.s.draw(2)), B: 1}
	if x.s.draw(2) == 0 {
		o := torch.PoolOptions{NoSplit: x.s.draw(2) == 0, OnOOM: x.s.draw(2) == 0}
		known := false
		for _, p := range x.a.Statistics().ReservedByPrivatePools {
			known = known || p.Pool == id
		}
		if known {
			return
		}
		x.log = append(x.log, fmt.Sprintf("open %v %+v", id, o))
		if err := x.a.OpenPool(id, o); err != nil {
			x.fatal(err)
		}
		x.ref.Open(reference.ID(id), o.NoSplit, o.OnOOM)
		return
	}
	if x.a.ReleasePool(id) == nil {
		x.log = append(x.log, fmt.Sprintf("release %v", id))
		x.ref.Release(reference.ID(id))
	}
}

// look compares everything.
func (x *trial) look() {
	if err := x.a.Check(); err != nil {
		x.fatal(err)
	}
	m := x.a.ChunkMap()
	if err := x.judge.CompareMap(0, 0, m); err != nil {
		x.fatal(err)
	}
	pool, inUse, _, _ := m.Totals()
	st, full := x.a.Stats(), x.a.Statistics()
	jp, ju, peak, blocks := x.judge.Totals(0, 0)
	if st.Pool != pool || pool != jp || st.InUse != inUse || inUse != ju || st.PeakInUse != peak || blocks != len(x.live) ||
		x.card.Held() != pool {
		x.fatal(fmt.Sprintf("stats %+v, map %d %d, judge %d %d %d", st, pool, inUse, jp, ju, peak))
	}
	bytes, count := x.ref.SplitIdle()
	if x.ref.Reserved != pool || x.ref.Allocated != inUse || int64(x.ref.OOMs) != full.NumOOMs ||
		int64(x.ref.Retries) != full.NumAllocRetries || int64(x.ref.Oversize) != full.OversizeSegments.Allocated ||
		full.InactiveSplit.All.Current != int64(count) || full.InactiveSplitBytes.All.Current != bytes {
		x.fatal(fmt.Sprintf("statistics %+v, the reference %+v, %d idle in %d pieces", full, x.ref, bytes, count))
	}
	x.compareBlocks()
}

func (x *trial) compareBlocks() {
	want := x.ref.Blocks()
	i := 0
	for _, s := range x.a.Snapshot() {
		var total, active int64
		for _, b := range s.Blocks {
			if i == len(want) {
				x.fatal(fmt.Sprintf("block %+v is not in the reference", b))
			}
			w := want[i]
			i++
			total += b.Size
			if b.State != torch.Inactive {
				active += b.Size
			}
			if b.Address != w.Addr || b.Size != w.Size || (b.State == torch.ActiveAllocated) != w.InUse ||
				(b.State == torch.ActivePendingFree) != w.Pending() || uint64(s.Stream) != w.Stream || w.InUse && b.Requested != w.Requested {
				x.fatal(fmt.Sprintf("block %+v of stream %d, the reference has %+v", b, s.Stream, w))
			}
		}
		if total != s.Total || active != s.Active {
			x.fatal(fmt.Sprintf("segment %+v sums to %d, %d active", s, total, active))
		}
	}
	if i != len(want) {
		x.fatal(fmt.Sprintf("%d blocks, the reference has %d", i, len(want)))
	}
}

// end frees everything in one of two ways.
func (x *trial) end() {
	if x.s.draw(2) == 0 {
		for len(x.live) > 0 {
			x.free(x.s.draw(len(x.live)))
		}
		for _, p := range x.a.Statistics().ReservedByPrivatePools {
			_ = x.a.ReleasePool(p.Pool) // an error says that it was released before
			x.ref.Release(reference.ID(p.Pool))
		}
		x.a.EmptyCache()
		x.ref.ReleaseAll()
		x.look()
		if st := x.a.Stats(); st.Pool != 0 || st.InUse != 0 {
			x.fatal(fmt.Sprintf("%+v is left with nothing in use", st))
		}
		return
	}
	for _, b := range x.live {
		x.emit(event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
	}
	x.a.Close()
	if pool, _, _, _ := x.judge.Totals(0, 0); pool != 0 || x.card.Held() != 0 {
		x.fatal(fmt.Sprintf("after the end the driver misses %d bytes", pool))
	}
}

func TestRandomLivesEqualTheReference(t *testing.T) {
	lives := uint64(400)
	if testing.Short() {
		lives = 60
	}
	for seed := range lives {
		s := &seeded{rand.New(rand.NewPCG(seed, 20261130)), 250}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { (&trial{t: t, s: s}).run() })
	}
}

func FuzzLives(f *testing.F) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := make([]byte, 600)
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
