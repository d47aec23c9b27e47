package torch_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/golden"
)

// TestRewindingASnapshotGivesTheEarlierState notes the state in the middle of a
// random life, and gets it from the end and the trace.
func TestRewindingASnapshotGivesTheEarlierState(t *testing.T) {
	for seed := range uint64(80) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		s, err := torch.ParseSettings([...]string{
			"", "expandable_segments:True", "max_split_size_mb:40", "roundup_power2_divisions:4",
		}[seed%4])
		if err != nil {
			t.Fatal(err)
		}
		h := torch.NewHistory(1 << 16)
		var p torch.Progress
		a := newAllocator(t, alloc.NewCard((200+rnd.Int64N(600))*mib), torch.Options{Settings: s, Tracer: h, Streams: &p})
		for i := range 4 { // so that every stream's pages are near to some that stay
			takeOn(t, a, torch.Request{Bytes: 1 + int64(i>>1)*2*mib, Stream: torch.Stream(i & 1)})
		}
		var live []uint64
		var want string
		cut := 0
		for step := range 300 {
			if step == 150 {
				want, cut = shape(a), len(h.Entries())
			}
			switch i := rnd.IntN(len(live) + 5); {
			case i < len(live):
				if rnd.IntN(4) == 0 {
					if err := a.RecordStream(live[i], 5); err != nil {
						t.Fatal(err)
					}
				}
				if err := a.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				live[i] = live[len(live)-1]
				live = live[:len(live)-1]
			case rnd.IntN(30) == 0:
				a.EmptyCache()
			case rnd.IntN(5) == 0:
				p.Step(5)
			default:
				b, ok := a.AllocateOn(torch.Request{Bytes: 1 + rnd.Int64N(1<<(1+rnd.IntN(26))), Stream: torch.Stream(rnd.IntN(2))})
				if ok {
					live = append(live, b.Address)
				}
			}
		}
		early, err := torch.Rewind(a.Snapshot(), h.Entries()[cut:], &s)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		b := newAllocator(t, alloc.NewCard(0), torch.Options{Settings: s})
		if err := b.Restore(early); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := shape(b); got != want {
			t.Fatalf("seed %d:\n%s\nwant\n%s", seed, got, want)
		}
	}
}

func TestATraceThatDoesNotFitIsRefused(t *testing.T) {
	const base = 1 << 33
	seg := []torch.SnapshotSegment{{Address: base, Total: 2 * mib, Blocks: []torch.SnapshotBlock{
		{Address: base, Size: 512, Requested: 100, State: torch.ActiveAllocated},
		{Address: base + 512, Size: 2*mib - 512},
	}}}
	entry := func(k torch.Action, addr uint64, size int64) torch.TraceEntry {
		return torch.TraceEntry{Action: k, Addr: addr, Size: size}
	}
	for _, c := range []struct {
		e    torch.TraceEntry
		want string
	}{
		{entry(torch.ActionAlloc, base, 100), ""},
		{entry(torch.ActionAlloc, base+512, 100), "not in use"},
		{entry(torch.ActionFreeCompleted, base, 100), "is in use"},
		{entry(torch.ActionFreeCompleted, base+512, 0), "so much"},
		{entry(torch.ActionFreeCompleted, base+512, 100), ""},
		{entry(torch.ActionFreeCompleted, base+512, 2*mib), "does not fit"},
		{entry(torch.ActionFreeCompleted, 512, 100), "does not fit"},
		{entry(torch.ActionFreeCompleted, base<<1, 100), "no segment"},
		{entry(torch.ActionFreeRequested, base, 100), "not waiting"},
		{entry(torch.ActionSegmentAlloc, base, 3), "no such segment"},
		{entry(torch.ActionSegmentAlloc, base, 2*mib), "no segment"},
		{entry(torch.ActionSegmentFree, base, 2*mib), "another segment"},
		{entry(torch.ActionSegmentFree, base, -2), "like that"},
		{entry(torch.ActionSegmentFree, base<<1, 20*mib), ""},
		{entry(torch.ActionOOM, 5, 5), ""},
		{entry(torch.Action(99), 5, 5), "unknown"},
	} {
		_, err := torch.Rewind(seg, []torch.TraceEntry{c.e}, &torch.Settings{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.e, err, c.want)
		}
	}
}

// scriptedDevice gives the segments of a recording.
type scriptedDevice struct {
	*torch.Device
	addrs []uint64
}

func (d *scriptedDevice) Take(_, bytes int64) (uint64, int64, bool) {
	if len(d.addrs) == 0 {
		return 0, 0, false
	}
	addr := d.addrs[0]
	d.addrs = d.addrs[1:]
	return addr, bytes, true
}

// TestRecordedSnapshotsAreReproduced rewinds real snapshots to the start of
// their traces and replays them: every allocation must get its address.
func TestRecordedSnapshotsAreReproduced(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(golden.Cases(t), "*torch-snapshot*"))
	if err != nil || len(dirs) == 0 {
		t.Fatal("no snapshots among the cases", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) { replaySnapshot(t, dir) })
	}
}

func replaySnapshot(t *testing.T, dir string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "snapshot.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := unpickle(raw)
	if err != nil {
		t.Fatal(err)
	}
	segments, trace := readSnapshot(t, v.(map[string]any))
	var s torch.Settings
	early, err := torch.Rewind(segments, trace, &s)
	if err != nil {
		t.Fatal(err)
	}
	d := &scriptedDevice{Device: torch.NewDevice(nil, 0)}
	for _, e := range trace {
		if e.Action == torch.ActionSegmentAlloc {
			d.addrs = append(d.addrs, e.Addr)
		}
	}
	a, err := torch.New(d, torch.Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Restore(early); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, e := range trace {
		switch e.Action {
		case torch.ActionAlloc:
			b, ok := a.AllocateOn(torch.Request{Bytes: e.Size, Stream: e.Stream})
			if !ok || b.Address != e.Addr {
				t.Fatalf("entry %d: %d bytes got %x, %v; recorded %x", i, e.Size, b.Address, ok, e.Addr)
			}
			n++
		case torch.ActionFreeRequested:
			if err := a.Free(e.Addr); err != nil {
				t.Fatalf("entry %d: %v", i, err)
			}
		default: // what followed from those two
		}
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	checkSnapshotFigures(t, dir, a)
	t.Logf("%d allocations", n)
}

func checkSnapshotFigures(t *testing.T, dir string, a *torch.Allocator) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Expected struct {
			Reserved  int64 `json:"reserved_bytes"`
			Allocated int64 `json:"allocated_bytes"`
			Requested int64 `json:"requested_bytes"`
			Segments  int   `json:"segments"`
			Blocks    int   `json:"blocks"`
		}
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	s := a.Statistics()
	list := a.Snapshot()
	blocks := 0
	for i := range list {
		blocks += len(list[i].Blocks)
	}
	e := c.Expected
	if s.ReservedBytes.All.Current != e.Reserved || s.AllocatedBytes.All.Current != e.Allocated ||
		s.RequestedBytes.All.Current != e.Requested || len(list) != e.Segments || blocks != e.Blocks {
		t.Errorf("reserved %d, allocated %d, requested %d in %d segments and %d blocks; recorded %+v",
			s.ReservedBytes.All.Current, s.AllocatedBytes.All.Current, s.RequestedBytes.All.Current, len(list), blocks, e)
	}
}

// readSnapshot takes what matters here out of a snapshot file's dictionary.
func readSnapshot(t *testing.T, v map[string]any) (segments []torch.SnapshotSegment, trace []torch.TraceEntry) {
	t.Helper()
	num := func(m map[string]any, key string) int64 { n, _ := m[key].(int64); return n }
	for _, x := range v["segments"].([]any) {
		m := x.(map[string]any)
		s := torch.SnapshotSegment{
			Address: uint64(num(m, "address")), Total: num(m, "total_size"), Stream: torch.Stream(num(m, "stream")),
			Large: m["segment_type"] == "large",
		}
		at := s.Address
		for _, y := range m["blocks"].([]any) {
			m := y.(map[string]any)
			b := torch.SnapshotBlock{Address: at, Size: num(m, "size"), Requested: num(m, "requested_size")}
			switch m["state"] {
			case "active_allocated":
				b.State = torch.ActiveAllocated
			case "active_pending_free", "active_awaiting_free":
				b.State = torch.ActivePendingFree
			}
			at += uint64(b.Size)
			s.Blocks = append(s.Blocks, b)
		}
		segments = append(segments, s)
	}
	actions := map[string]torch.Action{}
	for k := torch.ActionAlloc; k.String() != "unknown"; k++ {
		actions[k.String()] = k
	}
	for _, x := range v["device_traces"].([]any)[0].([]any) {
		m := x.(map[string]any)
		k, ok := actions[m["action"].(string)]
		if !ok {
			t.Fatalf("unknown action %v", m["action"])
		}
		trace = append(trace, torch.TraceEntry{Action: k, Addr: uint64(num(m, "addr")), Size: num(m, "size"), Stream: torch.Stream(num(m, "stream"))})
	}
	return segments, trace
}

// unpickle reads the few opcodes that the real files of the cases are made of.
func unpickle(b []byte) (any, error) {
	var stack, memo []any
	var marks []int
	read := func(n int) []byte { p := b[:n]; b = b[n:]; return p }
	pop := func() any { v := stack[len(stack)-1]; stack = stack[:len(stack)-1]; return v }
	cut := func() []any {
		m := marks[len(marks)-1]
		marks = marks[:len(marks)-1]
		v := append([]any(nil), stack[m:]...)
		stack = stack[:m]
		return v
	}
	set := func(items []any) {
		m := stack[len(stack)-1].(map[string]any)
		for i := 0; i < len(items); i += 2 {
			m[fmt.Sprint(items[i])] = items[i+1]
		}
	}
	// A list is a pointer until the end, since it grows after it is memoised.
	extend := func(items []any) {
		l := stack[len(stack)-1].(*[]any)
		*l = append(*l, items...)
	}
	for len(b) > 0 {
		switch op := read(1)[0]; op {
		case 0x80:
			read(1)
		case 0x95:
			read(8)
		case '}':
			stack = append(stack, map[string]any{})
		case ']':
			stack = append(stack, new([]any))
		case 0x94:
			memo = append(memo, stack[len(stack)-1])
		case '(':
			marks = append(marks, len(stack))
		case 0x8c:
			stack = append(stack, string(read(int(read(1)[0]))))
		case 'X':
			stack = append(stack, string(read(int(binary.LittleEndian.Uint32(read(4))))))
		case 'J':
			stack = append(stack, int64(int32(binary.LittleEndian.Uint32(read(4)))))
		case 'K':
			stack = append(stack, int64(read(1)[0]))
		case 'M':
			stack = append(stack, int64(binary.LittleEndian.Uint16(read(2))))
		case 0x8a:
			var n int64
			for i, c := range read(int(read(1)[0])) {
				n |= int64(c) << (8 * i)
			}
			stack = append(stack, n)
		case 'G':
			stack = append(stack, binary.BigEndian.Uint64(read(8)))
		case 0x88, 0x89:
			stack = append(stack, op == 0x88)
		case 'N':
			stack = append(stack, nil)
		case 0x86:
			y, x := pop(), pop()
			stack = append(stack, []any{x, y})
		case 'h':
			stack = append(stack, memo[read(1)[0]])
		case 'j':
			stack = append(stack, memo[binary.LittleEndian.Uint32(read(4))])
		case 'u':
			set(cut())
		case 's':
			y, x := pop(), pop()
			set([]any{x, y})
		case 'a':
			extend([]any{pop()})
		case 'e':
			extend(cut())
		case '.':
			return flatten(pop()), nil
		default:
			return nil, fmt.Errorf("opcode %#x, with %d bytes left", op, len(b))
		}
	}
	return nil, bytes.ErrTooLarge
}

func flatten(v any) any {
	switch v := v.(type) {
	case *[]any:
		out := make([]any, len(*v))
		for i, x := range *v {
			out[i] = flatten(x)
		}
		return out
	case map[string]any:
		for k, x := range v {
			if k != "frames" {
				v[k] = flatten(x)
			}
		}
	}
	return v
}
