package eventhash_test

import (
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
)

// run hashes a small run whose events edit may change. Strings are interned in
// another order when shuffled.
func run(shuffled bool, edit func(i int, e *event.Event)) uint64 {
	var s event.Strings
	if shuffled {
		s.ID("c")
		s.ID("b")
	}
	events := []event.Event{
		{Kind: event.RegionAdd, Address: 1 << 20, Size: 1 << 20, Requested: 4096, Step: -1},
		{Kind: event.Alloc, Address: 1 << 20, Size: 512, Requested: 400, Op: s.ID("a"), Tensor: s.ID("b"), Category: event.Activation},
		{Kind: event.OpBegin, Op: s.ID("a"), ID: 3},
		{Kind: event.TransferBegin, Peer: 1, Size: 400, ID: 9, Tensor: s.ID("c"), Cause: uint8(event.CauseInput)},
		{Kind: event.Free, Address: 1 << 20, Size: 512},
	}
	h := eventhash.New(&s)
	for i := range events {
		edit(i, &events[i])
		h.Emit(&events[i])
	}
	return h.Sum64()
}

func TestHashIgnoresTimesIDsAndNumbering(t *testing.T) {
	want := run(false, func(int, *event.Event) {})
	for name, got := range map[string]uint64{
		"times":     run(false, func(i int, e *event.Event) { e.Time = int64(i * 17) }),
		"ids":       run(false, func(i int, e *event.Event) { e.ID = uint64(i * 17) }),
		"numbering": run(true, func(int, *event.Event) {}),
		"ops":       run(false, func(i int, e *event.Event) { e.Size += int64(i % 3 / 2) }), // the OpBegin's
		"modelled":  run(false, func(_ int, e *event.Event) { e.Flags |= event.Modelled }),
	} {
		if got != want {
			t.Errorf("%s changed the hash", name)
		}
	}
}

func TestHashSeesEveryOtherField(t *testing.T) {
	seen := map[uint64]string{run(false, func(int, *event.Event) {}): "nothing"}
	edits := map[string]func(e *event.Event){
		"address":   func(e *event.Event) { e.Address += 256 },
		"size":      func(e *event.Event) { e.Size++ },
		"requested": func(e *event.Event) { e.Requested++ },
		"op":        func(e *event.Event) { e.Op++ },
		"tensor":    func(e *event.Event) { e.Tensor = 0 },
		"step":      func(e *event.Event) { e.Step++ },
		"device":    func(e *event.Event) { e.Device++ },
		"peer":      func(e *event.Event) { e.Peer++ },
		"allocator": func(e *event.Event) { e.Allocator++ },
		"kind":      func(e *event.Event) { e.Kind = event.Forward },
		"category":  func(e *event.Event) { e.Category++ },
		"stream":    func(e *event.Event) { e.Stream++ },
		"cause":     func(e *event.Event) { e.Cause++ },
		"pinned":    func(e *event.Event) { e.Flags ^= event.Pinned },
	}
	for name, edit := range edits {
		h := run(false, func(i int, e *event.Event) {
			if i == 1 {
				edit(e)
			}
		})
		if other, dup := seen[h]; dup {
			t.Errorf("changing %s gives the hash of changing %s", name, other)
		}
		seen[h] = name
	}
}

func TestHashIsFixed(t *testing.T) {
	const want = 0xc5ba64fe184dca3 // written into documents and compared between hosts
	if got := run(false, func(int, *event.Event) {}); got != want {
		t.Errorf("the hash is %#x, was %#x", got, uint64(want))
	}
}

func BenchmarkEmit(b *testing.B) {
	var s event.Strings
	h := eventhash.New(&s)
	e := event.Event{Kind: event.Alloc, Address: 1 << 20, Size: 512, Op: s.ID("op"), Tensor: s.ID("tensor")}
	b.ReportAllocs()
	for b.Loop() {
		h.Emit(&e)
	}
}
