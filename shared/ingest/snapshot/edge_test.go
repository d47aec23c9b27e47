package snapshot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/ingest/pickle"
	"tideline/shared/ingest/snapshot/synthetic"
	"tideline/shared/ingest/unzip"
	"tideline/shared/store"
)

// d is a dict, l a list and tu a tuple of a pickle to be made.
type (
	d  []any
	l  []any
	tu []any
)

// dump writes a value in protocol 2 without a memo, as the C++ dumper does.
func dump(v any) []byte { return append(write([]byte("\x80\x02"), v), '.') }

func write(b []byte, v any) []byte {
	items := func(open, shut byte, list []any) []byte {
		if len(list) == 0 {
			return append(b, open)
		}
		b = append(b, open, '(')
		for _, x := range list {
			b = write(b, x)
		}
		return append(b, shut)
	}
	switch v := v.(type) {
	case d:
		return items('}', 'u', v)
	case l:
		return items(']', 'e', v)
	case tu:
		b = append(b, '(')
		for _, x := range v {
			b = write(b, x)
		}
		return append(b, 't')
	case string:
		b = append(b, 'X')
		b = binary.LittleEndian.AppendUint32(b, uint32(len(v)))
		return append(b, v...)
	case int:
		b = append(b, 0x8a, 8)
		return binary.LittleEndian.AppendUint64(b, uint64(v))
	case float64:
		b = append(b, 'G')
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	case bool:
		if v {
			return append(b, 0x88)
		}
		return append(b, 0x89)
	default:
		return append(b, 'N')
	}
}

func open(tb testing.TB, v any) *Snapshot {
	tb.Helper()
	s, err := Read(bytes.NewReader(dump(v)), Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func fact(tb testing.TB, s *Snapshot, name string) any {
	tb.Helper()
	r := s.Reading()
	var m map[string]any
	if err := json.Unmarshal(r.AppendJSON(nil), &m); err != nil {
		tb.Fatal(err)
	}
	v, ok := m[name]
	if !ok {
		tb.Errorf("no fact %s", name)
	}
	return v
}

func frame(name string) d { return d{"name", name, "filename", "/srv/" + name + ".py", "line", 3} }

// TestFilesOf2020AreABareListWithoutRequestsOrAddresses.
func TestFilesOf2020AreABareListWithoutRequestsOrAddresses(t *testing.T) {
	s := open(t, l{d{
		"device", 1, "address", 1 << 46, "total_size", 2097152, "allocated_size", 1536, "active_size", 2048, "segment_type", "small",
		"blocks",
		l{
			d{"size", 1024, "state", "active_allocated"},
			d{"size", 512, "state", "active_awaiting_free"},
			d{"size", 512, "state", "active_allocated"},
			d{"size", 2095104, "state", "inactive"},
		},
	}})
	var at []uint64
	s.Blocks(&s.Segments()[0], func(b *Block) { at = append(at, b.Address-1<<46) })
	if fmt.Sprint(at) != "[0 1024 1536 2048]" || s.Keys != nil {
		t.Errorf("blocks at %v, keys %v", at, s.Keys)
	}
	for name, want := range map[string]any{
		"device": 1.0, "requested_bytes": nil, "rounding_waste_bytes": nil, "inactive_blocks": 1.0, "trace_events": 0.0,
		"trace_first_time_us": nil, "top_level_keys": nil, "allocator_settings_keys": nil, "external_annotations": nil,
	} {
		if got := fact(t, s, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	tl := tell(t, s, true)
	if p := tl.Pools()[0]; p.Now().InUse != 2048 || p.Now().Reserved != 2097152 {
		t.Errorf("%+v", p.Now())
	}
}

// TestHistoryOfABlock: files of 1.13 to 2.0 keep a list, the newest entry first.
func TestHistoryOfABlock(t *testing.T) {
	s := open(t, d{"segments", l{d{
		"device", 0, "address", 4096, "total_size", 2097152, "allocated_size", 1024, "active_size", 1024, "stream", 0, "segment_type", "small",
		"blocks",
		l{
			d{"size", 1024, "state", "active_allocated", "history", l{
				d{"addr", 4096, "real_size", 900, "frames", l{frame("newest")}}, d{"addr", 4096, "real_size", 1000, "frames", l{frame("older")}},
			}},
			d{"size", 2096128, "state", "inactive", "history", l{}},
		},
	}}, "device_traces", l{}})
	var b Block
	s.Blocks(&s.Segments()[0], func(x *Block) {
		if x.State != Inactive {
			b = *x
		}
	})
	if b.Requested != 900 || s.Blame(b.Stack) != "newest newest.py:3" {
		t.Errorf("%+v, %q", b, s.Blame(b.Stack))
	}
	if got := fact(t, s, "requested_bytes"); got != 900.0 {
		t.Errorf("requested %v", got)
	}
}

func segment(device, addr, total, active int, blocks ...any) d {
	return d{
		"device", device, "address", addr, "total_size", total, "allocated_size", active, "active_size", active,
		"requested_size", active, "stream", 0, "segment_type", "large", "segment_pool_id",
		tu{0, 0},
		"is_expandable", false,
		"frames",
		l{},
		"blocks", l(blocks),
	}
}

func block(addr, size int, state string) d {
	return d{"address", addr, "size", size, "requested_size", size, "state", state, "frames", l{frame("made")}}
}

func ev(action string, addr, size, time int, more ...any) d {
	return append(d{"action", action, "addr", addr, "size", size, "stream", 7, "time_us", time, "frames", l{frame(action), frame("caller")}}, more...)
}

const mib = 1 << 20

// everything has two devices, a failure, old and new frees, pools and marks.
func everything() d {
	pool := segment(1, 1<<40, 20*mib, 0, block(1<<40, 20*mib, "inactive"))
	pool[17] = tu{0, 1}
	return d{
		"segments",
		l{segment(0, 1<<30, 20*mib, 4*mib, block(1<<30, 4*mib, "active_allocated"), block(1<<30+4*mib, 16*mib, "inactive")), pool},
		"device_traces",
		l{
			l{
				ev("free", 1<<30+4*mib, mib, 1000), ev("segment_alloc", 1<<31, 2*mib, 1002), ev("alloc", 1<<31, 700, 1003, "user_metadata", "step 3", "pool_id", tu{0, 0}),
				d{"action", "oom", "device_free", 12345, "size", 64 * mib, "stream", 7, "time_us", 1004, "frames", l{frame("big")}},
				ev("free_requested", 1<<31, 700, 1005), ev("free_completed", 1<<31, 700, 1007), ev("segment_free", 1<<31, 2*mib, 1008),
				d{"action", "snapshot", "addr", 0, "size", 0, "stream", 0, "time_us", 1009},
				ev("levitate", 1, 1, 1010),
			},
			l{ev("alloc", 1<<40, 5, 1001), ev("free_requested", 1<<40, 5, 1006), ev("free_completed", 1<<40, 5, 1006)},
			l{},
		},
		"allocator_settings",
		d{"PYTORCH_CUDA_ALLOC_CONF", "", "garbage_collection_threshold", 0.5, "expandable_segments", false, "roundup_power2_divisions", d{"1", 0, "2", 4}},
		"external_annotations",
		l{d{"stage", "START", "name", "Optimizer.step", "device", 0, "time_us", 1002}},
	}
}

func TestEverythingThatATraceCanTell(t *testing.T) {
	s := open(t, everything())
	if got := fmt.Sprint(fact(t, s, "trace_actions")); got != "map[alloc:2 free:1 free_completed:2 free_requested:2 oom:1 segment_alloc:1 segment_free:1 snapshot:1 unknown:1]" {
		t.Error(got)
	}
	if fact(t, s, "device") != nil || len(fact(t, s, "devices").([]any)) != 2 || fact(t, s, "private_pool_bytes") != 20.0*mib {
		t.Errorf("device %v, devices %v, private %v", fact(t, s, "device"), fact(t, s, "devices"), fact(t, s, "private_pool_bytes"))
	}
	if v, _ := s.Setting("roundup_power2_divisions.2"); v != "4" {
		t.Errorf("%+v", s.Settings)
	}
	if e := s.Event(s.Traces[0], 2); s.Meta(e) != "step 3" || s.Stream(e.Stream) != 7 {
		t.Errorf("%+v", e)
	}
	tl := tell(t, s, true)
	checkEnd(t, s, tl)
	ooms := tl.OOMs()
	if len(ooms) != 1 || ooms[0].Requested != 64*mib || tl.Text(ooms[0].Op) != "big big.py:3" {
		t.Fatalf("%+v", ooms)
	}
	m, err := event.ParseChunkMap(tl.Text(ooms[0].ChunkMap))
	pool, inUse, _, largest := m.Totals()
	if err != nil || pool != 22*mib || inUse != 4*mib+1024 || largest != 16*mib {
		t.Errorf("%v %d %d %d", err, pool, inUse, largest)
	}
	var notes []string
	for _, n := range tl.Notes() {
		notes = append(notes, tl.Text(n.Text))
	}
	if got := strings.Join(notes, "; "); !strings.Contains(got, "Optimizer.step begins") || !strings.Contains(got, "12345 free") || !strings.Contains(got, "snapshot taken") {
		t.Error(got)
	}
	if a := tl.Pools()[0].Alloc(0); tl.Text(a.Tensor) != "" && !strings.HasPrefix(tl.Text(a.Tensor), "made /srv/made.py:3") {
		t.Errorf("%q", tl.Text(a.Tensor))
	}
}

// TestExpandablePagesComeAndGoInPart: what is left of a run of pages stays.
func TestExpandablePagesComeAndGoInPart(t *testing.T) {
	g := segment(0, 1<<30, 4*mib, 0, block(1<<30, 4*mib, "inactive"))
	g[19] = true
	s := open(t, d{"segments", l{g}, "device_traces", l{l{
		ev("segment_map", 1<<30+4*mib, 4*mib, 1), ev("segment_unmap", 1<<30+2*mib, 6*mib, 2), ev("segment_map", 1<<30+2*mib, 2*mib, 3),
	}}})
	tl := tell(t, s, false)
	checkEnd(t, s, tl)
	if high := tl.Pools()[0].HighestReserved(0, 1<<40); high != 8*mib {
		t.Errorf("highest %d, want 8 MiB", high)
	}
}

func TestACutFileGivesWhatCameBefore(t *testing.T) {
	file := made(t, synthetic.Shape{Requests: 2000, Live: 100})
	s, err := Read(bytes.NewReader(file[:len(file)*9/10]), Options{})
	if !errors.Is(err, pickle.ErrTruncated) || s == nil {
		t.Fatalf("%v %v", s, err)
	}
	if n := s.Traces[0].Len(); n < 2000 || len(s.Segments()) == 0 {
		t.Errorf("%d events, %d segments", n, len(s.Segments()))
	}
	strs := &event.Strings{}
	tl := store.New(strs)
	s.Emit(strs, event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) }))
	said := false
	for _, n := range tl.Notes() {
		said = said || strings.Contains(tl.Text(n.Text), "The file is cut")
	}
	if !said || tl.Pools()[0].Allocs() < 800 {
		t.Errorf("said %v, %d allocations", said, tl.Pools()[0].Allocs())
	}
}

func TestWhatIsNoSnapshotSaysWhatItIs(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{d{"state_dict", d{}, "epoch", 3}, `["state_dict" "epoch"]`}, {l{1, 2}, "a list"}, {"hello", "a text"}, {tu{1, 2}, "a dict"}, {7, "a single value"},
	} {
		_, err := Read(bytes.NewReader(dump(c.v)), Options{})
		if !errors.Is(err, ErrNoSnapshot) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.v, err)
		}
	}
	_, err := Read(strings.NewReader("\x80\x02cos\nsystem\nU\x02ls\x85R."), Options{})
	if !pickle.Refused(err) || !strings.Contains(err.Error(), "REDUCE on os.system refused") {
		t.Error(err)
	}
}

func TestABombStopsAtTheLimit(t *testing.T) {
	bomb := zip(t, append([]byte("\x80\x02"), bytes.Repeat([]byte("N0"), 1<<22)...))
	_, err := Read(bytes.NewReader(bomb), Options{Unzip: 1 << 20})
	var e *unzip.LimitError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("%d bytes of gzip: %v", len(bomb), err)
	}
	_, err = Read(bytes.NewReader(zip(t, bytes.Repeat([]byte("]"), 1<<22))), Options{Pickle: pickle.Limits{Memory: 1 << 20}})
	var m *pickle.LimitError
	if !errors.As(err, &m) || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Error(err)
	}
}

// TestMemoryIsBounded: a million events cost what the package comment says.
func TestMemoryIsBounded(t *testing.T) {
	file := made(t, synthetic.Shape{Requests: 100_000})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := Read(bytes.NewReader(file), Options{})
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	n := s.Traces[0].Len()
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > int64(n)*60 {
		t.Errorf("%d bytes kept for %d events", kept, n)
	}
	runtime.KeepAlive(s)
}

func FuzzSnapshot(f *testing.F) {
	f.Add(dump(everything()))
	f.Add(made(f, synthetic.Shape{Requests: 60, Live: 10, Stacks: 3, Depth: 2}))
	f.Add(made(f, synthetic.Shape{Requests: 60, Live: 10, Stacks: 3, Depth: 2, Protocol: 2, Settings: "expandable_segments:True"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, _ := Read(bytes.NewReader(b), Options{Unzip: 1 << 20, Pickle: pickle.Limits{Memory: 8 << 20}})
		if s == nil {
			return
		}
		r := s.Reading()
		if j := r.AppendJSON(nil); !json.Valid(j) {
			t.Errorf("%s", j)
		}
		strs := &event.Strings{}
		last := int64(0)
		s.Emit(strs, event.SinkFunc(func(e *event.Event) {
			if e.Time < last {
				t.Fatal("time goes backwards")
			}
			last = e.Time
		}))
	})
}
