package store

// lifetimes answers which records of an ordered list are open at an instant.
// Records begin in order; each ends once, later, and ends come in order too.
// Instants are numbers that only grow: here, counts of points.
//
// Above the ends lies a tree of fan-out 16. A node knows the latest end below
// it, which is simply the latest one told, and which of its children still
// have an open record: so both beginning and ending cost a store a level.
type lifetimes[E uint32 | int64] struct {
	end    vector[E] // 0 while open
	levels []vector[reach[E]]
}

type reach[E uint32 | int64] struct {
	last E      // latest end below
	open uint16 // bit for each child with an open record
}

func (x *lifetimes[E]) len() int { return x.end.n }

// begin adds an open record.
func (x *lifetimes[E]) begin() {
	i := x.end.n
	x.end.push(0)
	for l := 0; ; l++ {
		if l == len(x.levels) {
			if i == 0 {
				// The level below has a single node yet: no need for one above.
				if l > 0 {
					return
				}
				x.levels = append(x.levels, vector[reach[E]]{})
			} else {
				x.addLevel(l)
			}
		}
		bit := uint16(1) << (i & (fanout - 1))
		i >>= fanoutBits
		nodes := &x.levels[l]
		if i == nodes.n {
			nodes.push(reach[E]{})
		}
		n := nodes.at(i)
		was := n.open
		n.open |= bit
		if was != 0 {
			return
		}
	}
}

// addLevel puts a level above level l-1, which just got its second node.
func (x *lifetimes[E]) addLevel(l int) {
	first := x.levels[l-1].at(0)
	x.levels = append(x.levels, vector[reach[E]]{})
	n := reach[E]{last: first.last}
	if first.open != 0 {
		n.open = 1
	}
	x.levels[l].push(n)
}

// finish ends record i at an instant of at least 1.
func (x *lifetimes[E]) finish(i int, at E) {
	*x.end.at(i) = at
	closed := true
	for l := range x.levels {
		bit := uint16(1) << (i & (fanout - 1))
		i >>= fanoutBits
		n := x.levels[l].at(i)
		n.last = at
		if closed {
			n.open &^= bit
			closed = n.open == 0
		}
	}
}

// reaching appends the records below bound that are open or end after instant
// at; it stops when dst has limit entries (0: no limit).
func (x *lifetimes[E]) reaching(dst []int32, bound int, at E, limit int) []int32 {
	if bound == 0 || len(x.levels) == 0 {
		return dst
	}
	top := len(x.levels) - 1
	for i := range x.levels[top].n {
		dst = x.walk(dst, top, i, bound, at, limit)
	}
	return dst
}

func (x *lifetimes[E]) walk(dst []int32, l, i, bound int, at E, limit int) []int32 {
	n := x.levels[l].at(i)
	if limit > 0 && len(dst) >= limit || i<<(fanoutBits*(l+1)) >= bound || n.open == 0 && n.last <= at {
		return dst
	}
	first := i << fanoutBits
	if l > 0 {
		for c := first; c < min(first+fanout, x.levels[l-1].n); c++ {
			dst = x.walk(dst, l-1, c, bound, at, limit)
		}
		return dst
	}
	for r := first; r < min(first+fanout, bound); r++ {
		if end := *x.end.at(r); end == 0 || end > at {
			if limit > 0 && len(dst) >= limit {
				break
			}
			dst = append(dst, int32(r))
		}
	}
	return dst
}

// bytes is the memory held, given the size of an end in bytes.
func (x *lifetimes[E]) bytes(end int) int64 {
	n := x.end.bytes(end)
	for i := range x.levels {
		n += x.levels[i].bytes(2 * end)
	}
	return n
}
