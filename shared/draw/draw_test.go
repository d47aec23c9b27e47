package draw

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/shared/store"
)

// story is a short run with one of everything a lane can show.
func story(tb testing.TB) *store.Timeline {
	tb.Helper()
	tl := store.New(nil)
	s := tl.Strings()
	text := func(kv ...string) event.StringID {
		var f event.Fields
		for i := 0; i < len(kv); i += 2 {
			f.Set(kv[i], kv[i+1])
		}
		return s.ID(f.Encode())
	}
	const mib = 1 << 20
	at := int64(0)
	var es []event.Event
	add := func(e event.Event) { e.Time = at; es = append(es, e) }
	add(event.Event{Kind: event.DeviceFacts, Device: 0, Text: text("name", "/CPU:0", "kind", "cpu")})
	add(event.Event{Kind: event.DeviceFacts, Device: 1, Text: text("name", "/GPU:0", "kind", "gpu")})
	add(event.Event{Kind: event.AllocatorFacts, Device: 1, Size: 64 * mib, Text: text("name", "GPU_0_bfc")})
	add(event.Event{Kind: event.RegionAdd, Device: 1, Address: 0x1000_0000, Size: 24 * mib})
	alloc := func(a uint64, size, requested int64, c event.Category) {
		add(event.Event{Kind: event.Alloc, Device: 1, Address: 0x1000_0000 + a*mib, Size: size, Requested: requested, Category: c, Op: s.ID("op " + c.String())})
	}
	free := func(a uint64) { add(event.Event{Kind: event.Free, Device: 1, Address: 0x1000_0000 + a*mib}) }
	alloc(0, 6*mib, 6*mib, event.Parameter)
	alloc(6, 4*mib, 4*mib, event.OptimizerState)
	for step := range int32(4) {
		at += 50e3
		add(event.Event{Kind: event.StepBegin, Step: step, Size: 32})
		if step == 2 {
			add(event.Event{Kind: event.StallBegin, Device: 1, ID: 1, Op: s.ID("map")})
			at += 200e3
			add(event.Event{Kind: event.StallEnd, Device: 1, ID: 1})
		}
		add(event.Event{Kind: event.QueueDepth, Op: s.ID("prefetch"), Size: int64(3 - step), Requested: 4})
		add(event.Event{Kind: event.TransferBegin, Device: 0, Peer: 1, ID: uint64(step), Size: int64(1+step) * mib, Cause: uint8(event.CauseInput), Stream: event.StreamH2D})
		at += 60e3
		add(event.Event{Kind: event.TransferEnd, Device: 0, Peer: 1, ID: uint64(step)})
		alloc(10, 2*mib, 2*mib, event.Input)
		for k := range uint64(3) {
			add(event.Event{Kind: event.OpBegin, Device: 1, ID: uint64(step)*10 + k, Category: event.Category(k), Op: s.ID("matmul")})
			alloc(12+3*k, 3*mib, 2*mib, event.Category(5+k))
			at += 40e3 * int64(k+1)
			add(event.Event{Kind: event.OpEnd, Device: 1, ID: uint64(step)*10 + k})
		}
		if step == 1 {
			add(event.Event{Kind: event.Lost, Size: 12})
		}
		if step == 3 {
			add(event.Event{Kind: event.RegionAdd, Device: 1, Address: 0x9000_0000, Size: 8 * mib})
			add(event.Event{Kind: event.Alloc, Device: 1, Address: 0x9000_0000, Size: 5 * mib, Requested: 5 * mib, Category: event.Temporary})
			at += 30e3
			add(event.Event{Kind: event.OutOfMemory, Device: 1, Size: 40 * mib, Requested: 40 * mib, Cause: uint8(event.OOMFull)})
			at += 30e3
		}
		for k := range uint64(3) {
			at += 20e3
			free(18 - 3*k)
		}
		free(10)
		add(event.Event{Kind: event.StepEnd, Step: step})
	}
	tl.Append(es)
	if tl.Skipped() != 0 {
		tb.Fatalf("the story contradicts itself %d times", tl.Skipped())
	}
	return tl
}

func viewOf(tl *store.Timeline, w, h int, theme *Theme) *View {
	v := &View{W: w, H: h, DPR: 1, Theme: theme, Lanes: Layout(tl, h, 4, 1)}
	v.T0, v.T1 = tl.Span()
	v.T1++
	return v
}

func TestLayoutStacksLanesWithoutOverlap(t *testing.T) {
	tl := story(t)
	lanes := Layout(tl, 400, 4, 1)
	var kinds []LaneKind
	y := 0
	for _, l := range lanes {
		kinds = append(kinds, l.Kind)
		if l.Y != y || l.H <= 0 {
			t.Errorf("lane %d lies at %d with height %d, want it at %d", l.Kind, l.Y, l.H, y)
		}
		y = l.Y + l.H + 4
	}
	want := []LaneKind{MemoryLane, AddressLane, OpLane, TransferLane, InputLane}
	if len(kinds) != len(want) {
		t.Fatalf("lanes are %v, want %v", kinds, want)
	}
	for i := range want {
		if kinds[i] != want[i] {
			t.Fatalf("lanes are %v, want %v", kinds, want)
		}
	}
	if y-4 > 400 {
		t.Errorf("lanes end at %d of 400", y-4)
	}
}

func TestAnArenaLiesBehindThePoolItIsIn(t *testing.T) {
	tl := store.New(nil)
	var es []event.Event
	for i, x := range []struct {
		device       event.DeviceID
		name, within string
	}{{1, "GPU_0_bfc", ""}, {2, "GPU_1_bfc", ""}, {1, "GPU_0_planned", "GPU_0_bfc"}, {2, "GPU_1_planned", "GPU_1_bfc"}} {
		f := event.Fields{{Key: "name", Value: x.name}}
		if x.within != "" {
			f = append(f, event.Field{Key: "kind", Value: "planned"}, event.Field{Key: "within", Value: x.within})
		}
		d := event.Fields{{Key: "name", Value: "/GPU:" + string(rune('0'+x.device-1))}, {Key: "kind", Value: "gpu"}}
		id := event.AllocatorID(i)
		es = append(es,
			event.Event{Kind: event.DeviceFacts, Device: x.device, Text: tl.Strings().ID(d.Encode())},
			event.Event{Kind: event.AllocatorFacts, Device: x.device, Allocator: id, Text: tl.Strings().ID(f.Encode())},
			event.Event{Kind: event.RegionAdd, Device: x.device, Allocator: id, Address: uint64(i+1) << 32, Size: 1 << 20},
			event.Event{Kind: event.Alloc, Device: x.device, Allocator: id, Address: uint64(i+1) << 32, Size: 1 << 10, Requested: 1 << 10})
	}
	tl.Append(es)
	var got []string
	for _, l := range Layout(tl, 800, 1, 1) {
		if l.Kind == MemoryLane {
			got = append(got, tl.Pools()[l.Pool].Name)
		}
	}
	if want := []string{"GPU_0_bfc", "GPU_0_planned", "GPU_1_bfc", "GPU_1_planned"}; !slices.Equal(got, want) {
		t.Errorf("memory lanes of %v, want %v", got, want)
	}
}

func TestOnlyChangedLanesAreRedrawnAndThePictureIsThatOfAFreshOne(t *testing.T) {
	tl := synthesize(t, synthetic.Options{Events: 20_000, Seed: 3, Dynamic: true})
	v := viewOf(tl, 300, 260, Dark())
	img := NewImage(v.W, v.H)
	var r Renderer
	if got := r.Frame(img, tl, v); len(got) != 1 || got[0] != (Rect{0, 0, 300, 260}) {
		t.Fatalf("the first frame touched %v", got)
	}
	if got := r.Frame(img, tl, v); len(got) != 0 {
		t.Fatalf("an unchanged frame touched %v", got)
	}
	v.Lanes[0].Top = 1 << 31
	if got := r.Frame(img, tl, v); len(got) != 1 || got[0].Y != v.Lanes[0].Y {
		t.Fatalf("a changed scale touched %v", got)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	first, last := tl.Span()
	for i := range 40 {
		d := 1 + rnd.Int64N(1+rnd.Int64N(last-first))
		v.T0 = first - d/3 + rnd.Int64N(last-first)
		v.T1 = v.T0 + d
		v.Hide = uint32(rnd.IntN(1 << 10))
		if i%3 == 0 {
			v.Hide = 0
		}
		if i == 20 {
			v.Theme = Light()
		}
		if i == 30 {
			v.Lanes[1].Low, v.Lanes[1].High = 1<<20, 1<<28
		}
		r.Frame(img, tl, v)
		var fresh Renderer
		want := NewImage(v.W, v.H)
		fresh.Frame(want, tl, v)
		if !bytes.Equal(img.Pix, want.Pix) {
			t.Fatalf("frame %d of [%d,%d) differs from a fresh one", i, v.T0, v.T1)
		}
		for o := 3; o < len(img.Pix); o += 4 {
			if img.Pix[o] != 255 {
				t.Fatalf("frame %d: pixel %d is not opaque", i, o/4)
			}
		}
	}
}

func TestAFrameAllocatesNothing(t *testing.T) {
	tl := synthesize(t, synthetic.Options{Events: 60_000, Seed: 3, Dynamic: true})
	v := viewOf(tl, 320, 240, Light())
	v.Base = story(t)
	v.Lanes = append(v.Lanes, Lane{Kind: MinimapLane, Y: 220, H: 20})
	img := NewImage(v.W, v.H)
	var r Renderer
	first, last := tl.Span()
	for _, part := range []int64{1, 20, 500} {
		d := (last - first) / part
		i := int64(0)
		frame := func() {
			i++
			v.T0 = first + i*977%max(last-first-d, 1)
			v.T1 = v.T0 + d
			r.Frame(img, tl, v)
		}
		for range 40 {
			frame()
		}
		i = 0
		if n := testing.AllocsPerRun(40, frame); n > 0 {
			t.Errorf("1/%d of the run: %v allocations a frame", part, n)
		}
	}
}

func TestBlocksAndHolesUnderThePointerAreWhatIsDrawn(t *testing.T) {
	tl := story(t)
	v := viewOf(tl, 240, 300, Light())
	img := NewImage(v.W, v.H)
	var r Renderer
	r.Frame(img, tl, v)
	pal := &r.palette
	hits := map[HitKind]int{}
	for y := range v.H {
		for x := range v.W {
			h := HitTest(tl, v, x, y)
			got := pixel(0)
			o := y*img.Stride + 4*x
			for i := range 4 {
				got |= pixel(img.Pix[o+i]) << (8 * i)
			}
			hits[h.Kind]++
			if h.Lane < 0 || got == pal.warning || got == pal.line || got == pal.grid || got == pal.lane {
				continue
			}
			switch v.Lanes[h.Lane].Kind {
			case AddressLane:
				switch h.Kind {
				case AllocHit:
					a := tl.Pools()[h.Pool].Alloc(h.Index)
					b := tl.Pools()[h.Pool].Box(h.Index)
					// A block may end within the pixel: it is found, but another is drawn.
					inside := h.Value >= b.Offset && h.Value < b.Offset+b.Size && b.Birth <= v.TimeAt(x) && b.Death >= v.TimeAt(x+1)
					if inside && h.Count == 1 && got != pal.category[a.Category] && got != pal.edge[a.Category] && got != pal.outside {
						t.Fatalf("(%d,%d) shows %08x, but %v lies there", x, y, got, a)
					}
				case HoleHit:
					if got != pal.hole && h.Size <= 0 {
						t.Fatalf("(%d,%d) shows %08x over a hole of %d", x, y, got, h.Size)
					}
				}
			case OpLane:
				if h.Kind != SpanHit {
					t.Fatalf("(%d,%d) shows %08x, but no op is found there", x, y, got)
				}
			}
		}
	}
	for _, k := range []HitKind{MemoryHit, AllocHit, HoleHit, SpanHit, QueueHit, OOMHit} {
		if hits[k] == 0 {
			t.Errorf("no point gave a hit of kind %d", k)
		}
	}
}

func TestMemoryHitNamesTheBandUnderThePointer(t *testing.T) {
	tl := story(t)
	v := viewOf(tl, 200, 300, Light())
	l := v.Lanes[0]
	top := Scale(tl, v, &l)
	x := 20
	b := make([]store.MemoryBucket, 1)
	tl.Pools()[l.Pool].Buckets(store.Window{T0: v.TimeAt(x), T1: v.TimeAt(x + 1), W: 1}, b)
	sum := int64(0)
	for c, n := range b[0].ByCategory {
		if n == 0 {
			continue
		}
		mid := sum + n/2
		sum += n
		y := l.Y + l.H - 1 - int(float64(mid)*float64(l.H)/float64(top))
		if h := HitTest(tl, v, x, y); h.Kind != MemoryHit || !h.InBand || int(h.Category) != c || h.Size != n {
			t.Errorf("in the middle of %v: got %+v", event.Category(c), h)
		}
	}
	if h := HitTest(tl, v, x, l.Y); h.Kind != MemoryHit || h.InBand || h.Size != b[0].Max {
		t.Errorf("above the stack: got %+v, want all of %d", h, b[0].Max)
	}
}

// TestASampleIsDrawnOfItsTotal draws a card that is a quarter full, then three
// quarters, and finds both under the pointer.
func TestASampleIsDrawnOfItsTotal(t *testing.T) {
	tl := store.New(nil)
	facts := event.Fields{{Key: "name", Value: "Tesla T4 #0"}, {Key: "kind", Value: "card"}}
	op := tl.Strings().ID("card memory used")
	es := []event.Event{{Kind: event.DeviceFacts, Text: tl.Strings().ID(facts.Encode())}}
	for i, used := range []int64{4 << 30, 12 << 30} {
		es = append(es, event.Event{Kind: event.Sample, Time: int64(i) * 500, Op: op, Size: used, Requested: 16 << 30})
	}
	tl.Append(append(es, event.Event{Kind: event.End, Time: 1000}))
	lanes := Layout(tl, 200, 1, 1)
	if len(lanes) != 1 || lanes[0].Kind != SampleLane {
		t.Fatalf("lanes %+v, want one of samples", lanes)
	}
	lanes[0].H = 104
	if rows := Rows(tl, &lanes[0]); len(rows) != 1 || rows[0].Title != "Tesla T4 #0: card memory used" {
		t.Errorf("rows %+v", rows)
	}
	v := &View{T0: 0, T1: 1000, W: 100, H: 104, Theme: Light(), Lanes: lanes}
	img := NewImage(v.W, v.H)
	new(Renderer).Frame(img, tl, v)
	at := func(x, y int) Color { return Color(img.Pix[4*(y*v.W+x):][:4]) }
	height := func(x int) (n int) {
		for y := range v.H {
			if at(x, y) == v.Theme.Queue {
				n++
			}
		}
		return n
	}
	if a, b := height(20), height(80); a < 23 || a > 27 || b < 73 || b > 78 {
		t.Errorf("a quarter is %d pixels of about 100 high, three quarters %d", a, b)
	}
	for x, want := range map[int]int64{20: 4 << 30, 80: 12 << 30} {
		if h := HitTest(tl, v, x, 50); h.Kind != QueueHit || h.Value != want {
			t.Errorf("at %d: %+v, want the value %d", x, h, want)
		}
	}
}

// TestASingleMomentFillsTheWidth: what is in use at the only instant that a
// timeline has is drawn to the right edge.
func TestASingleMomentFillsTheWidth(t *testing.T) {
	tl := store.New(nil)
	facts := event.Fields{{Key: "name", Value: "/GPU:0"}, {Key: "kind", Value: "gpu"}}
	tl.Append([]event.Event{
		{Kind: event.DeviceFacts, Text: tl.Strings().ID(facts.Encode())},
		{Kind: event.RegionAdd, Address: 4096, Size: 1 << 20},
		{Kind: event.Alloc, Address: 4096, Size: 1 << 20, Requested: 1 << 20},
	})
	lanes := Layout(tl, 300, 1, 1)
	v := &View{T0: 0, T1: moment, W: 100, H: 300, Theme: Light(), Lanes: lanes}
	img := NewImage(v.W, v.H)
	new(Renderer).Frame(img, tl, v)
	for _, l := range lanes {
		if l.Kind != MemoryLane && l.Kind != AddressLane {
			continue
		}
		y := l.Y + l.H/2
		left, right := img.Pix[4*(y*v.W+5):][:4], img.Pix[4*(y*v.W+95):][:4]
		if !bytes.Equal(left, right) || Color(right) == v.Theme.Background {
			t.Errorf("lane %d: %v at the left, %v at the right", l.Kind, left, right)
		}
	}
}

// TestManyFailuresAreABand along the edge, which leaves what failed to be seen.
func TestManyFailuresAreABand(t *testing.T) {
	tl := store.New(nil)
	facts := event.Fields{{Key: "name", Value: "/GPU:0"}, {Key: "kind", Value: "gpu"}}
	es := []event.Event{
		{Kind: event.DeviceFacts, Text: tl.Strings().ID(facts.Encode())},
		{Kind: event.RegionAdd, Address: 4096, Size: 1 << 20},
		{Kind: event.Alloc, Address: 4096, Size: 1 << 20, Requested: 1 << 20},
	}
	for i := range int64(200) {
		es = append(es, event.Event{Kind: event.OutOfMemory, Time: 10 * (i + 1), Size: 2 << 20, Requested: 2 << 20})
	}
	tl.Append(es)
	lanes := Layout(tl, 300, 1, 1)
	v := &View{T0: 0, T1: 2000, W: 400, H: 300, Theme: Light(), Lanes: lanes}
	img := NewImage(v.W, v.H)
	new(Renderer).Frame(img, tl, v)
	for _, l := range lanes {
		if l.Kind != MinimapLane && l.Kind != AddressLane {
			continue
		}
		red := func(y int) (n int) {
			for x := 20; x < 380; x++ {
				if p := img.Pix[4*((l.Y+y)*v.W+x):]; p[0] > p[2]+60 {
					n++
				}
			}
			return n
		}
		if top, middle := red(0), red(l.H/2); top < 300 || middle > 0 {
			t.Errorf("lane %d: %d of 360 columns are red at the top, %d in the middle", l.Kind, top, middle)
		}
	}
}
