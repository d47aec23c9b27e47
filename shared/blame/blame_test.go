package blame

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// program is a recorded program, with stacks as snapshots have them.
type program struct {
	strs event.Strings
	rec  *Recorder
	at   int64
	next uint64
	size map[uint64]int64
}

func newProgram() *program {
	p := &program{next: 1 << 20, size: map[uint64]int64{}}
	p.rec = NewRecorder(&p.strs)
	p.rec.Emit(&event.Event{Kind: event.AllocatorFacts, Text: p.strs.ID("name=GPU_0_torch\nkind=torch\n")})
	return p
}

// alloc is a block of a function of the user's, called by the loop in train.py
// through a library.
func (p *program) alloc(fn string, bytes int64) uint64 {
	return p.block(fn+" model.py:12", "main /home/me/train.py:7\n_call_impl /usr/lib/site-packages/torch/nn/module.py:1520\n"+fn+" /home/me/model.py:12\nempty ??:0", bytes)
}

// plain is one of code outside of modules.
func (p *program) plain(fn string, bytes int64) uint64 {
	return p.block(fn+" train.py:31", "main /home/me/train.py:7\n"+fn+" /home/me/train.py:31", bytes)
}

func (p *program) block(op, stack string, bytes int64) uint64 {
	p.at += 1000
	p.next += 1 << 30
	e := event.Event{Kind: event.Alloc, Time: p.at, Address: p.next, Size: bytes, Requested: bytes}
	if op != "" {
		e.Op, e.Tensor = p.strs.ID(op), p.strs.ID(stack)
	}
	p.rec.Emit(&e)
	p.size[p.next] = bytes
	return p.next
}

func (p *program) free(list ...uint64) {
	for _, a := range list {
		p.at += 1000
		p.rec.Emit(&event.Event{Kind: event.Free, Time: p.at, Address: a, Size: p.size[a]})
	}
}

// before is a block from before the recording.
func (p *program) before(bytes int64) {
	p.block("", "", bytes)
	p.at = 0
}

// step is a training step: activations of some layers, freed backwards, and
// gradients. What the caller does in the middle of it is within.
func (p *program) step(within func()) {
	var acts []uint64
	for range 6 {
		acts = append(acts, p.alloc("forward", 8*mib))
		p.free(p.alloc("attention", 4*mib)) // workspace
	}
	if within != nil {
		within()
	}
	for i := range acts {
		g := p.plain("backward", 2*mib)
		p.free(acts[len(acts)-1-i], g)
	}
}

func (p *program) growth(t *testing.T) reading.Growth {
	t.Helper()
	list := p.rec.Growth()
	if len(list) != 1 {
		t.Fatalf("%d allocators", len(list))
	}
	return list[0]
}

func TestAListOfLossesIsNamed(t *testing.T) {
	p := newProgram()
	p.before(300 * mib)
	for range 12 {
		p.step(func() { p.plain("append", 3*mib) })
	}
	g := p.growth(t)
	if g.Verdict != reading.Steady || g.Repeats != 11 || g.PerRepeat != 3*mib || len(g.Growing) != 1 {
		t.Fatalf("%+v", g)
	}
	x := g.Growing[0]
	if x.Name != "append train.py:31" || x.Caller != "main train.py:7" || x.PerRepeat != 3*mib || x.Blocks != 12 || x.Bytes != 36*mib || x.Until != 0 {
		t.Errorf("%+v", x)
	}
	if s := strings.Join(g.Sentences(), "\n"); !strings.Contains(s, "append train.py:31, from main train.py:7, keeps 3.00 MiB more each time: 36.00 MiB in 12 blocks") {
		t.Error(s)
	}
}

func TestSmallLeaksCountWhenTheyComeEveryTime(t *testing.T) {
	p := newProgram()
	p.before(4000 * mib)
	for range 8 {
		p.step(func() { p.plain("append", 512) })
	}
	if g := p.growth(t); g.Verdict != reading.Steady || g.Growing[0].PerRepeat != 512 {
		t.Errorf("%+v", g)
	}
}

func TestALeakWithinAModelIsOne(t *testing.T) {
	p := newProgram()
	for range 8 {
		p.step(func() { p.alloc("remember", mib) })
	}
	if g := p.growth(t); g.Verdict != reading.Steady || g.Growing[0].Name != "remember model.py:12" {
		t.Errorf("%+v", g)
	}
}

func TestSteadyTrainingHasNoLeak(t *testing.T) {
	p := newProgram()
	p.before(100 * mib)
	var kept []uint64 // the last three batches are always there
	for range 20 {
		p.step(func() { kept = append(kept, p.plain("load", mib)) })
		if len(kept) > 3 {
			p.free(kept[0])
			kept = kept[1:]
		}
	}
	g := p.growth(t)
	if g.Verdict != reading.NoGrowth && g.Verdict != reading.Levelled || g.Verdict == reading.Levelled && g.Growing[0].Until > 4 {
		t.Errorf("%+v", g)
	}
}

func TestVariableBatchesAreNoLeak(t *testing.T) {
	p := newProgram()
	size := uint64(1)
	for range 40 {
		size = size*6364136223846793005 + 1442695040888963407
		n := int64(1+size>>62) * mib
		a, b := p.alloc("forward", 20*mib+n), p.plain("loss", 5*n)
		p.free(b, a)
	}
	if g := p.growth(t); g.Verdict != reading.NoGrowth {
		t.Errorf("%+v", g)
	}
}

// Results of validation that keep their graphs: the batches come and go, and
// 3.7 MiB of each stay.
func TestValidationWithoutNoGradGrows(t *testing.T) {
	p := newProgram()
	p.before(9526 * mib)
	for range 16 {
		var work []uint64
		for range 10 {
			work = append(work, p.alloc("encode", 40*mib))
		}
		p.alloc("project", 3*mib)
		p.plain("evaluate", 700*kib)
		p.free(work...)
	}
	g := p.growth(t)
	if g.Verdict != reading.Steady || g.Repeats != 15 || g.PerRepeat != 3*mib+700*kib || len(g.Growing) != 2 || g.Growing[0].Name != "project model.py:12" {
		t.Errorf("%+v", g)
	}
}

// Where all that a repeat makes is kept, one pass over equal layers looks the
// same.
func TestWhatIsKeptWholeMayBeOnePass(t *testing.T) {
	p := newProgram()
	for range 10 {
		p.alloc("layer", 10*mib)
		p.free(p.alloc("attention", 6*mib))
	}
	g := p.growth(t)
	if g.Verdict != reading.KeptWhole || g.Growing[0].Name != "layer model.py:12" || g.Growing[0].PerRepeat != 10*mib {
		t.Errorf("%+v", g)
	}
	if s := strings.Join(g.Sentences(), " "); !strings.Contains(s, "equal layers") {
		t.Error(s)
	}
}

// A pass whose workspace is large is known by where it happens.
func TestAPassWithinOneModuleIsNoLoopOfSteps(t *testing.T) {
	p := newProgram()
	for range 10 {
		p.alloc("layer", mib)
		p.free(p.alloc("attention", 60*mib))
	}
	if g := p.growth(t); g.Verdict != reading.KeptWhole {
		t.Errorf("%+v", g)
	}
}

func TestCachesAndOptimizerStateLevelOff(t *testing.T) {
	p := newProgram()
	p.before(50 * mib)
	for i := range 14 {
		p.step(nil)
		if i == 1 { // the first optimizer step
			for range 20 {
				p.plain("step", 2*mib)
			}
		}
		if i < 4 {
			p.plain("cache", mib)
		}
	}
	g := p.growth(t)
	if g.Verdict != reading.Levelled || len(g.Growing) != 2 || g.Growing[0].Name != "step train.py:31" || g.Growing[0].Bytes != 40*mib || g.Growing[0].Until == 0 || g.Growing[0].Until > 4 {
		t.Errorf("%+v", g)
	}
}

// Loading hides the steps: what it frees at once is more than any step does.
func TestAFallAtTheBeginningHidesNothing(t *testing.T) {
	p := newProgram()
	p.before(10 * mib)
	p.free(p.plain("load", 3000*mib))
	for range 9 {
		p.step(func() { p.plain("append", mib) })
	}
	if g := p.growth(t); g.Verdict != reading.Steady || g.Growing[0].PerRepeat != mib {
		t.Errorf("%+v", g)
	}
}

func TestManyStacksTogether(t *testing.T) {
	p := newProgram()
	for i := range 10 {
		p.step(nil)
		p.block("op"+string(rune('a'+i))+" train.py:1", "main /a/train.py:1\nx /a/train.py:"+string(rune('0'+i)), 10*mib)
	}
	if g := p.growth(t); g.Verdict != reading.Spread || g.PerRepeat != 10*mib {
		t.Errorf("%+v", g)
	}
}

func TestShortRecordingsSaySo(t *testing.T) {
	p := newProgram()
	for range 2 {
		p.step(func() { p.plain("append", mib) })
	}
	g := p.growth(t)
	if g.Verdict != reading.TooShort || g.LeftBlocks != 2 || g.Left != 2*mib || len(g.Sentences()) != 0 || !strings.Contains(g.Short(), "2 blocks made while it was recorded, 2.00 MiB, are still there") {
		t.Errorf("%+v: %s", g, g.Short())
	}
}

func TestBlocksWithoutStacksGrowBySize(t *testing.T) {
	p := newProgram()
	for range 10 {
		var list []uint64
		for range 5 {
			list = append(list, p.block("", "", 9*mib))
		}
		p.block("", "", 7*mib)
		p.free(list...)
	}
	g := p.growth(t)
	if g.Verdict != reading.Steady || g.Growing[0].Name != "blocks of 7.00 MiB" || g.Growing[0].PerRepeat != 7*mib {
		t.Errorf("%+v", g)
	}
	h := p.rec.Held()
	if len(h) != 2 || h[1].At != "end" || len(h[1].Holders) != 1 || h[1].Holders[0].Blocks != 10 || h[1].UnknownBlocks != 0 {
		t.Errorf("%+v", h)
	}
}

func TestHolders(t *testing.T) {
	p := newProgram()
	p.before(30 * mib)
	p.at = 5
	a := p.alloc("forward", 40*mib)
	b := p.plain("load", 20*mib)
	p.plain("load", 10*mib)
	p.free(a, b)
	list := p.rec.Held()
	if len(list) != 2 {
		t.Fatalf("%+v", list)
	}
	peak, end := list[0], list[1]
	if peak.At != "peak" || peak.Bytes != 100*mib || peak.Blocks != 4 || peak.Unknown != 30*mib || peak.UnknownBefore != 30*mib || len(peak.Holders) != 2 {
		t.Errorf("%+v", peak)
	}
	if h := peak.Holders[0]; h.Name != "forward model.py:12" || h.Caller != "main train.py:7" || h.Bytes != 40*mib || h.Stacks != 1 {
		t.Errorf("%+v", h)
	}
	if h := peak.Holders[1]; h.Name != "load train.py:31" || h.Bytes != 30*mib || h.Blocks != 2 {
		t.Errorf("%+v", h)
	}
	if end.At != "end" || end.Bytes != 40*mib || end.Holders[0].Bytes != 10*mib || end.Unknown != 30*mib {
		t.Errorf("%+v", end)
	}
	var sum int64
	for _, h := range peak.Holders {
		sum += h.Bytes
	}
	if sum+peak.Unknown+peak.MoreBytes != peak.Bytes {
		t.Errorf("%d of %d", sum, peak.Bytes)
	}
	lines := peak.Lines()
	if len(lines) != 3 || lines[0].Label != "40.00 MiB" || lines[0].Value != "40 % in 1 block: forward model.py:12, from main train.py:7" ||
		lines[2].Value != "30 % in 1 block: allocated before the recording began, no stack or op is known" {
		t.Errorf("%v", lines)
	}
}

func TestManyHoldersAreBounded(t *testing.T) {
	p := newProgram()
	for i := range 3 * reading.MaxHolders {
		p.block("op"+strings.Repeat("x", i), "", int64(1+i))
	}
	h := p.rec.Held()[0]
	n := int64(reading.MaxHolders)
	if int64(len(h.Holders)) != n || h.More != 2*n || h.MoreBytes != 2*n*(2*n+1)/2 || h.Holders[0].Bytes != 3*n {
		t.Errorf("%d listed, %d more of %d bytes", len(h.Holders), h.More, h.MoreBytes)
	}
	if lines := h.Lines(); len(lines) > reading.MaxLines+1 || !strings.HasSuffix(lines[len(lines)-1].Value, " more") {
		t.Error(lines)
	}
}

func TestCallers(t *testing.T) {
	for _, c := range []struct{ op, stack, want string }{
		{"f a.py:2", "main /x/m.py:1\nlib /site-packages/l.py:9\nf /x/a.py:2\nmalloc ??:0", "main m.py:1"},
		{"f a.py:2", "lib /site-packages/l.py:9\nf /x/a.py:2", "lib l.py:9"},
		{"f a.py:2", "f /x/a.py:2", ""},
		{"f a.py:2", `main C:\x y\m.py:1` + "\n" + `f C:\x y\a.py:2`, "main m.py:1"},
		{"f", "g /x/m.py:1\nf /x/a.py:2", "g m.py:1"},
		{"f a.py:2", "g /x/m.py:1\nh /x/a.py:3", ""},
		{"", "", ""},
	} {
		if got := callerOf(c.op, strings.Split(c.stack, "\n")); got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.op, c.stack, got, c.want)
		}
	}
}

func TestCopiesOfTheSteps(t *testing.T) {
	var strs event.Strings
	r := NewRecorder(&strs)
	op := strs.ID("IteratorGetNext")
	emit := func(k event.Kind, at int64, id uint64, stream event.StreamID, size int64) {
		r.Emit(&event.Event{Kind: k, Time: at, ID: id, Stream: stream, Size: size, Op: op})
	}
	if r.Copies() != nil {
		t.Error("copies of nothing")
	}
	emit(event.StepBegin, 100, 0, 0, 0)
	emit(event.TransferBegin, 50, 1, event.StreamH2D, 4*mib) // half of it before the step
	emit(event.TransferEnd, 150, 1, event.StreamH2D, 0)
	emit(event.TransferBegin, 140, 2, event.StreamD2H, mib)
	emit(event.TransferEnd, 180, 2, event.StreamD2H, 0)
	emit(event.TransferBegin, 190, 3, event.StreamD2D, mib) // stays on the device
	emit(event.TransferEnd, 199, 3, event.StreamD2D, 0)
	emit(event.StepEnd, 300, 0, 0, 0)
	c := r.Copies()
	if c == nil || c.Busy != 80 || c.Of != 200 || c.Steps != 1 || c.Count != 2 || c.Bytes != 5*mib || c.Longest != "IteratorGetNext" || c.LongestTime != 100 || !c.ToDevice {
		t.Errorf("%+v", c)
	}
	if s := c.Sentence(); !strings.Contains(s, "take 40 % of the steps") || !strings.Contains(s, "4.00 MiB to the device for IteratorGetNext") {
		t.Error(s)
	}
}
