package block_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
)

// wild returns an event in which every field may hold anything, often small
// or the same as before.
func wild(r *rand.Rand, prev *event.Event, ids int) event.Event {
	pick := func(old, fresh uint64) uint64 {
		switch r.IntN(6) {
		case 0, 1:
			return old
		case 2:
			return 0
		case 3:
			return old + 1
		case 4:
			return r.Uint64N(1 << 20)
		}
		return fresh
	}
	e := *prev
	e.Time = int64(pick(uint64(e.Time), r.Uint64()))
	e.Address = pick(e.Address, r.Uint64())
	e.Size = int64(pick(uint64(e.Size), r.Uint64()))
	e.Requested = int64(pick(uint64(e.Requested), r.Uint64()))
	e.ID = pick(e.ID, r.Uint64())
	e.Op = event.StringID(pick(uint64(e.Op), r.Uint64N(uint64(ids))))
	e.Tensor = event.StringID(pick(uint64(e.Tensor), r.Uint64()))
	e.Text = event.StringID(pick(uint64(e.Text), r.Uint64()))
	e.Step = int32(pick(uint64(e.Step), r.Uint64()))
	e.Device = event.DeviceID(pick(uint64(e.Device), r.Uint64()))
	e.Peer = event.DeviceID(pick(uint64(e.Peer), r.Uint64()))
	e.Allocator = event.AllocatorID(pick(uint64(e.Allocator), r.Uint64()))
	e.Kind = event.Kind(pick(uint64(event.Alloc)+r.Uint64N(3), r.Uint64()))
	e.Category = event.Category(pick(uint64(e.Category), r.Uint64()))
	e.Stream = event.StreamID(pick(uint64(e.Stream), r.Uint64()))
	e.Cause = uint8(pick(uint64(e.Cause), r.Uint64()))
	e.Flags = event.Flags(pick(uint64(e.Flags), r.Uint64()))
	return e
}

func decodeAll(tb testing.TB, b []byte) ([]event.Event, *event.Strings) {
	tb.Helper()
	d := block.NewDecoder()
	dirty := event.Event{
		Time: 1, Address: 2, Size: 3, Requested: 4, ID: 5, Op: 6, Tensor: 7, Text: 8, Step: 9, Device: 10,
		Peer: 11, Allocator: 12, Kind: 13, Category: 14, Stream: 15, Cause: 16, Flags: 17,
	}
	out := slices.Repeat([]event.Event{dirty}, 5000)[:0] // what was in the memory must not matter
	for len(b) > 0 {
		frame, n, err := block.Next(b)
		if err != nil {
			tb.Fatalf("next: %v", err)
		}
		if out, err = d.Decode(frame, out); err != nil {
			tb.Fatalf("decode: %v", err)
		}
		b = b[n:]
	}
	return out, d.Strings()
}

func requireSame(tb testing.TB, got, want []event.Event) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Fatalf("%d events came back of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			tb.Fatalf("event %d came back as\n%+v\nnot\n%+v", i, got[i], want[i])
		}
	}
}

func TestAnyEventComesBackAsItWas(t *testing.T) {
	for seed := range uint64(40) {
		for _, deflate := range []bool{false, true} {
			r := rand.New(rand.NewPCG(seed, 7))
			var table event.Strings
			enc := block.NewEncoder(&table, block.Options{Deflate: deflate, Events: 1 + r.IntN(500)})
			var b []byte
			var want []event.Event
			var prev event.Event
			for range 2000 {
				prev = wild(r, &prev, 50)
				want = append(want, prev)
				if r.IntN(10) == 0 {
					table.ID(fmt.Sprint("string ", r.IntN(1000)))
				}
				if enc.Append(&prev) && r.IntN(4) > 0 { // sometimes ignored
					b = enc.Flush(b)
				}
			}
			b = enc.Flush(b)
			got, back := decodeAll(t, b)
			requireSame(t, got, want)
			if back.Len() != table.Len() {
				t.Fatalf("seed %d: %d strings came back of %d", seed, back.Len(), table.Len())
			}
			for i := range table.Len() {
				if id := event.StringID(i); back.At(id) != table.At(id) {
					t.Fatalf("seed %d: string %d came back as %q, not %q", seed, i, back.At(id), table.At(id))
				}
			}
		}
	}
}

func TestSequenceNumbersRunOnAcrossBlocks(t *testing.T) {
	var table event.Strings
	enc := block.NewEncoder(&table, block.Options{First: 100, Events: 10})
	var b []byte
	for i := range 25 {
		if enc.Append(&event.Event{Kind: event.Sample, Time: int64(i)}) {
			b = enc.Flush(b)
		}
	}
	enc.Skip(5)
	enc.Append(&event.Event{Kind: event.End, Time: 30})
	b = enc.Flush(b)
	var firsts []uint64
	for len(b) > 0 {
		h, err := block.ParseHeader(b)
		if err != nil {
			t.Fatal(err)
		}
		firsts = append(firsts, h.First)
		b = b[h.Size():]
	}
	if got, want := fmt.Sprint(firsts), "[100 110 120 130]"; got != want {
		t.Errorf("blocks begin at %s, want %s", got, want)
	}
}

func TestLateReaderNeedsTheStringsFirst(t *testing.T) {
	var table event.Strings
	enc := block.NewEncoder(&table, block.Options{})
	enc.Append(&event.Event{Kind: event.OpBegin, Op: table.ID("first")})
	enc.Flush(nil)
	second := table.ID("second")
	enc.Append(&event.Event{Kind: event.OpBegin, Op: second})
	late := enc.Flush(nil)

	d := block.NewDecoder()
	if _, err := d.Decode(late, nil); !errors.Is(err, block.ErrStringGap) {
		t.Fatalf("without the table: %v, want ErrStringGap", err)
	}
	if _, err := d.Decode(block.AppendStrings(nil, &table, 1, table.Len(), 1, 0), nil); err != nil {
		t.Fatal(err)
	}
	events, err := d.Decode(late, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Strings().At(events[0].Op); got != "second" {
		t.Errorf("the op reads as %q", got)
	}
}

func TestManyAndLongStringsGetBlocksOfTheirOwn(t *testing.T) {
	var table event.Strings
	for i := range block.MaxStrings + 1000 {
		table.ID(fmt.Sprint("name ", i))
	}
	long := table.ID(strings.Repeat("x", block.MaxString+5))
	enc := block.NewEncoder(&table, block.Options{})
	want := []event.Event{{Kind: event.Log, Text: long}}
	enc.Append(&want[0])
	b := enc.Flush(nil)
	for rest := b; len(rest) > 0; {
		h, err := block.ParseHeader(rest)
		if err != nil {
			t.Fatal(err)
		}
		rest = rest[h.Size():]
	}
	got, back := decodeAll(t, b)
	requireSame(t, got, want)
	if back.Len() != table.Len() || back.At(5000) != table.At(5000) {
		t.Errorf("%d strings came back of %d", back.Len(), table.Len())
	}
	if n := len(back.At(long)); n != block.MaxString {
		t.Errorf("the long string has %d bytes, should be cut to %d", n, block.MaxString)
	}
}

func TestFlushWithNothingNewWritesNothing(t *testing.T) {
	var table event.Strings
	enc := block.NewEncoder(&table, block.Options{})
	if b := enc.Flush(nil); len(b) != 0 {
		t.Errorf("%d bytes for no event", len(b))
	}
	table.ID("new")
	b := enc.Flush(nil)
	if h, err := block.ParseHeader(b); err != nil || h.Kind != block.Strings || h.Strings != 1 {
		t.Errorf("a new string alone gave %+v, %v", h, err)
	}
	if b := enc.Flush(nil); len(b) != 0 {
		t.Errorf("%d bytes for the same string again", len(b))
	}
}

func TestEncodingAndDecodingAllocateNothingPerEvent(t *testing.T) {
	events, table := collect(synthetic.Options{Events: 20_000, Dynamic: true})
	enc := block.NewEncoder(table, block.Options{})
	d := block.NewDecoder()
	out := make([]byte, 0, 1<<20)
	into := make([]event.Event, 0, block.MaxEvents)
	for _, e := range events {
		enc.Append(&e)
	}
	out = enc.Flush(out) // with the strings
	if _, err := d.Decode(out, into); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(5, func() {
		for i := range events {
			enc.Append(&events[i])
		}
		out = enc.Flush(out[:0])
		if _, err := d.Decode(out, into); err != nil {
			t.Fatal(err)
		}
	})
	if n > 20 {
		t.Errorf("%.0f allocations for %d events", n, len(events))
	}
}

func TestSizeGoalsHold(t *testing.T) {
	for _, c := range []struct {
		name    string
		dynamic bool
		deflate bool
		atMost  float64 // bytes an event
	}{
		{"steady", false, false, 4.5},
		{"steady, deflated", false, true, 2.5},
		{"dynamic", true, false, 5},
		{"dynamic, deflated", true, true, 3},
	} {
		events, table := collect(synthetic.Options{Events: 100_000, Dynamic: c.dynamic})
		enc := block.NewEncoder(table, block.Options{Deflate: c.deflate})
		var b []byte
		for i := range events {
			if enc.Append(&events[i]) {
				b = enc.Flush(b)
			}
		}
		b = enc.Flush(b)
		if got := float64(len(b)) / float64(len(events)); got > c.atMost {
			t.Errorf("%s: %.2f bytes an event, at most %.2f meant", c.name, got, c.atMost)
		}
	}
}
