package pipeline

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func mustNew(tb testing.TB, s Settings) *Model {
	tb.Helper()
	m, err := New(s, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// drain takes up to limit batches, asking at once each time.
func drain(tb testing.TB, m *Model, limit int) [][]int32 {
	tb.Helper()
	var out [][]int32
	for range limit {
		b, err := m.Next(0)
		if errors.Is(err, ErrEnd) {
			break
		}
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, slices.Clone(b.Indices))
	}
	return out
}

func sizes(batches [][]int32) []int {
	var n []int
	for _, b := range batches {
		n = append(n, len(b))
	}
	return n
}

func flat(batches [][]int32) []int32 { return slices.Concat(batches...) }

func TestBatchSizes(t *testing.T) {
	for _, c := range []struct {
		s    Settings
		want []int
	}{
		{Settings{Elements: 10, Epochs: 1, Batch: []int{3}}, []int{3, 3, 3, 1}},
		{Settings{Elements: 10, Epochs: 1, Batch: []int{3}, DropRemainder: true}, []int{3, 3, 3}},
		{Settings{Elements: 10, Epochs: 1, Batch: []int{4, 1}}, []int{4, 1, 4, 1}},
		{Settings{Elements: 10, Batch: []int{3}, Batches: 5}, []int{3, 3, 3, 3, 3}},
		{Settings{Elements: 4, Epochs: 2, Batch: []int{3}}, []int{3, 3, 2}},
		{Settings{Elements: 0, Batch: []int{3}}, nil},
		{Settings{Elements: 0, Epochs: 4, Shuffle: 3, Batch: []int{3}}, nil},
		{Settings{Elements: 2, Epochs: 1, Batch: []int{3}, DropRemainder: true}, nil},
	} {
		for _, prefetch := range []int{0, 1, 3, Auto} {
			for _, parallel := range []int{1, 4} {
				c.s.Prefetch, c.s.Map.Parallel = prefetch, parallel
				m := mustNew(t, c.s)
				got := drain(t, m, 100)
				if !slices.Equal(sizes(got), c.want) {
					t.Errorf("%+v: sizes %v, want %v", c.s, sizes(got), c.want)
				}
				if _, err := m.Next(1e9); !errors.Is(err, ErrEnd) {
					t.Errorf("%+v: the end does not stick: %v", c.s, err)
				}
			}
		}
	}
}

func TestShuffleIsAPermutationOfEveryEpoch(t *testing.T) {
	for seed := range uint64(20) {
		s := Settings{Elements: 5, Epochs: 4, Shuffle: 5, Seed: seed, Batch: []int{1}}
		got := flat(drain(t, mustNew(t, s), 100))
		if len(got) != 20 {
			t.Fatalf("seed %d: %d elements", seed, len(got))
		}
		for e := range 4 {
			epoch := slices.Sorted(slices.Values(got[e*5 : e*5+5]))
			if !slices.Equal(epoch, []int32{0, 1, 2, 3, 4}) {
				t.Errorf("seed %d, epoch %d: %v", seed, e, got[e*5:e*5+5])
			}
		}
		if again := flat(drain(t, mustNew(t, s), 100)); !slices.Equal(got, again) {
			t.Errorf("seed %d: another order the second time", seed)
		}
	}
}

func TestShuffleOfOneKeepsTheOrder(t *testing.T) {
	for _, k := range []int{0, 1} {
		got := flat(drain(t, mustNew(t, Settings{Elements: 6, Epochs: 1, Shuffle: k, Batch: []int{4}}), 9))
		if !slices.Equal(got, []int32{0, 1, 2, 3, 4, 5}) {
			t.Errorf("shuffle %d: %v", k, got)
		}
	}
}

// With a buffer of k, element i cannot come before position i-(k-1).
func TestShuffleMovesElementsForwardByLessThanItsBuffer(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, k := 1+r.IntN(40), 1+r.IntN(12)
		got := flat(drain(t, mustNew(t, Settings{Elements: n, Epochs: 1, Shuffle: k, Seed: r.Uint64(), Batch: []int{1}}), n))
		for pos, i := range got {
			if pos < int(i)-(k-1) {
				t.Fatalf("n %d, k %d: element %d at position %d", n, k, i, pos)
			}
		}
	}
}

// Every order of three must come up about equally often.
func TestShuffleIsFair(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(6000) {
		count[fmt.Sprint(flat(drain(t, mustNew(t, Settings{Elements: 3, Epochs: 1, Shuffle: 3, Seed: seed, Batch: []int{3}}), 1)))]++
	}
	for order, n := range count {
		if n < 850 || n > 1150 {
			t.Errorf("%s came %d times of 6000", order, n)
		}
	}
	if len(count) != 6 {
		t.Errorf("%d orders", len(count))
	}
}

func TestShuffleOrderIsTheSameOnEveryHost(t *testing.T) {
	got := flat(drain(t, mustNew(t, Settings{Elements: 10, Shuffle: 4, Seed: 1, Batch: []int{10}, Batches: 2}), 2))
	want := []int32{1, 4, 0, 6, 5, 2, 7, 3, 8, 9, 1, 3, 2, 5, 4, 8, 9, 6, 0, 7}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestShuffleBufferIsBoundedOverShortSources(t *testing.T) {
	for _, c := range []struct{ elements, epochs, k, want int }{
		{3, 2, 100, 6},
		{3, 0, 100, 10},
		{3, 0, 8, 8},
		{50, 1, 20, 20},
	} {
		at := -1
		fetch := func() (int32, int, bool) {
			at++
			epoch := at / c.elements
			return int32(at % c.elements), epoch, c.epochs == 0 || epoch < c.epochs
		}
		sh := NewShuffler[int32](c.k, 1)
		most := 0
		for range 60 {
			_, pulls, ok := sh.Next(fetch)
			if !ok {
				break
			}
			most = max(most, sh.Len()+1)
			if pulls > c.want {
				t.Errorf("%+v: %d fetched at once", c, pulls)
			}
		}
		if most != c.want {
			t.Errorf("%+v: buffer held %d, want %d", c, most, c.want)
		}
		if got := (&Settings{Elements: c.elements, Epochs: c.epochs, Shuffle: c.k, Batch: []int{1}}).Buffers(0)[1].Count; got != c.want {
			t.Errorf("%+v: Buffers says %d, want %d", c, got, c.want)
		}
	}
}

func TestOrderDoesNotDependOnTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	base := Settings{Elements: 23, Epochs: 3, Shuffle: 7, Seed: 5, Batch: []int{4, 2}}
	want := drain(t, mustNew(t, base), 1000)
	for range 50 {
		s := base
		s.FetchCost, s.Map.Cost, s.CopyCost = r.Int64N(5), r.Int64N(50), r.Int64N(3)
		s.Map.Parallel, s.Map.Cores, s.Prefetch = r.IntN(6), r.IntN(4), r.IntN(5)-1
		m := mustNew(t, s)
		var got [][]int32
		for now := int64(0); ; now += r.Int64N(200) {
			b, err := m.Next(now)
			if err != nil {
				break
			}
			got = append(got, slices.Clone(b.Indices))
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v: other batches", s)
		}
	}
}

func TestCheckNamesTheField(t *testing.T) {
	good := Settings{Elements: 1, Batch: []int{1}}
	for want, spoil := range map[string]func(s *Settings){
		"batch 0: must be at least 1":        func(s *Settings) { s.Batch = []int{3, 0} },
		"no batch size":                      func(s *Settings) { s.Batch = nil },
		"prefetch -2: must be at least -1":   func(s *Settings) { s.Prefetch = -2 },
		"shuffle -1: must be at least 0":     func(s *Settings) { s.Shuffle = -1 },
		"map.cost -5: must be at least 0":    func(s *Settings) { s.Map.Cost = -5 },
		"map.parallel -2":                    func(s *Settings) { s.Map.Parallel = -2 },
		"elements -1: must be at least 0":    func(s *Settings) { s.Elements = -1 },
		"fetch cost -1: must be at least 0":  func(s *Settings) { s.FetchCost = -1 },
		"ram budget -10: must be at least 0": func(s *Settings) { s.RAMBudget = -10 },
	} {
		s := good
		spoil(&s)
		if _, err := New(s, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}
