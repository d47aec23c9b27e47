package remedy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/reference"
	"tideline/shared/analysis/reading"
)

const mib = int64(1) << 20

// op is a call of a made program: Bytes above 0 are asked for, else the block
// is freed.
type op struct {
	block int
	bytes int64
}

// program runs requests on PyTorch's allocator and records them.
type program struct {
	t        testing.TB
	a        *torch.Allocator
	h        *torch.History
	s        torch.Settings
	capacity int64
	at       map[int]uint64
	ops      []op
}

func start(tb testing.TB, settings string, capacity int64, keep int) *program {
	tb.Helper()
	s, err := torch.ParseSettings(settings)
	if err != nil {
		tb.Fatal(err)
	}
	p := &program{t: tb, h: torch.NewHistory(keep), s: s, at: map[int]uint64{}, capacity: capacity}
	p.a, err = torch.New(torch.NewDevice(alloc.NewCard(capacity), 0x7f0000000000), torch.Options{Settings: s, Tracer: p.h})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func (p *program) alloc(block int, bytes int64) bool {
	p.ops = append(p.ops, op{block, bytes})
	b, ok := p.a.AllocateOn(torch.Request{Bytes: bytes})
	if ok {
		p.at[block] = b.Address
	}
	return ok
}

func (p *program) must(block int, bytes int64) {
	p.t.Helper()
	if !p.alloc(block, bytes) {
		p.t.Fatalf("block %d, %d bytes: %v", block, bytes, p.a.Failure())
	}
}

func (p *program) free(block int) {
	p.t.Helper()
	p.ops = append(p.ops, op{block: block})
	if err := p.a.Free(p.at[block]); err != nil {
		p.t.Fatal(err)
	}
	delete(p.at, block)
}

func (p *program) fails(bytes int64) {
	p.t.Helper()
	if p.alloc(-1, bytes) {
		p.t.Fatalf("%d bytes were served", bytes)
	}
}

func (p *program) recorded() *Recorded {
	return &Recorded{Segments: p.a.Snapshot(), Trace: p.h.Entries(), Settings: p.s}
}

// plainly runs the same program on the plain allocator under other settings and
// says whether everything was served. last replaces the bytes of the last call.
func (p *program) plainly(s torch.Settings, last int64) bool {
	a := reference.New(torch.NewDevice(alloc.NewCard(p.capacity), 0), reference.Options{
		MaxSplit: s.MaxSplit, Divisions: s.Divisions, Expandable: s.Expandable, Total: p.capacity,
	})
	at := map[int]uint64{}
	for i, o := range p.ops {
		if i == len(p.ops)-1 {
			o.bytes = last
		}
		if o.bytes == 0 {
			a.Free(at[o.block])
			continue
		}
		b := a.Allocate(o.bytes, 0, reference.ID{})
		if b == nil {
			return false
		}
		at[o.block] = b.Addr
	}
	return true
}

func find(o *Outcome, setting string) *reading.Trial {
	for i := range o.Trials {
		if o.Trials[i].Setting == setting {
			return &o.Trials[i]
		}
	}
	return nil
}

// broken is a device of 1000 MiB full of segments of 50 MiB whose lower halves
// are idle; 100 MiB are asked for.
func broken(tb testing.TB, keep int) *program {
	tb.Helper()
	p := start(tb, "", 1000*mib, keep)
	for i := range 20 {
		p.must(i, 50*mib)
	}
	for i := range 20 {
		p.free(i)
		p.must(i, 25*mib)
		p.must(20+i, 25*mib)
	}
	for i := range 20 {
		p.free(i)
	}
	p.fails(100 * mib)
	return p
}

const expandable = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"

func TestExpandableSegmentsServeWhatHolesRefuse(t *testing.T) {
	for _, keep := range []int{1 << 20, 31, 14, 2} { // the trace may begin anywhere
		p := broken(t, keep)
		o := Torch(p.recorded(), Options{})
		x := find(&o, expandable)
		if x == nil || !x.Serves || x.Spare <= 0 || x.Peak > 1000*mib || !strings.Contains(o.Replayed, "fails as recorded") {
			t.Errorf("keep %d: %+v, %s", keep, x, o.Replayed)
		}
		if complete := keep > 100; complete != (x.Assumes == "") {
			t.Errorf("keep %d: assumes %q", keep, x.Assumes)
		}
		if o.Trials[0].Setting != expandable || o.Short != 0 {
			t.Errorf("keep %d: first %+v, short %d", keep, o.Trials[0], o.Short)
		}
		// The largest hole is 25 MiB, a segment needs whole 2 MiB: 25 MiB can be had.
		if o.Least != 75*mib {
			t.Errorf("keep %d: least reduction %d", keep, o.Least)
		}
		if !p.plainly(p.s, 100*mib-o.Least) || p.plainly(p.s, 100*mib-o.Least+torch.Granule) {
			t.Errorf("keep %d: the plain allocator contradicts the least reduction %d", keep, o.Least)
		}
	}
}

// A block of 400 MiB is freed and small ones are cut out of it, so that the next
// block of 400 MiB takes memory anew.
func TestASplitLimitServesWhatPinnedSegmentsRefuse(t *testing.T) {
	p := start(t, "", 1000*mib, 1<<20)
	p.must(0, 400*mib)
	p.free(0)
	for i := range 20 {
		p.must(1+i, 15*mib)
	}
	p.must(30, 400*mib)
	p.fails(250 * mib)
	o := Torch(p.recorded(), Options{})
	x := find(&o, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128")
	// 400 + 20 segments of 16 MiB and 250 MiB are held; 30 MiB are left.
	if x == nil || !x.Serves || x.Spare != 30*mib || x.Peak != 970*mib {
		t.Errorf("%+v\n%s", x, o.Replayed)
	}
	if x := find(&o, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:512"); x != nil {
		t.Errorf("a limit above every block is tried: %+v", x)
	}
}

func TestATrueShortageIsServedByNothing(t *testing.T) {
	p := start(t, "", 1000*mib, 1<<20)
	for i := range 9 {
		p.must(i, 100*mib)
	}
	p.fails(200 * mib)
	o := Torch(p.recorded(), Options{})
	if o.Least != 100*mib || o.Short != 100*mib {
		t.Errorf("least %d, short %d", o.Least, o.Short)
	}
	if len(o.Trials) < 10 || slices.ContainsFunc(o.Trials, func(x reading.Trial) bool { return x.Serves }) {
		t.Errorf("%+v", o.Trials)
	}
	if !p.plainly(p.s, 100*mib) || p.plainly(p.s, 100*mib+1) {
		t.Error("the plain allocator contradicts the least reduction")
	}
}

// What a setting that is on already cannot do is not advised, and switching it
// off is tried.
func TestTheRecordedSettingsAreNoChange(t *testing.T) {
	p := start(t, "expandable_segments:True,max_split_size_mb:128", 100*mib, 1<<20)
	p.must(0, 60*mib)
	p.fails(60 * mib)
	o := Torch(p.recorded(), Options{})
	for _, x := range o.Trials {
		if x.Setting == "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True" || x.Serves {
			t.Errorf("%+v", x)
		}
	}
	if find(&o, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128,expandable_segments:False") == nil {
		t.Errorf("%+v", o.Trials)
	}
}

// A trace that cannot have led to the state, or holds no request, gives nothing.
func TestWhatCannotBeReplayed(t *testing.T) {
	r := broken(t, 1<<20).recorded()
	r.Trace = append([]torch.TraceEntry{{Action: torch.ActionAlloc, Addr: 4096, Size: 512}}, r.Trace...)
	if o := Torch(r, Options{}); len(o.Trials) > 0 || !strings.Contains(o.Replayed, "do not agree") {
		t.Errorf("%+v", o)
	}
	r = broken(t, 1).recorded()
	if o := Torch(r, Options{}); o.Any() {
		t.Errorf("%+v", o)
	}
	if o := Torch(broken(t, 1<<20).recorded(), Options{Budget: 400}); len(o.Trials) > 2 || !strings.Contains(o.Replayed, "too many") {
		t.Errorf("%+v", o)
	}
	if o := Torch(broken(t, 1<<20).recorded(), Options{Stop: func() bool { return true }}); len(o.Trials) > 0 || o.Replayed == "" {
		t.Errorf("%+v", o)
	}
}

// wander makes a program that allocates and frees at random until it fails.
func wander(tb testing.TB, r *rand.Rand, settings string, keep int) *program {
	tb.Helper()
	p := start(tb, settings, (100+r.Int64N(400))*mib, keep)
	var live []int
	for i := range 2000 {
		if n := len(live); n > 0 && r.IntN(100) < 45 {
			k := r.IntN(n)
			p.free(live[k])
			live[k] = live[n-1]
			live = live[:n-1]
			continue
		}
		bytes := int64(1) << (9 + r.IntN(17))
		bytes += r.Int64N(bytes)
		if !p.alloc(i, bytes) {
			return p
		}
		live = append(live, i)
	}
	return nil
}

// Every verdict on a whole history is that of the plain allocator.
func TestTrialsEqualThePlainAllocator(t *testing.T) {
	failed, serving := 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 1))
		settings := []string{"", "", "max_split_size_mb:64", "roundup_power2_divisions:4", "expandable_segments:True"}[r.IntN(5)]
		p := wander(t, r, settings, 1<<20)
		if p == nil {
			continue
		}
		failed++
		o := Torch(p.recorded(), Options{})
		last := p.ops[len(p.ops)-1].bytes
		asked := p.s.Round(last) // the record has it rounded
		if len(o.Trials) == 0 {
			t.Errorf("seed %d: %s", seed, o.Replayed)
		}
		for _, x := range o.Trials {
			text, ok := strings.CutPrefix(x.Setting, "PYTORCH_CUDA_ALLOC_CONF=")
			if !ok || x.Allocator != "torch" {
				continue
			}
			s, err := torch.ParseSettings(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := p.plainly(s, asked); got != x.Serves {
				t.Errorf("seed %d, %q to %s: serves %v, the plain allocator %v", seed, settings, x.Setting, x.Serves, got)
			}
			if x.Serves {
				serving++
			}
		}
		if o.Least < asked && !p.plainly(p.s, asked-o.Least) || p.plainly(p.s, asked-o.Least+torch.Granule) {
			t.Errorf("seed %d, %q: least reduction %d of %d: %v %v", seed, settings, o.Least, asked, p.plainly(p.s, asked-o.Least), p.plainly(p.s, asked-o.Least+torch.Granule))
		}
	}
	if failed < 60 || serving < 20 {
		t.Errorf("%d programs failed, %d settings serve: the test tells too little", failed, serving)
	}
}

// Where the trace begins in the middle, what was before is assumed. How often
// the verdict is that of the whole history all the same is counted.
func TestStateAndTailMostlyAgreeWithTheWholeHistory(t *testing.T) {
	var right, serve, wrongYes, wrongNo, none int
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := wander(t, r, "", 40+r.IntN(100))
		if p == nil {
			continue
		}
		o := Torch(p.recorded(), Options{})
		asked := p.s.Round(p.ops[len(p.ops)-1].bytes)
		if len(o.Trials) == 0 {
			none++
		}
		for _, x := range o.Trials {
			text, ok := strings.CutPrefix(x.Setting, "PYTORCH_CUDA_ALLOC_CONF=")
			if !ok || x.Allocator != "torch" {
				continue
			}
			s, _ := torch.ParseSettings(text)
			switch got := p.plainly(s, asked); {
			case got == x.Serves:
				if right++; got {
					serve++
				}
			case x.Serves:
				wrongYes++
			default:
				wrongNo++
			}
		}
	}
	text := fmt.Sprintf("%d right, of them %d serve; %d serve only here, %d serve only with the whole history; %d programs without a verdict", right, serve, wrongYes, wrongNo, none)
	t.Log(text)
	if serve < 10*wrongYes || right < 300 {
		t.Error(text)
	}
}

// The device has room, and the request is refused: a fraction limits the process.
func TestALimitBelowTheDeviceIsFound(t *testing.T) {
	h := torch.NewHistory(1 << 20)
	a, err := torch.New(torch.NewDevice(alloc.NewCard(1000*mib), 0), torch.Options{Fraction: 0.5, Tracer: h})
	if err != nil {
		t.Fatal(err)
	}
	for range 9 {
		if _, ok := a.AllocateOn(torch.Request{Bytes: 50 * mib}); !ok {
			t.Fatal(a.Failure())
		}
	}
	if _, ok := a.AllocateOn(torch.Request{Bytes: 60 * mib}); ok {
		t.Fatal("served")
	}
	o := Torch(&Recorded{Segments: a.Snapshot(), Trace: h.Entries()}, Options{})
	x := find(&o, "torch.cuda.set_per_process_memory_fraction(1.0)")
	if x == nil || !x.Serves || x.Spare != (1000-450-60)*mib || !strings.Contains(o.Replayed, "a limit refused it") {
		t.Errorf("%+v", o)
	}
	for _, y := range o.Trials {
		if y.Serves && y.Setting != x.Setting {
			t.Errorf("%+v", y)
		}
	}
	if find(&o, "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8") == nil {
		t.Errorf("%+v", o.Trials)
	}
}
