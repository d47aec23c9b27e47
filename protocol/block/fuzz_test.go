package block_test

import (
	"errors"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
)

// FuzzPayload gives the decoder payloads whose checksum is right, as an
// attacker's would be. Whatever decodes must come back the same once encoded.
func FuzzPayload(f *testing.F) {
	for _, devices := range []int{1, 2} {
		strings := new(event.Strings)
		enc := block.NewEncoder(strings, block.Options{})
		synthetic.Generate(synthetic.Options{Events: 10, Layers: 2, Devices: devices, Dynamic: true}, strings,
			event.SinkFunc(func(e *event.Event) { enc.Append(e) }))
		b := enc.Flush(nil)
		h, err := block.ParseHeader(b)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[block.HeaderSize:], h.Events, h.Strings, h.StringBase)
	}
	f.Add([]byte{}, uint32(0), uint32(0), uint32(1))
	f.Add([]byte{16, 255, 255, 255, 255, 15}, uint32(65536), uint32(1<<18), uint32(1))
	f.Fuzz(func(t *testing.T, payload []byte, events, strings, base uint32) {
		frame := block.Make(nil, block.Header{Kind: block.Events, Events: events, Strings: strings, StringBase: base}, payload)
		d := block.NewDecoder()
		got, err := d.Decode(frame, nil)
		if err != nil {
			if got != nil {
				t.Fatal("events came with an error")
			}
			return
		}
		if uint32(len(got)) != events {
			t.Fatalf("%d events, the header says %d", len(got), events)
		}
		enc := block.NewEncoder(d.Strings(), block.Options{Events: max(1, len(got))})
		for i := range got {
			enc.Append(&got[i])
		}
		again, _ := decodeAll(t, enc.Flush(nil))
		requireSame(t, again, got)
	})
}

// FuzzFrame gives splitter and decoder any bytes.
func FuzzFrame(f *testing.F) {
	for _, deflate := range []bool{false, true} {
		strings := new(event.Strings)
		enc := block.NewEncoder(strings, block.Options{Deflate: deflate})
		synthetic.Generate(synthetic.Options{Events: 10, Layers: 2}, strings, event.SinkFunc(func(e *event.Event) { enc.Append(e) }))
		f.Add(enc.Flush(nil))
	}
	f.Add([]byte("TDLB"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		d := block.NewDecoder()
		var into []event.Event
		for len(b) > 0 {
			frame, n, err := block.Next(b)
			if err != nil {
				return
			}
			into, _ = d.Decode(frame, into[:0])
			b = b[n:]
		}
	})
}

// TestBadPayloadsAreRefused breaks one rule of the format at a time.
func TestBadPayloadsAreRefused(t *testing.T) {
	strings := new(event.Strings)
	enc := block.NewEncoder(strings, block.Options{})
	enc.Append(&event.Event{Kind: event.Free, Time: 5, Size: 3, Op: strings.ID("x")})
	good := enc.Flush(nil)
	h, err := block.ParseHeader(good)
	if err != nil {
		t.Fatal(err)
	}
	payload := good[block.HeaderSize:]
	if _, err := block.NewDecoder().Decode(block.Make(nil, h, payload), nil); err != nil {
		t.Fatalf("the sound one: %v", err)
	}
	for name, edit := range map[string]func(h *block.Header, p []byte) []byte{
		"one event more":    func(h *block.Header, p []byte) []byte { h.Events++; return p },
		"one event less":    func(h *block.Header, p []byte) []byte { h.Events--; return p },
		"too many events":   func(h *block.Header, p []byte) []byte { h.Events = block.MaxEvents + 1; return p },
		"too many strings":  func(h *block.Header, p []byte) []byte { h.Strings = block.MaxStrings + 1; return p },
		"more strings":      func(h *block.Header, p []byte) []byte { h.Strings++; return p },
		"a table too long":  func(h *block.Header, p []byte) []byte { h.StringBase = block.MaxTable; return p },
		"unknown flag":      func(h *block.Header, p []byte) []byte { h.Flags = 2; return p },
		"sequence overflow": func(h *block.Header, p []byte) []byte { h.First = 1<<64 - 1; h.Events = 2; return p },
		"empty payload":     func(_ *block.Header, _ []byte) []byte { return nil },
		"cut payload":       func(_ *block.Header, p []byte) []byte { return p[:len(p)-1] },
		"unknown model":     func(_ *block.Header, p []byte) []byte { p[20] = 9; return p },
	} {
		hh := h
		p := edit(&hh, append([]byte(nil), payload...))
		if _, err := block.NewDecoder().Decode(block.Make(nil, hh, p), nil); !errors.Is(err, block.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
}

func TestVersionsAreNamed(t *testing.T) {
	b := block.Make(nil, block.Header{Kind: block.Events}, nil)
	b[4] = 3
	sum := block.Checksum(b[:56])
	b[56], b[57], b[58], b[59] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
	_, _, err := block.Next(b)
	const want = "newer version: the block has version 3, this reader knows up to 1; open it with a newer tideline"
	if !errors.Is(err, block.ErrVersion) || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
