package analysis

import (
	"strings"
	"testing"
)

// TestAdviceForAFullPool: no setting of the allocator helps a full pool, so
// none is named.
func TestAdviceForAFullPool(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		r := &Reading{Verdict: Full, Recorded: recorded, Allocator: "GPU_0_bfc"}
		r.Decision.Missing = amount{N: 1 << 20, Known: true}
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
