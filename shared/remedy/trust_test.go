package remedy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
)

// Of made programs whole histories are known. Only the dump at their end is
// shown, and what is said to serve is tried on the whole history: most of it
// serves that, too, and the doc says that not all of it does.
func TestWhatIsSaidOfADumpMostlyHoldsOfItsHistory(t *testing.T) {
	const programs = 240
	var said, held [2]int // of TensorFlow's own settings, of other allocators
	for seed := range uint64(programs) {
		r := rand.New(rand.NewPCG(seed, 11))
		growth := r.IntN(2) == 0
		limit := (50 + r.Int64N(300)) * mib
		x := startBFC(t, limit, growth)
		b := contest.NewBuilder(&contest.Trace{Kind: "bfc", Limit: limit})
		type block struct {
			addr uint64
			slot int32
		}
		var live []block
		var free []int32
		for range 800 {
			if n := len(live); n > 0 && r.IntN(100) < 46 {
				k := r.IntN(n)
				if err := x.a.Free(live[k].addr); err != nil {
					t.Fatal(err)
				}
				b.Add(contest.Call{Kind: contest.Free, Slot: live[k].slot})
				free = append(free, live[k].slot)
				live[k] = live[n-1]
				live = live[:n-1]
				continue
			}
			bytes := int64(1) << (9 + r.IntN(17))
			bytes += r.Int64N(bytes)
			slot := int32(len(live) + len(free))
			if n := len(free); n > 0 {
				slot, free = free[n-1], free[:n-1]
			}
			addr, ok := x.alloc(bytes)
			b.Add(contest.Call{Kind: contest.Allocate, Bytes: bytes, Slot: slot, Fails: !ok})
			if !ok {
				break
			}
			live = append(live, block{addr, slot})
		}
		if !strings.Contains(x.log.text.String(), "ran out of memory") {
			continue
		}
		history := sequenceOf(b.Trace())
		list := append([]candidate{ofKind("TF_GPU_ALLOCATOR=cuda_malloc_async", "async")}, others("bfc", "async")...)
		for _, on := range []string{"false", "true"} {
			list = append(list, ofKind("TF_FORCE_GPU_ALLOW_GROWTH="+on, "bfc", kinds.Setting{Name: "growth", Value: on}))
		}
		o := explained(x.dump())
		for _, y := range o.Trials {
			for i := range list {
				if !y.Serves || list[i].setting != y.Setting {
					continue
				}
				m, err := list[i].make(limit)
				if err != nil {
					t.Fatal(err)
				}
				got := Options{}.work().play(history, m, limit)
				kind := 1
				if y.Own {
					kind = 0
				}
				said[kind]++
				if got.serves(history) {
					held[kind]++
				}
			}
		}
	}
	t.Logf("%d of %d settings and %d of %d other allocators that are said to serve serve the whole history", held[0], said[0], held[1], said[1])
	if said[0] < 10 || said[1] < 100 {
		t.Fatalf("%v were said to serve: the test tells too little", said)
	}
	for kind, n := range said {
		if 100*held[kind] < 80*n {
			t.Errorf("only %d of %d hold (%d)", held[kind], n, kind)
		}
	}
}
