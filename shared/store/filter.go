package store

import (
	"strings"

	"tideline/protocol/event"
)

// Filter lets allocations through whose tensor, a frame of whose stack, or whose
// op holds a text, in any case. Each string is looked at once, when first asked
// about, and remembered in two bits; an empty text lets everything through.
type Filter struct {
	text  string // in lower case
	names *event.Strings
	known []uint64 // two bits for each string: 0 not looked at, 1 no, 2 yes
}

// NewFilter is the filter for a text in the names of a timeline.
func NewFilter(t *Timeline, text string) *Filter {
	return &Filter{text: strings.ToLower(text), names: t.strings}
}

// Text is what is looked for, in lower case.
func (f *Filter) Text() string { return f.text }

// Passes reports whether an allocation of those names is let through.
func (f *Filter) Passes(tensor, op event.StringID) bool {
	return f.text == "" || f.holds(tensor) || tensor != op && f.holds(op)
}

func (f *Filter) holds(id event.StringID) bool {
	w, bit := int(id>>5), id&31*2
	if w < len(f.known) {
		if k := f.known[w] >> bit & 3; k != 0 {
			return k == 2
		}
	}
	if int(id) >= f.names.Len() {
		return false // it may be told yet
	}
	if w >= len(f.known) {
		more := make([]uint64, max(w+1, f.names.Len()/32+1))
		copy(more, f.known)
		f.known = more
	}
	yes := strings.Contains(strings.ToLower(f.names.At(id)), f.text)
	if yes {
		f.known[w] |= 2 << bit
	} else {
		f.known[w] |= 1 << bit
	}
	return yes
}

// Sift keeps the allocations of a pool that pass, in place.
func (f *Filter) Sift(p *Pool, ids []int32) []int32 {
	if f.text == "" {
		return ids
	}
	n := 0
	for _, i := range ids {
		if f.Passes(p.Names(int(i))) {
			ids[n] = i
			n++
		}
	}
	return ids[:n]
}
