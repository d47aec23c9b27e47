package analysis

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/analysis/cause"
)

// comb is a region of n teeth: a small block in use, then a hole.
func comb(n int, used, hole int64) event.ChunkMap {
	r := event.Region{Address: 1 << 20}
	for range n {
		r.Chunks = append(r.Chunks,
			event.Chunk{Address: r.Address + uint64(r.Size), Size: used, Requested: used, InUse: true},
			event.Chunk{Address: r.Address + uint64(r.Size+used), Size: hole})
		r.Size += used + hole
	}
	return event.ChunkMap{r}
}

func TestHolesOfEqualSize(t *testing.T) {
	m := comb(50, mib, 2*mib)
	x := Measure(m)
	if x.External() != 0.98 || x.Free != 100*mib || x.LargestFree != 2*mib || x.FreeRuns != 50 {
		t.Errorf("%+v, external %g", x, x.External())
	}
	in := cause.Inputs{Request: cause.Of(3 * mib), Limit: cause.Of(150 * mib)}
	in.FromChunkMap(m)
	if v := cause.Decide(in); v.Cause != event.OOMFragmented || v.Kind != cause.Holes {
		t.Errorf("%+v", v)
	}
	if a, b := UsableFor(m, mib), UsableFor(m, 3*mib); a != 100 || b != 0 {
		t.Errorf("usable for 1 MiB: %d, for 3 MiB: %d", a, b)
	}
	if n := UsableFor(m, 2*mib-255); n != 50 {
		t.Errorf("a request rounds up to its hole: %d", n)
	}
}

func TestEmptyCases(t *testing.T) {
	var none Measures
	full := Measure(event.ChunkMap{{Address: 256, Size: 256, Chunks: []event.Chunk{{Address: 256, Size: 256, Requested: 256, InUse: true}}}})
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"utilisation of nothing", none.Utilisation(), 1},
		{"internal of nothing", none.Internal(), 0},
		{"external of nothing", none.External(), 0},
		{"utilisation when full", full.Utilisation(), 1},
		{"external when full", full.External(), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
}

func TestFreeNeighboursAreOneRun(t *testing.T) {
	m := event.ChunkMap{
		{Address: 0x1000, Size: 768, Chunks: []event.Chunk{{Address: 0x1000, Size: 256}, {Address: 0x1100, Size: 512}}},
		{Address: 0x1300, Size: 256, Chunks: []event.Chunk{{Address: 0x1300, Size: 256}}}, // touches, another region
	}
	if x := Measure(m); x.FreeRuns != 2 || x.LargestFree != 768 {
		t.Errorf("%+v", x)
	}
}

// TestInternalWasteOfOddRequests: 1,000 requests of 257 bytes from a real BFC
// allocator round to 512 each.
func TestInternalWasteOfOddRequests(t *testing.T) {
	space, err := alloc.NewSpace(alloc.SpaceOptions{Base: 1 << 32})
	if err != nil {
		t.Fatal(err)
	}
	a, err := bfc.New(space, bfc.Options{Name: "GPU_0_bfc", Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for range 1000 {
		if _, ok := a.Allocate(alloc.Request{Bytes: 257}); !ok {
			t.Fatal("no memory")
		}
	}
	if x := Measure(a.ChunkMap()); x.InUse-x.Requested != 255000 || x.Internal() != 255.0/512 {
		t.Errorf("%+v, internal %g", x, x.Internal())
	}
}
