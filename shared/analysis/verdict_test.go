package analysis

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"tideline/shared/ingest/bfclog"
)

// logOf writes a small dump with the given parts, each of which may be "".
func logOf(request, pool, stats, bar string) string {
	const at = "2021-03-18 20:49:12.347416: I tensorflow/core/common_runtime/bfc_allocator.cc:1004] "
	var b strings.Builder
	for _, s := range []string{request, pool} {
		if s != "" {
			b.WriteString(at + s + "\n")
		}
	}
	if stats != "" {
		b.WriteString(at + "Stats: \n" + stats + "\n\n")
	}
	if bar != "" {
		b.WriteString(at + bar + "\n")
	}
	return b.String()
}

func requestLine(name, text string, rounded int64) string {
	return fmt.Sprintf("Allocator (%s) ran out of memory trying to allocate %s (rounded to %d)requested by op X", name, text, rounded)
}

func poolLine(pool, limit int64) string {
	return fmt.Sprintf("Total bytes in pool: %d memory_limit_: %d available bytes: %d curr_region_allocation_bytes_: 0", pool, limit, limit-pool)
}

func statsBlock(limit, inUse int64) string {
	return fmt.Sprintf("Limit: %d\nInUse: %d\nMaxInUse: %d\nNumAllocs: 9\nMaxAllocSize: %d", limit, inUse, inUse, inUse)
}

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

func TestVerdicts(t *testing.T) {
	gpu := func(n int64) string { return requestLine("GPU_0_bfc", bfclog.Human(n), n) }
	refused := "failed to allocate 1.00G (1073741824 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
	for _, c := range []struct {
		name, text string
		want       Verdict
		secondary  string
	}{
		{"too few free bytes", logOf(gpu(2*gib), poolLine(8*gib, 8*gib), statsBlock(8*gib, 7*gib), ""), Full, ""},
		{"enough bytes", logOf(gpu(gib), poolLine(8*gib, 8*gib), statsBlock(8*gib, 6*gib), ""), Fragmented, ""},
		{"enough bytes, no pool line", logOf(gpu(gib), "", statsBlock(8*gib, 6*gib), ""), Fragmented, ""},
		{"enough bytes, no pool line, driver refused", refused + logOf(gpu(gib), "", statsBlock(8*gib, 6*gib), ""), UndeterminedTruncated, "driver_refused"},
		{"growth allowed", logOf(gpu(gib), poolLine(4*gib, 8*gib), statsBlock(8*gib, 4*gib), ""), OtherProcess, ""},
		{"growth allowed and enough bytes free", logOf(gpu(gib), poolLine(4*gib, 8*gib), statsBlock(8*gib, 2*gib), ""), OtherProcess, "fragmented"},
		{"growth cannot serve it, pool and growth together could", logOf(gpu(2*gib), poolLine(7*gib, 8*gib), statsBlock(8*gib, 5*gib+512*mib), ""), Fragmented, ""},
		{"request above limit", logOf(gpu(9*gib), poolLine(8*gib, 8*gib), statsBlock(8*gib, 0), ""), LimitTooLow, ""},
		{"request above every device", logOf(gpu(400*gib), poolLine(8*gib, 8*gib), statsBlock(8*gib, 0), ""), RequestExceedsDevice, ""},
		{"nonsense", logOf(gpu(1<<52), poolLine(8*gib, 8*gib), statsBlock(8*gib, 0), ""), NotMemory, ""},
		{"negative size", logOf("Allocator (GPU_0_bfc) ran out of memory trying to allocate -8E (rounded to 9223372036854775808)requested by op X", "", statsBlock(8*gib, 0), ""), NotMemory, ""},
		{"tiny limit", logOf("", poolLine(50*mib, 50*mib), statsBlock(50*mib, 256), ""), LimitTooLow, ""},
		{"tiny limit, well used", logOf(gpu(20*mib), poolLine(50*mib, 50*mib), statsBlock(50*mib, 40*mib), ""), Full, "limit_too_low"},
		{"nothing free, request unknown", logOf("", poolLine(8*gib, 8*gib), statsBlock(8*gib, 8*gib), ""), Full, ""},
		{"something free, request unknown", logOf("", poolLine(8*gib, 8*gib), statsBlock(8*gib, 7*gib), ""), UndeterminedTruncated, ""},
		{"pinned pool full", logOf(requestLine("gpu_host_bfc", "4.00GiB", 4*gib), "", statsBlock(64*gib, 62*gib), ""), HostPinnedLimit, ""},
		{"pinned pool of newer JAX", logOf(requestLine("xla_gpu_host_bfc", "4.00GiB", 4*gib), poolLine(64*gib, 64*gib), statsBlock(64*gib, 62*gib), ""), HostPinnedLimit, ""},
		{"pinned pool fragmented", logOf(requestLine("gpu_host_bfc", "4.00GiB", 4*gib), poolLine(64*gib, 64*gib), statsBlock(64*gib, 20*gib), ""), Fragmented, ""},
		{"bar with a few free cells", logOf(gpu(2*gib), "", "", strings.Repeat("*", 93)+strings.Repeat("_", 7)), FullOrFragmentedByBar, ""},
		{"bar with one free cell", logOf(gpu(4*gib+gib/2), "", "", strings.Repeat("*", 99)+"_"), Full, ""},
		{"bar without a free cell", logOf(gpu(mib), "", "", strings.Repeat("*", 100)), Full, ""},
		{"request line alone", logOf(gpu(gib), "", "", ""), UndeterminedNoState, ""},
		{"announced dump missing", logOf("Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.00GiB.  Current allocation summary follows.", "", "", ""), UndeterminedTruncated, ""},
		{"error line alone", "OOM when allocating tensor with shape[1024,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n", UndeterminedNoState, ""},
		{
			"leak", logOf(gpu(mib), "", "", "") +
				"I x/bfc_allocator.cc:1] 900 Chunks of size 1048576 totalling 900.00MiB\nI x/bfc_allocator.cc:1] 1 Chunks of size 104857600 totalling 100.00MiB\nI x/bfc_allocator.cc:1] Sum Total of in-use chunks: 1000.00MiB\n" +
				logOf("", poolLine(1000*mib, 1000*mib), statsBlock(1000*mib, 1000*mib), ""),
			LeakManyEqualChunks, "full",
		},
		{
			"many equal chunks, not enough for a leak", "I x/bfc_allocator.cc:1] 20 Chunks of size 52428800 totalling 1000.00MiB\nI x/bfc_allocator.cc:1] Sum Total of in-use chunks: 1000.00MiB\n" +
				logOf("", poolLine(1000*mib, 1000*mib), statsBlock(1000*mib, 1000*mib), ""), Full, "many_equal_chunks",
		},
		{
			"driver pool holds the rest", "2022-05-01 10:00:00.000000: E t/gpu_cudamallocasync_allocator.cc:288] gpu_async_0 cuMemAllocAsync failed to allocate 4294967296 bytes: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n Free memory/Total memory: 27197440/8589934592\nI t/gpu_cudamallocasync_allocator.cc:293] Stats: \nInUse: 3000000000\n",
			FragmentedPoolOrCached, "",
		},
		{
			"the caller can do without", "W x/bfc_allocator.cc:217] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.29GiB. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory is available.\n",
			UndeterminedNoState, "caller_can_do_without",
		},
	} {
		log, err := bfclog.Read(strings.NewReader(c.text))
		if err != nil || len(log.Dumps) != 1 {
			t.Errorf("%s: %d dumps, %v", c.name, len(log.Dumps), err)
			continue
		}
		r := FromDump(log.Dumps[0])
		first := ""
		if len(r.Findings) > 0 {
			first = r.Findings[0]
		}
		if r.Verdict != c.want || first != c.secondary {
			t.Errorf("%s: %s (%q), want %s (%q)", c.name, r.Verdict, r.Findings, c.want, c.secondary)
		}
	}
}

// binLines prints 21 bins of which one has the given chunks.
func binLines(at, total, used int, all, inUse string) string {
	var b strings.Builder
	for i := range 21 {
		n, u, a, x := 0, 0, "0B", "0B"
		if i == at {
			n, u, a, x = total, used, all, inUse
		}
		fmt.Fprintf(&b, "I x/bfc_allocator.cc:1] Bin (%d): \tTotal Chunks: %d, Chunks in use: %d. %s allocated for chunks. %s in use in bin. %s client-requested in use in bin.\n", 256<<i, n, u, a, x, x)
	}
	return b.String()
}

// TestTheLargestHoleOfBinsAlone: one free chunk in the highest bin is the
// largest; of several, none is known.
func TestTheLargestHoleOfBinsAlone(t *testing.T) {
	for _, c := range []struct {
		total, used int
		all, inUse  string
		lo, hi      int64 // what the text may be; 0, 0 when there must be none
	}{
		{1, 0, "300.00MiB", "0B", 300 * mib, 300 * mib},
		{2, 1, "300.00MiB", "140.00MiB", 160 * mib, 160 * mib},
		{2, 0, "300.00MiB", "0B", 0, 0},
	} {
		log, err := bfclog.Read(strings.NewReader(binLines(19, c.total, c.used, c.all, c.inUse)))
		if err != nil || len(log.Dumps) != 1 {
			t.Fatal(err)
		}
		got := largestByBins(log.Dumps[0])
		if got.Known != (c.hi > 0) || got.Lo > c.lo || got.Hi < c.hi {
			t.Errorf("%d chunks, %d in use: %+v", c.total, c.used, got)
		}
	}
}

func FuzzFromDump(f *testing.F) {
	f.Add([]byte(logOf(requestLine("GPU_0_bfc", "1.00GiB", gib), poolLine(8*gib, 8*gib), statsBlock(8*gib, 6*gib), strings.Repeat("*_", 50))))
	f.Add([]byte("OOM when allocating tensor with shape[2,3] and type half\nI a/bfc_allocator.cc:1] Bin for 1.0KiB was 1.0KiB, Chunk State: \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := bfclog.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, d := range log.Dumps {
			r := FromDump(d)
			if r.Verdict == "" {
				t.Fatal("no verdict")
			}
			names := map[string]bool{}
			for _, v := range r.Values() {
				if names[v.Name] {
					t.Fatalf("%s is there twice", v.Name)
				}
				names[v.Name] = true
			}
			if r.HasFragmentation && (r.Fragmentation < 0 || r.Fragmentation > 1) && r.ListComplete {
				t.Fatalf("fragmentation %g", r.Fragmentation)
			}
		}
	})
}
