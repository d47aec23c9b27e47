package store

import (
	"math/rand/v2"
	"testing"
)

func TestLargerIsTheMaximumOfEachByte(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		a, b := r.Uint64(), r.Uint64()
		if r.IntN(4) == 0 {
			b = a ^ 1<<r.IntN(64)
		}
		var want uint64
		for i := 0; i < 64; i += 8 {
			want |= max(a>>i&255, b>>i&255) << i
		}
		if got := larger(a, b); got != want {
			t.Fatalf("%016x, %016x: got %016x, want %016x", a, b, got, want)
		}
	}
}

// Cells where a block lay in the tile's time must not be empty, cells that no
// block touched must be; and the fill must be that of the fullest moment.
func TestTileShowsTheFullestMomentOfEachCell(t *testing.T) {
	tested := 0
	for seed := range uint64(5) {
		events := random(seed, 9000)
		tl := filled2(t, events)
		p := tl.Pools()[0]
		n := p.Points()
		shift := p.tiles.shift
		// Tiles from before the layout stopped growing are coarser on purpose.
		settled := 1
		for int(p.tiles.levels[0].at(settled-1).Shift) != int(shift) {
			settled++
		}
		if n/tilePoints-settled < 3 {
			continue
		}
		r := rand.New(rand.NewPCG(seed, 1))
		for range 6 {
			// Whole tiles, so that the answer is exact.
			a := (settled + r.IntN(n/tilePoints-settled)) * tilePoints
			b := min(a+(1+r.IntN(4))*tilePoints, n/tilePoints*tilePoints)
			var tile Tile
			p.tiles.refresh()
			p.tiles.over(&tile, a, b, n)
			tested++
			var high [Cells]int64
			for k := a; k <= b; k++ {
				var fill [Cells]int64
				for _, i := range p.liveAfter(nil, k) {
					x := p.Box(int(i))
					for o := x.Offset; o < x.Offset+x.Size; {
						c := o >> shift
						to := min((c+1)<<shift, x.Offset+x.Size)
						fill[c] += to - o
						o = to
					}
				}
				for c := range fill {
					high[c] = max(high[c], fill[c])
				}
			}
			for c := range high {
				want := 0
				if high[c] > 0 {
					want = min(max(int(high[c]*15>>shift), 1), 15)
				}
				if got := Cell(tile.Cell[c]).Fill(); got != want {
					t.Fatalf("seed %d, points [%d,%d), cell %d: fill %d, want %d", seed, a, b, c, got, want)
				}
			}
		}
	}
	if tested < 15 {
		t.Fatalf("only %d stretches were settled enough to be tested", tested)
	}
}
