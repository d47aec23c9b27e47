package rewrite

import (
	"math/rand/v2"
	"testing"
)

// cheapest tries all plans: bit i of cuts begins a segment at block i, bit i
// of again says that the segment block i is in runs again (alone if not).
func cheapest(chain []link, budget int64) (int64, bool) {
	var walk func(i int, kept int64) int64
	walk = func(i int, kept int64) int64 {
		if i == len(chain) {
			return 0
		}
		best := int64(never)
		if kept+chain[i].saved <= budget {
			best = walk(i+1, kept+chain[i].saved)
		}
		var saved, nanos int64
		for j := i; j < len(chain); j++ {
			saved += chain[j].saved
			nanos += chain[j].nanos
			if kept+saved > budget {
				break
			}
			if rest := walk(j+1, kept+chain[j].out); rest != never {
				best = min(best, nanos+rest)
			}
		}
		return best
	}
	best := walk(0, 0)
	return best, best != never
}

// The plan is the cheapest of all plans, and keeps no more than the budget.
func TestChainPlanIsOptimal(t *testing.T) {
	possible := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		chain := make([]link, 1+r.IntN(8))
		var all int64
		for i := range chain {
			out := 1 + r.Int64N(5)
			chain[i] = link{saved: out + r.Int64N(10), out: out, nanos: 1 + r.Int64N(9)}
			all += chain[i].saved
		}
		budget := 1 + r.Int64N(all+2) // below the levels, so nothing is rounded
		want, ok := cheapest(chain, budget)
		segment, got := planChain(chain, budget)
		if got != ok {
			t.Fatalf("seed %d: a plan was found: %v, there is one: %v", seed, got, ok)
		}
		if !ok {
			continue
		}
		possible++
		var kept, nanos int64
		for i := 0; i < len(chain); {
			end, saved := i+1, chain[i].saved
			for segment[i] >= 0 && end < len(chain) && segment[end] == segment[i] {
				saved += chain[end].saved
				end++
			}
			if kept+saved > budget {
				t.Fatalf("seed %d: %d bytes at block %d of %v in segments %v, budget %d", seed, kept+saved, i, chain, segment, budget)
			}
			if segment[i] < 0 {
				kept += saved
			} else {
				kept += chain[end-1].out
				for ; i < end; i++ {
					nanos += chain[i].nanos
				}
			}
			i = end
		}
		if nanos != want {
			t.Fatalf("seed %d: %v in segments %v takes %d, the best %d", seed, chain, segment, nanos, want)
		}
	}
	if possible < 100 {
		t.Errorf("only %d of 300 chains had a plan", possible)
	}
}

// Where a hundred blocks make the bytes coarse, the plan still keeps the budget.
func TestChainPlanOfManyBlocks(t *testing.T) {
	chain := make([]link, 400)
	for i := range chain {
		chain[i] = link{saved: 3 << 20, out: 1 << 20, nanos: 1000}
	}
	if _, ok := planChain(chain, 30<<20); ok {
		t.Error("a plan within 30 MiB: 20 segments leave 20 MiB, and one of them takes 60")
	}
	segment, ok := planChain(chain, 120<<20)
	if !ok {
		t.Fatal("no plan within 120 MiB")
	}
	for i := 1; i < len(segment); i++ {
		if segment[i] >= 0 && segment[i] < segment[i-1] {
			t.Fatalf("segments %v are out of order", segment)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a/b", "a/b", true},
		{"a/b", "a/bc", false},
		{"a/*", "a/b/c", true},
		{"*Relu", "x/Relu", true},
		{"*Relu", "x/Relu_1", false},
		{"a*b*c", "a1b2c", true},
		{"a*b*c", "a1c2b", false},
		{"ab*b", "ab", false},
		{"*", "", true},
		{"a**b", "ab", true},
	} {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}
