package draw

import (
	"encoding/binary"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// FuzzFrame draws timelines of nonsense in views of nonsense: nothing may
// panic.
func FuzzFrame(f *testing.F) {
	seed := make([]byte, 32*200)
	x := uint64(1)
	for i := range seed {
		x = x*6364136223846793005 + 1442695040888963407
		seed[i] = byte(x >> 56)
	}
	f.Add(seed, int64(0), int64(1000))
	f.Add(seed, int64(-1<<62), int64(1<<62))
	f.Add([]byte{}, int64(5), int64(6))
	f.Fuzz(func(t *testing.T, data []byte, t0, t1 int64) {
		tl := store.New(nil)
		var es []event.Event
		for ; len(data) >= 32 && len(es) < 1000; data = data[32:] {
			n := func(i int) int64 { return int64(binary.LittleEndian.Uint32(data[i:])) }
			es = append(es, event.Event{
				Kind: event.Kind(data[0] % uint8(event.NumKinds)), Device: event.DeviceID(data[1] & 1), Category: event.Category(data[2]),
				Cause: data[3], Stream: event.StreamID(data[4]), Flags: event.Flags(data[5]), Peer: event.DeviceID(data[6] & 1),
				Time: n(8) >> (data[7] & 31), Size: n(12) << (data[7] >> 3), Address: uint64(n(16)) << (data[6] & 31), Requested: n(20), ID: uint64(data[24] & 7),
				Step: int32(data[25]), Op: event.StringID(data[26] & 3),
			})
		}
		tl.Append(es)
		v := &View{T0: t0, T1: t1, W: 37, H: 200, DPR: 1, Theme: Light(), Lanes: Layout(tl, 200, 2, 1), Base: tl}
		v.Lanes = append(v.Lanes, Lane{Kind: MinimapLane, Y: 180, H: 20}, Lane{Kind: MemoryLane, Pool: 99, Y: 190, H: 5}, Lane{Kind: AddressLane, Pool: 1, Low: 5, High: 77, Y: -4, H: 9})
		img := NewImage(v.W, v.H)
		var r Renderer
		r.Frame(img, tl, v)
		v.T0, v.T1 = tl.Span()
		v.T1++
		r.Frame(img, tl, v)
		for y := 0; y < v.H; y += 3 {
			HitTest(tl, v, y%v.W, y)
		}
		TimeTicks(v.T0, v.T1, v.W, 10)
	})
}
