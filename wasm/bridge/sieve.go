package bridge

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// sieve lets allocations through whose tensor, a frame of whose stack, or whose
// op holds a text, in any case. Each name is looked at once.
type sieve struct {
	tl    *store.Timeline
	text  string // in lower case; empty lets everything through
	known map[uint64]int
}

func newSieve(tl *store.Timeline, text string) *sieve {
	return &sieve{tl, strings.ToLower(text), map[uint64]int{}}
}

func (f *sieve) passes(tensor, op event.StringID) bool {
	return f.text == "" || f.holds(tensor) || tensor != op && f.holds(op)
}

func (f *sieve) holds(id event.StringID) bool {
	k := f.known[uint64(id)]
	if k == 0 {
		k = 1
		if strings.Contains(strings.ToLower(f.tl.Text(id)), f.text) {
			k = 2
		}
		f.known[uint64(id)] = k
	}
	return k == 2
}

// sift keeps the allocations that pass, in place.
func (f *sieve) sift(p *store.Pool, ids []int32) []int32 {
	if f.text == "" {
		return ids
	}
	n := 0
	for _, i := range ids {
		if f.passes(p.Names(int(i))) {
			ids[n] = i
			n++
		}
	}
	return ids[:n]
}
