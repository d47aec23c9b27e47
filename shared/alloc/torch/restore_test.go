package torch_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// shape is everything held without absolute addresses: segments in order, and
// the blocks' sizes and states.
func shape(a *torch.Allocator) string {
	var b strings.Builder
	for _, s := range a.Snapshot() {
		fmt.Fprintf(&b, "%s %d %v %v:", s.Type(), s.Stream, s.Pool, s.Expandable)
		for _, x := range s.Blocks {
			fmt.Fprintf(&b, " %d/%s", x.Size, x.State)
			if x.State == torch.ActiveAllocated {
				fmt.Fprintf(&b, "/%d", x.Requested)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// twins are one block in two allocators.
type twins struct{ a, b uint64 }

// TestARestoredAllocatorGoesOnAsTheOriginal takes a snapshot in the middle of a
// random life and lets both go on with the same requests.
func TestARestoredAllocatorGoesOnAsTheOriginal(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		text := [...]string{"", "expandable_segments:True", "max_split_size_mb:40", "roundup_power2_divisions:4"}[seed%4]
		s, err := torch.ParseSettings(text)
		if err != nil {
			t.Fatal(err)
		}
		capacity := (200 + rnd.Int64N(400)) * mib
		build := func() *torch.Allocator {
			return newAllocator(t, alloc.NewCard(capacity), torch.Options{Settings: s})
		}
		a := build()
		var live []twins
		request := func() torch.Request {
			return torch.Request{
				Bytes: 1 + rnd.Int64N(1<<(1+rnd.IntN(26))), Stream: torch.Stream(rnd.IntN(2)), Pool: torch.PoolID{A: uint64(rnd.IntN(2))},
			}
		}
		// What is never freed keeps every reservation's first page.
		for i := range 8 {
			r := torch.Request{Bytes: 1000, Stream: torch.Stream(i & 1), Pool: torch.PoolID{A: uint64(i >> 1 & 1)}}
			if i >= 4 {
				r.Bytes = 2 * mib
			}
			takeOn(t, a, r)
		}
		for range 150 {
			if i := rnd.IntN(len(live) + 2); i < len(live) {
				if rnd.IntN(5) == 0 {
					if err := a.RecordStream(live[i].a, 7); err != nil {
						t.Fatal(err)
					}
				}
				if err := a.Free(live[i].a); err != nil {
					t.Fatal(err)
				}
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			}
			if b, ok := a.AllocateOn(request()); ok {
				live = append(live, twins{b.Address, b.Address})
			}
		}
		snap := a.Snapshot()
		b := build()
		if err := b.Restore(snap); err != nil {
			t.Fatal(err)
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		for step := range 150 {
			if x, y := shape(a), shape(b); x != y {
				t.Fatalf("seed %d, %q, step %d:\n%s\nrestored:\n%s", seed, text, step, x, y)
			}
			switch i := rnd.IntN(len(live) + 8); {
			case i < len(live):
				give(t, a, alloc.Block{Address: live[i].a})
				give(t, b, alloc.Block{Address: live[i].b})
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			case rnd.IntN(20) == 0:
				a.EmptyCache()
				b.EmptyCache()
			default:
				r := request()
				x, ok := a.AllocateOn(r)
				y, same := b.AllocateOn(r)
				if ok != same {
					t.Fatalf("seed %d, step %d: %+v: %v, restored %v", seed, step, r, ok, same)
				}
				if ok {
					live = append(live, twins{x.Address, y.Address})
				}
			}
			if err := b.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if x, y := a.Statistics(), b.Statistics(); x.ReservedBytes.All.Current != y.ReservedBytes.All.Current ||
			x.InactiveSplitBytes.All.Current != y.InactiveSplitBytes.All.Current || x.Segment.All.Current != y.Segment.All.Current {
			t.Errorf("%+v, restored %+v", x, y)
		}
		b.Close()
	}
}

// TestReplayReproducesTheAddresses replays the trace entries of a random life
// and gets its addresses, up to where the driver puts the segments.
func TestReplayReproducesTheAddresses(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		s, err := torch.ParseSettings([...]string{"", "expandable_segments:True", "max_split_size_mb:64,roundup_power2_divisions:8"}[seed%3])
		if err != nil {
			t.Fatal(err)
		}
		h := torch.NewHistory(1 << 16)
		a := newAllocator(t, alloc.NewCard(1<<36), torch.Options{Settings: s, Tracer: h})
		var live []uint64
		for range 400 {
			if i := rnd.IntN(len(live) + 3); i < len(live) {
				if err := a.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
				continue
			}
			b := takeOn(t, a, torch.Request{Bytes: 1 + rnd.Int64N(1<<(1+rnd.IntN(27))), Stream: torch.Stream(rnd.IntN(3))})
			live = append(live, b.Address)
		}
		const shift = 1 << 40
		device := torch.NewDevice(alloc.NewCard(1<<36), torch.DeviceBase+shift)
		again, err := torch.New(device, torch.Options{Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range h.Entries() {
			switch e.Action {
			case torch.ActionAlloc:
				if b := takeOn(t, again, torch.Request{Bytes: e.Size, Stream: e.Stream}); b.Address != e.Addr+shift {
					t.Fatalf("seed %d, entry %d: %x, recorded %x", seed, i, b.Address, e.Addr)
				}
			case torch.ActionFreeRequested:
				give(t, again, alloc.Block{Address: e.Addr + shift})
			default: // what followed from those two
			}
		}
		if shape(a) != shape(again) {
			t.Errorf("seed %d ends differently", seed)
		}
	}
}

func TestWhatCannotBeRestored(t *testing.T) {
	block := func(addr uint64, size int64, s torch.BlockState) torch.SnapshotBlock {
		return torch.SnapshotBlock{Address: addr, Size: size, Requested: size, State: s}
	}
	const base = 1 << 33
	good := torch.SnapshotSegment{Address: base, Total: 2 * mib, Blocks: []torch.SnapshotBlock{
		block(base, 512, torch.ActiveAllocated), block(base+512, 2*mib-512, torch.Inactive),
	}}
	with := func(f func(s *torch.SnapshotSegment)) torch.SnapshotSegment {
		s := good
		s.Blocks = append([]torch.SnapshotBlock(nil), good.Blocks...)
		f(&s)
		return s
	}
	pages := with(func(s *torch.SnapshotSegment) { s.Expandable = true })
	next := with(func(s *torch.SnapshotSegment) {
		s.Expandable, s.Address = true, base+uint64(2*mib)
		for i := range s.Blocks {
			s.Blocks[i].Address += uint64(2 * mib)
		}
	})
	for _, c := range []struct {
		list []torch.SnapshotSegment
		want string
	}{
		{[]torch.SnapshotSegment{good}, ""},
		{[]torch.SnapshotSegment{pages}, ""},
		{[]torch.SnapshotSegment{good, good}, "begins before"},
		{[]torch.SnapshotSegment{pages, next}, "are one"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Address = 0 })}, "cannot lie"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Total = -1 })}, "cannot lie"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Total = 1 << 40 })}, "end at"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Blocks = s.Blocks[:1] })}, "end at"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Blocks[1].Address++ })}, "expected"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Blocks[0].Size = 100 })}, "100 bytes"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Blocks[0].Requested = 1000 })}, "holds 1000"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) { s.Blocks[0].State = torch.Inactive })}, "side by side"},
		{[]torch.SnapshotSegment{with(func(s *torch.SnapshotSegment) {
			s.Expandable, s.Large, s.Address = true, true, base
		})}, "pages"},
	} {
		a := newAllocator(t, alloc.NewCard(64*mib), torch.Options{})
		err := a.Restore(c.list)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.list, err, c.want)
		}
		if c.want == "" {
			if err := a.Check(); err != nil {
				t.Error(err)
			}
			if err := a.Restore(c.list); err == nil {
				t.Error("restored twice")
			}
		}
		a.Close()
	}
	tight := newAllocator(t, alloc.NewCard(mib), torch.Options{})
	if err := tight.Restore([]torch.SnapshotSegment{good}); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Error(err)
	}
	space, err := alloc.NewSpace(alloc.SpaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := torch.New(space, torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := plain.Restore([]torch.SnapshotSegment{good}); err == nil || !strings.Contains(err.Error(), "cannot place") {
		t.Error(err)
	}
}
