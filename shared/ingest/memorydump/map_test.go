package memorydump

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/memdump"
	"tideline/shared/analysis"
	"tideline/shared/golden"
	"tideline/shared/ingest/bfclog"
)

func message(fields ...any) (b []byte) {
	for i := 0; i < len(fields); i += 2 {
		n := protowire.Number(fields[i].(int))
		switch v := fields[i+1].(type) {
		case int:
			b = protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v))
		case string:
			b = protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), v)
		case []byte:
			b = protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
		case float32:
			b = protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), math.Float32bits(v))
		}
	}
	return b
}

// debug is the map of a build with memory debugging, of two regions, with
// stamps and a history.
func debug() []byte {
	var bins [NumBins][5]int
	type piece struct {
		at, size, requested int
		op                  string
		action, stamp       int
	}
	list := []piece{
		{0x1000, 512, 500, "a/MatMul", 7, 0},
		{0x1200, 256, 256, "", 9, 4},
		{0x1300, 1024, 1000, "b/Relu", 3, 0},
		{0x9000, 512, 512, "a/MatMul", 5, 0},
	}
	var chunks []byte
	for _, p := range list {
		b := &bins[BinOf(int64(p.size))]
		b[1], b[3] = b[1]+p.size, b[3]+1
		c := message(1, p.at, 2, p.size, 3, p.requested)
		if p.op != "" {
			b[0], b[2] = b[0]+p.size, b[2]+1
			c = append(c, message(4, -1, 5, p.op, 7, p.action, 8, 1, 9, 12)...)
		} else {
			c = append(c, message(4, BinOf(int64(p.size)), 6, p.stamp, 7, p.action)...)
		}
		chunks = append(chunks, message(3, c)...)
	}
	out := message(1, "GPU_0_bfc")
	for i, b := range bins {
		out = append(out, message(2, message(1, i, 2, b[0], 3, b[1], 4, b[2], 5, b[3]))...)
	}
	out = append(out, chunks...)
	out = append(out, message(4, message(1, 8, 2, 2304), 4, message(1, 9, 2, 2048))...)
	return append(out, message(5, message(1, 5, 2, 2048, 3, 2304, 4, 1024, 5, float32(0)))...)
}

func TestDebugBuilds(t *testing.T) {
	m, err := Decode(debug())
	if err != nil {
		t.Fatal(err)
	}
	if len(m.History) != 2 || m.History[1] != (Point{9, 2048}) || m.Chunks[0].Step != 12 || m.Chunks[1].FreedAt != 4 || m.Chunks[1].InUse || m.Chunks[2].Action != 3 {
		t.Errorf("%+v", m)
	}
	d := m.Dump(false)
	if !d.ListComplete || len(d.Regions) != 2 || d.Regions[0].Size != 1792 || d.Regions[1].Address != 0x9000 {
		t.Errorf("%+v", d.Regions)
	}
	r := analysis.FromDump(d)
	if len(r.Holders) != 2 || r.Holders[0] != (analysis.Held{Name: "a/MatMul", Bytes: 1024, Blocks: 2}) {
		t.Errorf("holders %+v", r.Holders)
	}
	if r.Waste.N != 12+24 || r.WasteText != "" || !r.Stamped || r.Verdict != analysis.UndeterminedNoRequest {
		t.Errorf("waste %d, stamped %v, %s", r.Waste.N, r.Stamped, r.Verdict)
	}
	open := strings.Join(r.Undecided(true), " ")
	if strings.Contains(open, "it was more than") || !strings.Contains(open, "stamps") {
		t.Errorf("of a stamped pool: %s", open)
	}
}

// TestWhatAMapDoesNotTellStaysUnknown: neither request nor limit is made up.
func TestWhatAMapDoesNotTellStaysUnknown(t *testing.T) {
	b, err := os.ReadFile("testdata/fragmented.map")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	r := analysis.FromDump(m.Dump(false))
	if r.Requested.Known || r.Rounded.Known || r.Limit.Known || r.Growth != bfclog.Unknown || r.Regions.Known {
		t.Errorf("%+v", r)
	}
	if r.Verdict != analysis.UndeterminedNoRequest || r.Decision.Missing.Known || r.Truncated || len(r.Findings) > 0 {
		t.Errorf("%s, %+v, %v", r.Verdict, r.Decision, r.Findings)
	}
	if s := r.Why(); !strings.Contains(s, "12.67 MiB were free") || !strings.Contains(s, "1.40 MiB") {
		t.Error(s)
	}
}

// TestWhatOurAllocatorWritesReadsBack: an empty pool, and one that is full.
func TestWhatOurAllocatorWritesReadsBack(t *testing.T) {
	empty := memdump.Append(nil, &bfc.Map{Name: "cpu"})
	m, err := Decode(empty)
	if err != nil || len(m.Bins) != NumBins {
		t.Fatalf("%+v, %v", m, err)
	}
	d := m.Dump(false)
	if r := analysis.FromDump(d); !d.ListComplete || !d.Empty || r.Pool.N != 0 || !r.Pool.Known || !strings.Contains(r.Why(), "empty") {
		t.Errorf("%+v: %s", d, r.Why())
	}
	full := bfc.Map{Name: "GPU_0_bfc", Regions: []bfc.MapRegion{{Address: 0x100, Size: 512, Chunks: []bfc.MapChunk{{Address: 0x100, Size: 512, Requested: 300, Bin: -1}}}}}
	full.Bins[1] = bfc.BinSummary{BytesInUse: 512, Bytes: 512, ChunksInUse: 1, Chunks: 1}
	full.Stats.InUse, full.Fragmentation = 512, math.NaN()
	if m, err = Decode(memdump.Append(nil, &full)); err != nil {
		t.Fatal(err)
	}
	if r := analysis.FromDump(m.Dump(false)); r.InUse.N != 512 || r.Free.N != 0 || !r.Free.Known || r.Waste.N != 212 || r.Verdict != analysis.UndeterminedNoRequest {
		t.Errorf("%+v", r)
	}
}

// TestCutFilesAreReadAsFarAsTheyGo: every prefix that has the name and two bins
// gives what it holds, and says that it is cut.
func TestCutFilesAreReadAsFarAsTheyGo(t *testing.T) {
	whole := debug()
	last := 0
	for n := range len(whole) {
		m, err := Decode(whole[:n])
		if m == nil {
			if !errors.Is(err, ErrNone) || n > 60 {
				t.Errorf("%d bytes: %v", n, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%d bytes of %d pass for whole", n, len(whole))
		}
		if len(m.Chunks) < last {
			t.Errorf("%d bytes tell %d chunks, fewer than before", n, len(m.Chunks))
		}
		last = len(m.Chunks)
		d := m.Dump(err != nil)
		if r := analysis.FromDump(d); d.ListComplete || !d.Truncated || r.Verdict != analysis.UndeterminedTruncated || r.Pool.Known {
			t.Errorf("%d bytes: %s, %q", n, r.Verdict, d.Missing)
		}
	}
	if last != 4 {
		t.Errorf("%d chunks at the end", last)
	}
}

func TestDamagedFilesSaySo(t *testing.T) {
	head := debug()[:bytes.Index(debug(), message(1, 0x1000, 2, 512))-2]
	with := func(fields ...any) []byte { return append(bytes.Clone(head), message(fields...)...) }
	for _, c := range []struct {
		file []byte
		want string
	}{
		{with(3, message(1, 0x1000, 2, 512), 3, message(1, 0x1100, 2, 512)), "lies over the one before"},
		{with(3, message(1, 0x1000, 2, -1)), "has -1 bytes"},
		{with(3, message(1, 0x1000)), "has 0 bytes"},
		{with(3, message(1, -256, 2, 512)), "at ffffffffffffff00"},
		{with(3, []byte{0xff}), "chunk 0"},
		{with(3, message(1, 0x1000, 2, 512), 2, message(1, 3)), "what should be bin 21"},
		{with(4, message(1, 3, 2, -5)), "point 0"},
		{with(5, []byte{0x08}), "the statistics"},
		{with(3, message(1, 0x1000, 2, 512)), "statistics, which come last, are missing"},
	} {
		m, err := Decode(c.file)
		if m == nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// Whole, but the parts contradict each other.
	m, err := Decode(with(3, message(1, 0x1000, 2, 512), 5, message(2, 512)))
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Dump(false); d.ListComplete || !d.Truncated {
		t.Errorf("bins and chunks that disagree are believed: %+v", d)
	}
}

// TestTakesNothingElseForAMap: no other file of the collection is one, and every
// map is.
func TestTakesNothingElseForAMap(t *testing.T) {
	others := 0
	for _, pattern := range []string{filepath.Join(golden.Cases(t), "*", "*"), "../testdata/*", "../*/testdata/*", "../../../protocol/*/testdata/*"} {
		list, _ := filepath.Glob(pattern)
		for _, f := range list {
			if s, err := os.Stat(f); err == nil && s.Mode().IsRegular() && !strings.HasSuffix(f, ".map") {
				others++
				if b := contents(t, f); Is(b[:min(len(b), 4096)]) {
					t.Errorf("%s is taken for a memory map", f)
				}
			}
		}
	}
	if others < 90 {
		t.Errorf("only %d files", others)
	}
	for _, f := range maps(t) {
		if b := contents(t, f); !Is(b) || !Is(b[:min(len(b), 200)]) {
			t.Errorf("%s is not recognised", f)
		}
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "a name": message(1, "GPU_0_bfc"), "one bin": message(1, "x", 2, ""), "bins out of order": message(1, "x", 2, "", 2, message(1, 2)),
		"a pprof": message(1, message(1, 1, 2, 2), 2, message(1, 1)), "an XSpace": message(1, message(1, 1, 2, "/device:GPU:0")),
		"a text": []byte("\n\x09GPU_0_bfc ran out of memory"), "no name, some bins": message(2, "", 2, message(1, 1)),
		"strings": message(1, "x", 2, "abc", 2, "abd"),
	} {
		if Is(b) {
			t.Errorf("%s is taken for a memory map", name)
		}
	}
}

// TestAClaimCostsNothing: a length of 4 GiB, and chunks of two bytes each.
func TestAClaimCostsNothing(t *testing.T) {
	head := debug()[:bytes.Index(debug(), message(1, 0x1000, 2, 512))-2]
	for _, tail := range []string{"\x1a\xff\xff\xff\xff\x0f", "\x22\xff\xff\xff\xff\x0f", strings.Repeat("\x1a\x00", 1<<19), strings.Repeat("\x22\x02\x08\x01", 1<<18)} {
		b := append(bytes.Clone(head), tail...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := Decode(b)
		runtime.ReadMemStats(&after)
		if m == nil || err == nil {
			t.Errorf("%v", err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<18 {
			t.Errorf("%d bytes for a file of %d", n, len(b))
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(debug())
	f.Add(append(append(debug(), '\n'), "Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.0KiB\n"...))
	for _, name := range []string{"testdata/fragmented.map", "testdata/small.map"} {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if m == nil {
			if err == nil {
				t.Fatal("neither a map nor an error")
			}
			return
		}
		d := m.Dump(err != nil)
		if log, lerr := bfclog.Read(bytes.NewReader(m.Rest)); lerr == nil {
			Join(d, log)
		}
		end := uint64(0)
		for _, r := range d.Regions {
			for _, c := range r.Chunks {
				if c.Address < end || c.Size <= 0 {
					t.Fatalf("chunk at %x of %d behind %x", c.Address, c.Size, end)
				}
				end = c.Address + uint64(c.Size)
			}
		}
		r := analysis.FromDump(d)
		_, _, _, _ = r.Why(), r.Undecided(true), r.Advice(), r.Values()
		if err != nil && !r.Verdict.Undetermined() {
			t.Fatalf("a damaged map decides: %s", r.Verdict)
		}
	})
}
