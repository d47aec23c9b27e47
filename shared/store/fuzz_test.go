package store

import (
	"encoding/binary"
	"testing"

	"tideline/protocol/event"
)

// eventsOf makes events of any bytes, near enough to each other that they
// meet: few devices, addresses and ids.
func eventsOf(data []byte) []event.Event {
	var out []event.Event
	for ; len(data) >= 16 && len(out) < 4000; data = data[16:] {
		e := event.Event{
			Kind: event.Kind(data[0] % uint8(event.NumKinds+2)), Device: event.DeviceID(data[1] & 3),
			Category: event.Category(data[2]), Stream: event.StreamID(data[3] & 3), Cause: data[4], Flags: event.Flags(data[5]),
			Time: int64(int16(binary.LittleEndian.Uint16(data[6:]))), Address: uint64(data[8]) << 12, ID: uint64(data[9] & 15),
			Size: int64(int16(binary.LittleEndian.Uint16(data[10:]))) << 4, Requested: int64(data[12]), Step: int32(int8(data[13])),
			Op: event.StringID(data[14] & 7), Text: event.StringID(data[14] & 7), Tensor: event.StringID(data[15] & 7),
		}
		switch data[15] >> 4 {
		case 0:
			e.Size <<= 48
		case 1:
			e.Time <<= 48
		case 2:
			e.Address = ^e.Address
		case 3:
			e.Device = event.DeviceID(binary.LittleEndian.Uint16(data[6:]))
		}
		out = append(out, e)
	}
	return out
}

// FuzzAppend feeds nonsense: nothing may panic, and what is told must be
// consistent with itself.
func FuzzAppend(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"))
	seed := make([]byte, 16*400)
	x := uint64(1)
	for i := range seed {
		x = x*6364136223846793005 + 1442695040888963407
		seed[i] = byte(x >> 56)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		events := eventsOf(data)
		tl := New(nil)
		tl.Strings().Append("name=\"x\nbroken")
		tl.Append(events)
		Ask(t, tl)
	})
}

// Ask puts every question to a timeline.
func Ask(t *testing.T, tl *Timeline) {
	t.Helper()
	first, last := tl.Span()
	mid := first + (last-first)/2
	var scratch []int32
	for _, w := range []Window{{first, last + 1, 7}, {mid, mid + 1, 5}, {first - 1, mid + 1, 3}, {-1 << 62, 1 << 62, 9}, {-1 << 63, 1<<63 - 1, 2}} {
		for i, p := range tl.Pools() {
			b := make([]MemoryBucket, w.W)
			p.Buckets(w, b)
			for _, x := range b {
				if w.valid() && x.ByCategory.Total() != x.Max {
					t.Fatalf("pool %d: categories sum to %d of %d", i, x.ByCategory.Total(), x.Max)
				}
			}
			live := p.LiveAt(nil, mid)
			for _, k := range []SortKey{BySize, ByAge, ByAddress, ByWaste} {
				p.Sort(live, k)
			}
			p.ChunkMapAt(mid)
			p.Peak(w.T0, w.T1, 3)
			p.Overlapping(nil, w.T0, w.T1, 10)
			p.AllocAt(p.LayoutSize()/2, mid, &scratch)
			var tile Tile
			p.TileOver(&tile, w.T0, w.T1)
			if sum := p.At(last).InUse; sum != p.Now().InUse {
				t.Fatalf("pool %d: %d in use at the end, %d now", i, sum, p.Now().InUse)
			}
		}
		for _, k := range tl.Tracks() {
			scratch = k.Buckets(w, make([]SpanBucket, w.W), scratch)
			k.Overlapping(nil, w.T0, w.T1, 0)
			k.Sum(w.T0, w.T1)
		}
		for _, s := range tl.SeriesList() {
			s.Buckets(w, make([]SeriesBucket, w.W))
		}
	}
	tl.StepAt(mid)
	SameInstant(tl, tl, mid)
	Compare(tl, tl, 3)
	for from, done := (Cursor{}), false; !done; {
		_, from, done = tl.Search(Query{MinBytes: 1, Limit: 50}, from)
	}
}
