package store

// fanout is how many nodes of one pyramid level a node of the next covers.
const (
	fanoutBits = 4
	fanout     = 1 << fanoutBits
)

// extent is the range of values below a pyramid node.
type extent struct {
	lo, hi int64
	at     uint32 // index of the first point with value hi
}

const extentBytes = 24

func (e *extent) merge(o *extent) {
	e.lo = min(e.lo, o.lo)
	// Strictly greater, or earlier: at names the first point of the highest.
	if o.hi > e.hi || o.hi == e.hi && o.at < e.at {
		e.hi, e.at = o.hi, o.at
	}
}

// numbers is a step function of time: points with a value each, and a pyramid
// of extents above them. Level l has a node for each full run of 16^(l+1)
// points and none for the rest, so nodes never change once they are there. They
// are made for many points at once: before a chunk of points is packed, and
// before the pyramid is looked at.
type numbers struct {
	rows
	levels []vector[extent]
	tail   []extent // for each level the node above it that is being filled
	leaves int      // nodes of the lowest level
}

// The columns of numbers; extra is its owner's.
const (
	timeCol = iota
	valueCol
	extraCol
	numberCols
)

func newNumbers() numbers { return numbers{rows: rows{cols: numberCols}} }

func (s *numbers) time(i int) int64  { return s.at(timeCol, i) }
func (s *numbers) value(i int) int64 { return s.at(valueCol, i) }
func (s *numbers) extra(i int) int64 { return s.at(extraCol, i) }

func (s *numbers) push(t, v, extra int64) {
	if s.k == s.stride {
		s.more()
	}
	o, k := s.open, s.k
	s.k++
	s.n++
	_ = o[k+extraCol*s.stride]
	o[k+timeCol*s.stride], o[k+valueCol*s.stride], o[k+extraCol*s.stride] = t, v, extra
}

// more makes room for a point.
func (s *numbers) more() {
	s.settle()
	s.grow()
}

// settle makes the nodes that are missing. Their points lie open, as points are
// packed after it only.
func (s *numbers) settle() {
	for ; (s.leaves+1)<<fanoutBits <= s.n; s.leaves++ {
		i := s.leaves << fanoutBits
		k := i - (s.n - s.k)
		s.leaf(i, (*[fanout]int64)(s.open[valueCol*s.stride+k:]))
	}
}

// leaf puts the extent of a full run of points, from point i on, into the
// pyramid.
func (s *numbers) leaf(i int, v *[fanout]int64) {
	// Without a loop: in WebAssembly its turns cost more than what is done in it.
	lo := min(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15])
	hi := max(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11], v[12], v[13], v[14], v[15])
	at := 0
	for v[at&(fanout-1)] != hi {
		at++
	}
	first := uint32(i + at)
	for l := 0; ; l++ {
		if l == len(s.levels) {
			s.levels = append(s.levels, vector[extent]{})
			s.tail = append(s.tail, extent{})
		}
		n := s.levels[l].next()
		n.lo, n.hi, n.at = lo, hi, first
		// i is the number, within the next level's children, of the child that n is.
		i >>= fanoutBits
		up := &s.tail[l]
		if i&(fanout-1) == 0 {
			up.lo, up.hi, up.at = lo, hi, first
		} else {
			up.merge(n)
		}
		if i&(fanout-1) != fanout-1 {
			return
		}
		lo, hi, first = up.lo, up.hi, up.at
	}
}

// extent is the range of the values of points [a,b), a < b. It looks at no
// more than twice fanout nodes a level.
func (s *numbers) extent(a, b int) extent {
	v := s.value(a)
	e := extent{v, v, uint32(a)}
	lo, hi := (a+fanout-1)>>fanoutBits, b>>fanoutBits
	if lo >= hi {
		s.points(&e, a, b)
		return e
	}
	s.settle()
	s.points(&e, a, lo<<fanoutBits)
	s.points(&e, hi<<fanoutBits, b)
	for l := range s.levels {
		nodes := &s.levels[l]
		up, down := (lo+fanout-1)>>fanoutBits, hi>>fanoutBits
		if up >= down {
			for i := lo; i < hi; i++ {
				e.merge(nodes.at(i))
			}
			break
		}
		for i := lo; i < up<<fanoutBits; i++ {
			e.merge(nodes.at(i))
		}
		for i := down << fanoutBits; i < hi; i++ {
			e.merge(nodes.at(i))
		}
		lo, hi = up, down
	}
	return e
}

func (s *numbers) points(e *extent, a, b int) {
	for i := a; i < b; i++ {
		v := s.value(i)
		e.merge(&extent{v, v, uint32(i)})
	}
}

// before is the number of points with a time before t, searched from point
// from on.
func (s *numbers) before(t int64, from int) int { return s.after(timeCol, t-1, from) }

// upTo is the number of points with a time of t or before.
func (s *numbers) upTo(t int64) int { return s.after(timeCol, t, 0) }

// valueAfter is the value after the first n points; 0 when n is 0.
func (s *numbers) valueAfter(n int) int64 {
	if n == 0 {
		return 0
	}
	return s.value(n - 1)
}

// highest is the largest value that a step function has in [t0,t1), the value
// it comes in with included.
func (s *numbers) highest(t0, t1 int64) int64 {
	a := s.before(t0, 0)
	b := s.before(t1, a)
	v := s.valueAfter(a)
	if b > a {
		v = max(v, s.extent(a, b).hi)
	}
	return v
}

func (s *numbers) bytes() int64 {
	s.settle()
	n := s.rows.bytes()
	for i := range s.levels {
		n += s.levels[i].bytes(extentBytes)
	}
	return n
}
