package store

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

func TestRowsGiveBackWhatTheyTook(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, width := range []uint{0, 1, 7, 8, 9, 16, 23, 31, 32, 33, 40, 48, 56, 63, 64} {
		tab := rows{cols: 3}
		var want [3][]int64
		offset := int64(r.Uint64())
		for range 2*chunkLen + 77 {
			row := tab.add()
			for c := range tab.cols {
				v := int64(0)
				if width > 0 {
					v = int64(r.Uint64() >> (64 - width))
				}
				switch c {
				case 1:
					v += offset
				case 2:
					v <<= 5
				}
				tab.open[c*tab.stride+row] = v
				want[c] = append(want[c], v)
			}
		}
		for c := range want {
			for i, v := range want[c] {
				if got := tab.at(c, i); got != v {
					t.Fatalf("%d bits, column %d, row %d: got %d, want %d", width, c, i, got, v)
				}
			}
		}
	}
	ends := rows{cols: 1}
	for i := range chunkLen + 1 {
		row := ends.add()
		ends.open[row] = []int64{math.MinInt64, math.MaxInt64, -1, 0}[i%4]
	}
	for i := range chunkLen + 1 {
		if got, want := ends.at(0, i), []int64{math.MinInt64, math.MaxInt64, -1, 0}[i%4]; got != want {
			t.Fatalf("extremes, row %d: got %d, want %d", i, got, want)
		}
	}
}

func TestAfterFindsTheFirstGreater(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		tab := rows{cols: 2}
		var all []int64
		v := int64(r.IntN(100)) - 50
		for range r.IntN(4*chunkLen) + 1 {
			switch r.IntN(12) {
			case 0:
				v += int64(r.IntN(1 << 20))
			case 1, 2, 3, 4, 5:
				v += int64(r.IntN(9))
			}
			row := tab.add()
			tab.open[row], tab.open[tab.stride+row] = 7, v
			all = append(all, v)
		}
		for range 500 {
			x := all[r.IntN(len(all))] + int64(r.IntN(5)) - 2
			want := sort.Search(len(all), func(i int) bool { return all[i] > x })
			from := 0
			if r.IntN(2) == 0 {
				from = r.IntN(want + 1)
			}
			if got := tab.after(1, x, from); got != want {
				t.Fatalf("seed %d: after %d from %d of %d: got %d, want %d", seed, x, from, len(all), got, want)
			}
		}
	}
}

func TestTableForgetsWhatWasTaken(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var tab table
	want := map[uint64]uint64{}
	for range 20_000 {
		k := uint64(r.IntN(500)) << 8
		switch r.IntN(3) {
		case 0:
			got, ok := tab.take(k)
			v, has := want[k]
			if ok != has || ok && got != v {
				t.Fatalf("take %d: got %d %v, want %d %v", k, got, ok, v, has)
			}
			delete(want, k)
		default:
			v := r.Uint64() >> 1
			if _, has := want[k]; tab.put(k, v) != has {
				t.Fatalf("put %d does not know whether it was there", k)
			}
			want[k] = v
		}
		if tab.n != len(want) {
			t.Fatalf("holds %d, want %d", tab.n, len(want))
		}
	}
}
