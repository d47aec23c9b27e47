package analysis

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
	"tideline/shared/ingest/bfclog"
)

// TestAdviceForAFullPool: no setting of the allocator helps a full pool, so
// none is named.
func TestAdviceForAFullPool(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		r := &Reading{Verdict: Full, Recorded: recorded, Allocator: "GPU_0_bfc"}
		r.Decision.Missing = cause.Of(1 << 20)
		list := r.Advice()
		if len(list) == 0 {
			t.Errorf("recorded %v: no advice", recorded)
		}
		for _, a := range list {
			for _, word := range []string{"growth", "TF_GPU_ALLOCATOR", "cuda_malloc_async"} {
				if strings.Contains(a.Text, word) {
					t.Errorf("recorded %v: a full pool is told %q", recorded, a.Text)
				}
			}
		}
	}
}

// TestTailsAreAdvised: where the unused tails hold what is missing, the advice
// names the largest; where they do not, it is silent about them.
func TestTailsAreAdvised(t *testing.T) {
	for _, waste := range []int64{1 << 20, 512 << 10} {
		r := &Reading{Verdict: Full, Recorded: true, Map: event.ChunkMap{{Chunks: []event.Chunk{
			{Size: 4 << 20, Requested: 4<<20 - 100, InUse: true}, {Size: 2 << 20, Requested: 1 << 20, InUse: true},
		}}}}
		r.Waste, r.Free, r.Requested = cause.Of(waste), cause.Of(0), cause.Of(1<<20)
		r.Decision.Missing = cause.Of(1 << 20)
		named := false
		for _, a := range r.Advice() {
			named = named || strings.Contains(a.Text, "The largest is 1.00 MiB, of a chunk of 2.00 MiB")
		}
		if named != (waste >= 1<<20) {
			t.Errorf("tails of %d bytes: named %v", waste, named)
		}
	}
}

// TestTheErrorAlone: a log that holds nothing but the framework's error gets
// told where the rest is, and that its batch looks like a whole data set.
func TestTheErrorAlone(t *testing.T) {
	for shape, want := range map[string]int{"[10000,1,28,28]": 2, "[128,1,28,28]": 1, "[10000,784]": 1} {
		log, err := bfclog.Read(strings.NewReader("ResourceExhaustedError: OOM when allocating tensor with shape" + shape + " and type float on /device:GPU:0 by allocator GPU_0_bfc\n"))
		if err != nil || len(log.Dumps) != 1 {
			t.Fatalf("%s: %v", shape, err)
		}
		list := FromDump(log.Dumps[0]).Advice()
		if len(list) != want || !strings.Contains(list[want-1].Text, "standard error") {
			t.Errorf("%s: %+v", shape, list)
		}
	}
}
