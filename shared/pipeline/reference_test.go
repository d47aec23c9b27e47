package pipeline

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// reference says what comes out of a chain by the definitions alone, as lists
// without time: up to so many elements.
func reference(d Dataset, limit int) [][]int32 {
	return (&evaluation{limit: limit, seeds: make([]*Seeds, len(d.Stages)), caches: make([][][]int32, len(d.Stages)), d: d}).pass(len(d.Stages) - 1)
}

// evaluation keeps what outlives a pass: seeds and caches.
type evaluation struct {
	d      Dataset
	limit  int
	seeds  []*Seeds
	caches [][][]int32
}

// pass is one pass over what leaves stage i, cut at the limit.
func (v *evaluation) pass(i int) [][]int32 {
	s := &v.d.Stages[i]
	if i == 0 {
		var out [][]int32
		for k := range s.N {
			out = append(out, []int32{int32(s.First + k)})
		}
		return out
	}
	var out [][]int32
	switch s.Op {
	case OpRepeat:
		for n := 0; s.N < 0 || n < s.N; n++ {
			p := v.pass(i - 1)
			out = append(out, p...)
			if len(p) == 0 || len(out) >= v.limit {
				break
			}
		}
	case OpCache:
		if v.caches[i] == nil {
			v.caches[i] = v.pass(i - 1)
		}
		out = v.caches[i]
	case OpTake:
		out = v.pass(i - 1)
		if s.N >= 0 {
			out = out[:min(s.N, len(out))]
		}
	case OpSkip:
		out = v.pass(i - 1)
		if s.N < 0 {
			return nil
		}
		out = out[min(s.N, len(out)):]
	case OpShard:
		for n, e := range v.pass(i - 1) {
			if n%s.N == s.Index {
				out = append(out, e)
			}
		}
	case OpBatch:
		in := v.pass(i - 1)
		for n := 0; len(in) > 0; n++ {
			k := s.Sizes[n%len(s.Sizes)]
			if len(in) < k && s.Drop {
				break
			}
			k = min(k, len(in))
			out = append(out, slices.Concat(in[:k]...))
			in = in[k:]
		}
	case OpShuffle:
		if v.seeds[i] == nil {
			v.seeds[i] = NewSeeds(s.Seed, s.Fixed)
		}
		out = shuffled(v.pass(i-1), s.N, v.seeds[i].Next())
	case OpInterleave:
		out = inTurn(v.pass(i-1), v.d.Stages[0].Files, s.Cycle, s.Block)
	default:
		out = v.pass(i - 1)
	}
	return out[:min(len(out), v.limit)]
}

// shuffled takes a random one of the first k, and the first moves into its
// place.
func shuffled(in [][]int32, k int, seed uint64) [][]int32 {
	in = slices.Clone(in)
	r := NewShuffler[int](1, seed) // for its random numbers
	var out [][]int32
	for len(in) > 0 {
		at := int(r.draw(uint64(min(k, len(in)))))
		out = append(out, in[at])
		in[at] = in[0]
		in = in[1:]
	}
	return out
}

// inTurn reads files by the words of the specification: b consecutive elements
// of each in turn; an exhausted one loses its turn, and its place is filled
// when the cycle comes by again.
func inTurn(names [][]int32, files []File, cycle, block int) [][]int32 {
	places := make([][]int32, cycle)
	filled := make([]bool, cycle)
	var out [][]int32
	for at := 0; ; at = (at + 1) % cycle {
		if !filled[at] && len(names) > 0 {
			f := files[names[0][0]]
			names = names[1:]
			places[at], filled[at] = nil, true
			for k := range f.Elements {
				places[at] = append(places[at], f.First+int32(k))
			}
		}
		if !slices.Contains(filled, true) {
			return out
		}
		if !filled[at] {
			continue
		}
		taken := 0
		for ; taken < block && len(places[at]) > 0; taken++ {
			out = append(out, places[at][:1])
			places[at] = places[at][1:]
		}
		filled[at] = taken == block // otherwise it was found exhausted
	}
}

// Model and definition agree on every element, for chains of all kinds.
func TestModelAgreesWithTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	const limit = 120
	for range 3000 {
		d := randomDataset(r, true)
		if r.IntN(2) == 0 {
			for i := range d.Stages {
				if d.Stages[i].Op == OpShuffle {
					d.Stages[i].Fixed = true
				}
			}
		}
		// Where more than the limit passes a stage, what is cut off there could
		// have come later.
		if !short(d, 2000) {
			continue
		}
		want := reference(d, 2000)
		got := all(t, d, 2000)
		if !slices.EqualFunc(got[:min(limit, len(got))], want[:min(limit, len(want))], slices.Equal) || len(got) != len(want) {
			t.Fatalf("%v %+v:\n%v, want\n%v", d.Names(), d, got, want)
		}
	}
}

// short says that no stage gives more than so many elements, and that every
// cache sees the end of its first pass.
func short(d Dataset, most int64) bool {
	cached := false
	for i := range d.Stages {
		if n := d.count(i, true); n < 0 || n > most {
			return false
		}
		cached = cached || d.Stages[i].Op == OpCache
		if cached && d.Stages[i].Op == OpTake && d.Stages[i].N >= 0 {
			return false // see TestChecklistPartialCacheIsThrownAway
		}
	}
	return true
}
