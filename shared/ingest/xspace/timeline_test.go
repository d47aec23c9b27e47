package xspace

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/ingest/wire"
	"tideline/shared/store"
)

func TestTheTimelinesOfRealProfilesReachTheirPeaks(t *testing.T) {
	for _, id := range caseIDs {
		s, _ := readCase(t, id)
		strs := &event.Strings{}
		tl := store.New(strs)
		s.Emit(strs, event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) }))
		if tl.Skipped() != 0 || !tl.End().Ended {
			t.Errorf("%s: %d events skipped", id, tl.Skipped())
		}
		windows := s.Windows()
		for _, p := range tl.Pools() {
			for _, w := range windows {
				if w.Allocator != p.Name {
					continue
				}
				first, last := tl.Span()
				if high := p.HighestInUse(first, last+1); high != w.Peak.InUse || p.Now().InUse != w.Last || p.Limit != w.Capacity {
					t.Errorf("%s %s: at most %d and %d at the end of %d, want %d, %d, %d",
						id, p.Name, high, p.Now().InUse, p.Limit, w.Peak.InUse, w.Last, w.Capacity)
				}
			}
		}
		if n := len(tl.Tracks()); n == 0 {
			t.Errorf("%s: no transfers", id)
		}
	}
}

func field(n int, b []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(n<<3|2))
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

func number(n int, v int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3)), uint64(v))
}

func double(n int, f float64) []byte {
	return binary.LittleEndian.AppendUint64(binary.AppendUvarint(nil, uint64(n<<3|1)), math.Float64bits(f))
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func meta(n int, id int64, name string) []byte {
	return field(n, join(number(1, id), field(2, join(number(1, id), field(2, []byte(name))))))
}

// small is a profile whose metadata stand behind the lines, whose numbers come
// as every type that occurs, and whose texts are references.
func small() []byte {
	stats := join(
		field(4, join(number(1, 1), number(7, 20))),              // allocator_name by reference
		field(4, join(number(1, 2), number(4, 1000))),            // bytes_allocated
		field(4, join(number(1, 3), double(2, 0.25))),            // fragmentation
		field(4, join(number(1, 4), field(5, []byte("256")))),    // allocation_bytes as text
		field(4, join(number(1, 5), number(3, 200))),             // requested_bytes, unsigned
		field(4, join(number(1, 6), number(4, 4096))),            // addr
		field(4, join(number(1, 7), number(4, 500))),             // bytes_available
		field(4, join(number(1, 8), field(5, []byte("(null)")))), // tf_op
	)
	line := join(number(1, -559038737), field(2, []byte("thread")), number(3, 10), field(4, join(number(1, 1), number(2, 7), stats)))
	host := join(field(2, []byte("/host:CPU")), field(3, line), meta(4, 1, "MemoryAllocation"),
		meta(5, 1, "allocator_name"), meta(5, 2, "bytes_allocated"), meta(5, 3, "fragmentation"), meta(5, 4, "allocation_bytes"),
		meta(5, 5, "requested_bytes"), meta(5, 6, "addr"), meta(5, 7, "bytes_available"), meta(5, 8, "tf_op"), meta(5, 20, "GPU_0_bfc"))
	step := join(field(2, []byte("Steps")), field(4, join(number(1, 1), number(2, 0), number(3, 5000))))
	ops := join(field(2, []byte("XLA Ops")), field(4, join(number(1, 2), number(2, 100), number(3, 50))))
	device := join(field(2, []byte("/device:GPU:0")), field(3, step), field(3, ops), meta(4, 1, "0"), meta(4, 2, "fusion"))
	return join(field(1, host), field(1, device), field(4, []byte("worker")), field(3, []byte("a warning")))
}

func TestMetadataBehindLinesAndEveryTypeOfNumber(t *testing.T) {
	s, err := Decode(small())
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Memory) != 1 || len(s.Spans) != 2 || len(s.Hosts) != 1 || len(s.Warnings) != 1 {
		t.Fatalf("%+v", s)
	}
	m := s.Memory[0]
	if s.Text(m.Allocator) != "GPU_0_bfc" || m.InUse != 1000 || m.Fragmentation != 0.25 || m.Allocated != 256 || m.Requested != 200 ||
		m.Address != 4096 || m.Available != 500 || m.Op != 0 || m.Time != 10_007 || m.Group != -1 {
		t.Errorf("%+v", m)
	}
	strs := &event.Strings{}
	tl := store.New(strs)
	s.Emit(strs, event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) }))
	if p := tl.Pools()[0]; tl.Skipped() != 0 || p.Now().InUse != 1000 || p.Allocs() != 2 {
		t.Errorf("%d skipped, %+v", tl.Skipped(), p.Now())
	}
	if _, ok := tl.FindStep(0); !ok {
		t.Error("no step")
	}
}

func TestWhatIsNoProfile(t *testing.T) {
	for name, b := range map[string]string{
		"empty": "", "text": "hello, world and more", "a claim of 4 GiB": "\x0a\xff\xff\xff\xff\x0f" + strings.Repeat("\x00", 34),
	} {
		if _, err := Read(strings.NewReader(b), 0); !errors.Is(err, ErrNoSpace) && !errors.Is(err, wire.ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := small()
	if s, err := Read(bytes.NewReader(b[:len(b)-4]), 0); err == nil || s == nil || len(s.Planes) != 2 {
		t.Errorf("cut: %v", err)
	}
}

func FuzzSpace(f *testing.F) {
	f.Add(small())
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := Decode(b)
		if s == nil {
			return
		}
		r := s.Reading()
		if j := r.AppendJSON(nil); !json.Valid(j) {
			t.Errorf("%s", j)
		}
		last := int64(0)
		s.Emit(&event.Strings{}, event.SinkFunc(func(e *event.Event) {
			if e.Time < last {
				t.Fatal("time goes backwards")
			}
			last = e.Time
		}))
	})
}

func BenchmarkDecode(b *testing.B) {
	s := small()
	// A profile of many lines: the planes repeated.
	var file []byte
	for range 2000 {
		file = append(file, s...)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(file); err != nil {
			b.Fatal(err)
		}
	}
}
