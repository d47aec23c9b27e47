package system_test

import (
	"math/rand/v2"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/system"
)

type watch struct {
	alloc.NoObserver
	j *check.Judge
}

func (w watch) RegionTaken(addr uint64, asked, received int64) {
	w.j.Emit(&event.Event{Kind: event.RegionAdd, Address: addr, Size: received, Requested: asked})
}

func (w watch) RegionGiven(addr uint64, bytes int64) {
	w.j.Emit(&event.Event{Kind: event.RegionRemove, Address: addr, Size: bytes})
}

func TestFirstFit(t *testing.T) {
	a := system.New(system.Options{})
	get := func(n, align int64) alloc.Block {
		b, ok := a.Allocate(alloc.Request{Bytes: n, Alignment: align})
		if !ok {
			t.Fatalf("%d bytes do not fit", n)
		}
		b.Address -= system.DefaultBase
		return b
	}
	steps := []struct {
		bytes, align int64
		addr         uint64
		size         int64
	}{
		{1, 0, 0, 64}, {64, 0, 64, 64}, {65, 0, 128, 128}, {100, 4096, 4096, 128}, {3000, 0, 256, 3008}, {1 << 20, 0, 4224, 1 << 20},
	}
	for i, s := range steps {
		if b := get(s.bytes, s.align); b != (alloc.Block{Address: s.addr, Size: s.size, Requested: s.bytes, ID: int64(i + 1)}) {
			t.Errorf("step %d gives %+v", i, b)
		}
	}
	if err := a.Free(system.DefaultBase + 64); err != nil {
		t.Fatal(err)
	}
	if err := a.Free(system.DefaultBase + 64); err == nil {
		t.Error("a second free passed")
	}
	if b := get(50, 0); b.Address != 64 {
		t.Errorf("the hole is not reused: %x", b.Address)
	}
	if _, ok := a.Allocate(alloc.Request{}); ok {
		t.Error("0 bytes were allocated")
	}
	if _, ok := a.Allocate(alloc.Request{Bytes: 1<<63 - 1}); ok {
		t.Error("2^63 bytes were allocated")
	}
	if s := a.Stats(); s.Limit != 0 || s.NumAllocs != 7 || s.InUse != 64*2+128+128+3008+1<<20 || s.Pool%system.Step != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestRandomLivesObeyTheRules(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		j := check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return check.Rules{Granule: system.Alignment} }, nil)
		a := system.New(system.Options{Observer: watch{j: j}})
		var live []alloc.Block
		for range 400 {
			if rnd.IntN(5) < 3 {
				align := int64(1) << rnd.IntN(14)
				b, ok := a.Allocate(alloc.Request{Bytes: 1 + rnd.Int64N(1<<rnd.IntN(22)), Alignment: align})
				if !ok || b.Address%uint64(align) != 0 {
					t.Fatalf("seed %d: %v %+v", seed, ok, b)
				}
				j.Emit(&event.Event{Kind: event.Alloc, Address: b.Address, Size: b.Size, Requested: b.Requested})
				live = append(live, b)
			} else if len(live) > 0 {
				i := rnd.IntN(len(live))
				b := live[i]
				live = append(live[:i], live[i+1:]...)
				if err := a.Free(b.Address); err != nil {
					t.Fatal(err)
				}
				j.Emit(&event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
			}
			if err := j.CompareMap(0, 0, a.ChunkMap()); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			pool, inUse, _, largest := a.ChunkMap().Totals()
			if s := a.Stats(); s.Pool != pool || s.InUse != inUse || s.LargestFree != largest {
				t.Fatalf("seed %d: stats %+v, map %d %d %d", seed, s, pool, inUse, largest)
			}
		}
		for _, b := range live {
			if err := a.Free(b.Address); err != nil {
				t.Fatal(err)
			}
			j.Emit(&event.Event{Kind: event.Free, Address: b.Address, Size: b.Size})
		}
		a.Close()
		if err := j.Err(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if pool, _, _, _ := j.Totals(0, 0); pool != 0 {
			t.Fatalf("seed %d: %d bytes were not given back", seed, pool)
		}
	}
}
