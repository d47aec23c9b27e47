package analysis

// barCells counts the free cells of a usage bar and the longest run of them.
func barCells(bar string) (free, longest int) {
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
	free, _ := barCells(bar)
	size := largestCard
	if pool.Known {
		size = pool.N
	}
	if free == 0 || int64(free)*(size/100) < request.N {
		return Full, true
	}
	return FullOrFragmentedByBar, true
}
