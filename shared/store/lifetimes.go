package store

// lifetimes answers which records of an ordered list are open at an instant.
// Records begin in order; each ends once, later, and ends come in order too.
// Instants are numbers that only grow: counts of points, or times.
//
// Above the ends lies a tree of fan-out 64. A node knows which of its children
// still have an open record, and once none has, the latest end below it, which
// is simply the latest one told. So beginning and ending touch a single node,
// but for the first and the last of the records open below it.
type lifetimes[E uint32 | int64] struct {
	end    vector[E] // 0 while open
	levels []vector[reach[E]]
}

type reach[E uint32 | int64] struct {
	open uint64 // bit for each child with an open record
	last E      // latest end below, while none is open
}

const (
	reachBits = 6
	reachMask = 1<<reachBits - 1
)

// begin adds an open record.
func (x *lifetimes[E]) begin() {
	i := x.end.n
	x.end.push(0)
	if i&reachMask != 0 {
		n := x.levels[0].at(i >> reachBits)
		if n.open != 0 {
			n.open |= 1 << (i & reachMask)
			return
		}
	}
	x.beginFirst(i)
}

// beginFirst is begin for a record that is the only open one of its node.
func (x *lifetimes[E]) beginFirst(i int) {
	for l := 0; ; l++ {
		if l == len(x.levels) {
			if l > 0 && i == 0 {
				return // a single node needs none above it
			}
			x.addLevel()
		}
		bit := uint64(1) << (i & reachMask)
		i >>= reachBits
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

// addLevel puts a level above the top one, which just got its second node.
func (x *lifetimes[E]) addLevel() {
	l := len(x.levels)
	x.levels = append(x.levels, vector[reach[E]]{})
	if l == 0 {
		return
	}
	first := x.levels[l-1].at(0)
	n := reach[E]{last: first.last}
	if first.open != 0 {
		n.open = 1
	}
	x.levels[l].push(n)
}

// finish ends record i at an instant of at least 1.
func (x *lifetimes[E]) finish(i int, at E) {
	*x.end.at(i) = at
	n := x.levels[0].at(i >> reachBits)
	if n.open &^= 1 << (i & reachMask); n.open == 0 {
		x.closed(i>>reachBits, at)
	}
}

// closed tells the nodes above that node i of the lowest level has no open
// record left.
func (x *lifetimes[E]) closed(i int, at E) {
	x.levels[0].at(i).last = at
	for l := 1; l < len(x.levels); l++ {
		bit := uint64(1) << (i & reachMask)
		i >>= reachBits
		n := x.levels[l].at(i)
		if n.open &^= bit; n.open != 0 {
			return
		}
		n.last = at
	}
}

// reaching appends the records [from,to) that are open or end after instant
// at; it stops when dst has limit entries (0: no limit).
func (x *lifetimes[E]) reaching(dst []int32, from, to int, at E, limit int) []int32 {
	if to-from < 2*reachMask {
		return x.leaves(dst, from, to, at, limit)
	}
	return x.walk(dst, len(x.levels)-1, 0, from, to, at, limit)
}

// walk visits the children of one node above level l, or the nodes of the top
// level, as far as they touch [from,to).
func (x *lifetimes[E]) walk(dst []int32, l, parent, from, to int, at E, limit int) []int32 {
	shift := reachBits * (l + 1)
	nodes := &x.levels[l]
	lo := max(parent<<reachBits, from>>shift)
	hi := min((to-1)>>shift+1, nodes.n)
	if l < len(x.levels)-1 {
		hi = min(hi, (parent+1)<<reachBits)
	}
	for i := lo; i < hi; i++ {
		if limit > 0 && len(dst) >= limit {
			return dst
		}
		n := nodes.at(i)
		if n.open == 0 && n.last <= at {
			continue
		}
		if l > 0 {
			dst = x.walk(dst, l-1, i, from, to, at, limit)
		} else {
			dst = x.leaves(dst, max(from, i<<reachBits), min(to, (i+1)<<reachBits), at, limit)
		}
	}
	return dst
}

func (x *lifetimes[E]) leaves(dst []int32, from, to int, at E, limit int) []int32 {
	for r := from; r < to; r++ {
		if end := *x.end.at(r); end == 0 || end > at {
			if limit > 0 && len(dst) >= limit {
				return dst
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
		n += x.levels[i].bytes(16)
	}
	return n
}
