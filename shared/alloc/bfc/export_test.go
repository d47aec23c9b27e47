package bfc

// ShortenWalks makes lists of more than n chunks long runs, so that short tests
// see both. n is at least 4.
func (a *Allocator) ShortenWalks(n int) {
	for t := range a.sets {
		a.sets[t].walk = n
	}
}
