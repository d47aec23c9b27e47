package snapshot

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/torch"
	"tideline/shared/ingest/snapshot/synthetic"
	"tideline/shared/store"
)

// tell makes a timeline of a snapshot and judges its events by the rules.
func tell(tb testing.TB, s *Snapshot, judged bool) *store.Timeline {
	tb.Helper()
	strs := &event.Strings{}
	tl := store.New(strs)
	j := check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return check.Rules{} }, strs)
	s.Emit(strs, event.SinkFunc(func(e *event.Event) {
		if judged {
			j.Emit(e)
		}
		tl.Append([]event.Event{*e})
	}))
	if err := j.Err(); err != nil {
		tb.Error(err)
	}
	if tl.Skipped() != 0 || !tl.End().Ended {
		tb.Errorf("%d events skipped, ended %v", tl.Skipped(), tl.End().Ended)
	}
	for _, n := range tl.Notes() {
		if text := tl.Text(n.Text); bytes.Contains([]byte(text), []byte("contradict")) {
			tb.Error(text)
		}
	}
	return tl
}

// checkEnd: after the trace the timeline holds what the snapshot says.
func checkEnd(t *testing.T, s *Snapshot, tl *store.Timeline) {
	t.Helper()
	totals := s.Totals()
	if len(totals) != len(tl.Pools()) {
		t.Fatalf("%d pools of %d devices", len(tl.Pools()), len(totals))
	}
	for i, p := range tl.Pools() {
		if now := p.Now(); now.InUse != totals[i].Active || now.Reserved != totals[i].Reserved {
			t.Errorf("device %d ends with %d in use and %d reserved, the snapshot has %d and %d",
				totals[i].Device, now.InUse, now.Reserved, totals[i].Active, totals[i].Reserved)
		}
	}
}

func TestTheTimelinesOfRealSnapshotsEndWhereTheyShould(t *testing.T) {
	for _, id := range caseIDs {
		t.Run(id, func(t *testing.T) {
			s, _ := readCase(t, id)
			checkEnd(t, s, tell(t, s, true))
		})
	}
}

var shapes = []synthetic.Shape{
	{Requests: 3000, Live: 200},
	{Requests: 3000, Live: 200, Protocol: 2},
	{Requests: 3000, Live: 200, Protocol: 3, NoTimes: true},
	{Requests: 3000, Live: 200, Protocol: 5, Devices: 3},
	{Requests: 5000, Live: 300, Keep: 1500, Seed: 3},
	{Requests: 5000, Live: 300, Keep: 700, Seed: 4, Settings: "max_split_size_mb:32,roundup_power2_divisions:4"},
	{Requests: 3000, Live: 200, Settings: "expandable_segments:True"},
	{Requests: 5000, Live: 200, Keep: 900, Settings: "expandable_segments:True", Seed: 5},
}

func TestTheTimelinesOfMadeSnapshotsEndWhereTheyShould(t *testing.T) {
	for _, shape := range shapes {
		t.Run(fmt.Sprintf("%+v", shape), func(t *testing.T) {
			s, err := Read(bytes.NewReader(made(t, shape)), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Skipped() != 0 || s.Protocol != shape.Protocol && shape.Protocol != 0 {
				t.Errorf("%d skipped, protocol %d", s.Skipped(), s.Protocol)
			}
			checkEnd(t, s, tell(t, s, true))
		})
	}
}

// replay rewinds a device to the beginning of its trace and makes the same
// requests of the allocator's model; it returns how many of the recorded
// allocations got their recorded address.
func replay(t *testing.T, s *Snapshot, device int) (same, all int) {
	t.Helper()
	settings := s.TorchSettings()
	trace := s.TorchTrace(device)
	early, err := torch.Rewind(s.TorchSegments(device), trace, &settings)
	if err != nil {
		t.Fatal(err)
	}
	a, err := torch.New(&guided{
		Device: torch.NewDevice(alloc.NewCard(0), 0),
		want:   entries(trace, torch.ActionSegmentAlloc), maps: entries(trace, torch.ActionSegmentMap),
	}, torch.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Restore(early); err != nil {
		t.Fatal(err)
	}
	at := map[uint64]uint64{} // recorded address to ours
	ours := func(addr uint64) uint64 {
		if x, ok := at[addr]; ok {
			return x
		}
		return addr
	}
	for i, e := range trace {
		switch e.Action {
		case torch.ActionAlloc:
			b, ok := a.AllocateOn(torch.Request{Bytes: e.Size, Stream: e.Stream})
			if !ok {
				t.Fatalf("entry %d: %v", i, a.Failure())
			}
			all++
			if b.Address == e.Addr {
				same++
			}
			at[e.Addr] = b.Address
		case torch.ActionFreeRequested:
			if err := a.Free(ours(e.Addr)); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
		default:
		}
	}
	want := s.TorchSegments(device)
	slices.SortFunc(want, func(a, b torch.SnapshotSegment) int { return int(int64(a.Address - b.Address)) })
	if got := a.Snapshot(); same == all && fmt.Sprint(shapeOf(got)) != fmt.Sprint(shapeOf(want)) {
		t.Error("the segments and blocks at the end differ from the recorded ones")
	}
	return same, all
}

// shapeOf is what of a state must come out the same: requested sizes of idle
// blocks are those of an earlier use, which a cut trace does not tell.
func shapeOf(list []torch.SnapshotSegment) []string {
	var out []string
	for _, s := range list {
		out = append(out, fmt.Sprint(s.Address, s.Total, s.Active, s.Large, s.Stream))
		for _, b := range s.Blocks {
			out = append(out, fmt.Sprint(b.Address, b.Size, b.State))
		}
	}
	return out
}

// guided gives new segments their recorded bases: which addresses the driver
// hands out is not the allocator's doing.
type guided struct {
	*torch.Device
	want []span
	maps []span // of expandable segments, in their order
	have []span // reservations
}

// Reserve sets addresses aside where the first pages were recorded that lie in
// no reservation yet.
func (g *guided) Reserve(bytes int64) (uint64, bool) {
	for _, m := range g.maps {
		if !slices.ContainsFunc(g.have, func(r span) bool { return m.addr >= r.addr && m.addr < r.end() }) {
			g.have = append(g.have, span{m.addr, bytes})
			g.PlaceReserved(m.addr, bytes)
			return m.addr, true
		}
	}
	return g.Device.Reserve(bytes)
}

func entries(trace []torch.TraceEntry, a torch.Action) []span {
	var out []span
	for _, e := range trace {
		if e.Action == a {
			out = append(out, span{e.Addr, e.Size})
		}
	}
	return out
}

func (g *guided) Take(align, bytes int64) (uint64, int64, bool) {
	if len(g.want) > 0 && g.want[0].size == bytes {
		at := g.want[0].addr
		g.want = g.want[1:]
		if g.Place(at, bytes) {
			return at, bytes, true
		}
	}
	return g.Device.Take(align, bytes)
}

func TestReplayingARealTraceGivesTheRecordedAddresses(t *testing.T) {
	total := 0
	for _, id := range caseIDs {
		t.Run(id, func(t *testing.T) {
			s, _ := readCase(t, id)
			same, all := replay(t, s, 0)
			total += all
			if same != all || all == 0 {
				t.Errorf("%d of %d allocations got their recorded address", same, all)
			}
		})
	}
	t.Logf("%d recorded allocations", total)
}

func TestReplayingAMadeTraceGivesTheRecordedAddresses(t *testing.T) {
	for _, shape := range shapes {
		s, err := Read(bytes.NewReader(made(t, shape)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		same, all := replay(t, s, 0)
		// A trace that was cut does not tell the size of a block that is freed
		// in it but was allocated before; then what follows may lie elsewhere.
		if complete := shape.Keep == 0; complete && same != all || all == 0 || same*10 < all*9 {
			t.Errorf("%+v: %d of %d allocations got their recorded address", shape, same, all)
		}
	}
}
