package analysis

import (
	"math"

	"tideline/shared/analysis/cause"
)

// BarCells counts the free cells of a usage bar and the longest run of them.
func BarCells(bar string) (free, longest int) {
	run := 0
	for i := range len(bar) {
		if bar[i] != '_' {
			run = 0
			continue
		}
		free++
		run++
		longest = max(longest, run)
	}
	return free, longest
}

// largestCard is more memory than any device has, in bytes. A pool that would
// have to be larger for the request to fit does not exist.
const largestCard = int64(288) << 30

// byBar judges by the usage bar alone. A cell is a hundredth of the pool; only
// if the request would need a larger pool than exists is the answer certain.
func byBar(bar string, pool, request amount) (Verdict, bool) {
	if len(bar) != 100 || !request.Known {
		return "", false
	}
	free, _ := BarCells(bar)
	size := largestCard
	if pool.Known {
		size = pool.N
	}
	if free == 0 || int64(free)*(size/100) < request.N {
		return Full, true
	}
	return FullOrFragmentedByBar, true
}

// barDenies says whether the usage bar speaks against a pool of the whole limit:
// it would hold much more free memory than the bar has free cells.
func barDenies(bar string, limit, inUse int64) bool {
	if len(bar) != 100 || limit <= 0 {
		return false
	}
	const doubt = 20 // cells that holes smaller than one may hide
	cells, _ := BarCells(bar)
	return 100*(float64(limit)-float64(inUse))/float64(limit) > float64(cells+doubt)
}

// emptyRun is how many free cells in one piece make a pool all but empty.
const emptyRun = 90

// emptyPool notes what a pool of unknown size can be at most: the request did
// not fit into the free piece that is nearly all of it. A piece of n cells is
// more than n-1 hundredths of the pool.
func (r *Reading) emptyPool() {
	_, run := BarCells(r.Bar)
	if len(r.Bar) != 100 || run < emptyRun || r.Pool.Known || !r.Requested.Known || r.Requested.N <= 0 || r.Requested.N > math.MaxInt64/100 {
		return
	}
	r.PoolAtMost = cause.Of(r.Requested.N * 100 / int64(run-1))
}
