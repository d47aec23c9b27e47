package store

// lifetimes answers which records of an ordered list are open at an instant.
// Records begin in order; each ends once, later, and ends come in order too.
// Instants are numbers that only grow: counts of points, or times.
//
// Above the ends lies a tree of fan-out 64. A node knows which of its children
// still have an open record, and once none has, the latest end below it. The
// nodes of records that began or ended are only noted, and made anew when the
// tree is looked at: while a file is read, once.
type lifetimes[E uint32 | int64] struct {
	end    vector[E] // 0 while open
	levels []vector[reach[E]]
	node   int      // 1 + the node of the lowest level that was noted last
	stale  []int32  // nodes of the lowest level that were noted
	noted  []uint64 // a bit for each node: it is among them
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
	if i>>reachBits+1 != x.node {
		x.turn(i >> reachBits)
	}
	x.end.n = i + 1 // a chunk is born with zeros
}

// finish ends record i at an instant of at least 1.
func (x *lifetimes[E]) finish(i int, at E) {
	*x.end.at(i) = at
	if i>>reachBits+1 != x.node {
		x.turn(i >> reachBits)
	}
}

// turn notes a node of the lowest level, and makes room for its records.
func (x *lifetimes[E]) turn(node int) {
	if node<<reachBits>>vectorBits == len(x.end.chunks) {
		x.end.chunks = append(x.end.chunks, new([vectorLen]E))
	}
	x.node = node + 1
	w, bit := node>>6, uint64(1)<<(node&63)
	if w == len(x.noted) {
		x.noted = append(x.noted, 0)
	}
	if x.noted[w]&bit == 0 {
		x.noted[w] |= bit
		x.stale = append(x.stale, int32(node))
	}
}

// settle makes the nodes that were noted anew, which must be done before the
// tree is looked at.
func (x *lifetimes[E]) settle() {
	for _, node := range x.stale {
		x.noted[node>>6] &^= 1 << (node & 63)
		x.renew(int(node))
	}
	x.stale, x.node = x.stale[:0], 0
}

// renew makes a node of the lowest level of its records, and tells those above.
func (x *lifetimes[E]) renew(i int) {
	from := i << reachBits
	ends := x.end.chunks[from>>vectorBits][from&(vectorLen-1):]
	var n reach[E]
	for k, end := range ends[:min(reachMask+1, x.end.n-from)] {
		if end == 0 {
			n.open |= 1 << k
		}
		n.last = max(n.last, end)
	}
	if len(x.levels) == 0 {
		x.levels = append(x.levels, vector[reach[E]]{})
	}
	*x.levels[0].reach(i) = n
	for l := 1; x.levels[l-1].n > 1; l++ {
		if l == len(x.levels) {
			x.levels = append(x.levels, vector[reach[E]]{})
			x.tell(l, 0) // the one that needed none above it
		}
		x.tell(l, i)
		i >>= reachBits
	}
}

// tell makes child i of level l known there.
func (x *lifetimes[E]) tell(l, i int) {
	child := x.levels[l-1].at(i)
	n := x.levels[l].reach(i >> reachBits)
	bit := uint64(1) << (i & reachMask)
	if n.open &^= bit; child.open != 0 {
		n.open |= bit
	}
	n.last = max(n.last, child.last)
}

// reaching appends the records [from,to) that are open or end after instant
// at; it stops when dst has limit entries (0: no limit).
func (x *lifetimes[E]) reaching(dst []int32, from, to int, at E, limit int) []int32 {
	if to-from < 2*reachMask {
		return x.leaves(dst, from, to, at, limit)
	}
	x.settle()
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
	x.settle()
	n := x.end.bytes(end) + 4*int64(cap(x.stale)) + 8*int64(cap(x.noted))
	for i := range x.levels {
		n += x.levels[i].bytes(16)
	}
	return n
}
