package plan

// xorshift is a small generator of numbers that look random.
type xorshift uint64

// newXorshift begins a sequence; any seed will do.
func newXorshift(seed uint64) xorshift { return xorshift(seed*0x9e3779b97f4a7c15 | 1) }

func (x *xorshift) next() uint64 {
	*x ^= *x << 13
	*x ^= *x >> 7
	*x ^= *x << 17
	return uint64(*x) >> 11
}

// below draws a number from 0 to n-1.
func (x *xorshift) below(n int64) int64 { return int64(x.next() % uint64(n)) }

// Puzzle makes up a problem of so many buffers whose optimum is its load by
// construction, and hard to find: a full rectangle of time and bytes, cut into
// pieces. It is for tests and measurements. There must be room for the cuts.
func Puzzle(pieces int, width, height int64, seed uint64) *Problem {
	type rect struct{ t0, t1, b0, b1 int64 }
	r := newXorshift(seed)
	rects := []rect{{0, width, 0, height}}
	for len(rects) < pieces {
		i := r.below(int64(len(rects)))
		left := rects[i]
		right := left
		switch inTime := r.below(2) == 0; {
		case inTime && left.t1-left.t0 > 1:
			cut := left.t0 + 1 + r.below(left.t1-left.t0-1)
			left.t1, right.t0 = cut, cut
		case !inTime && left.b1-left.b0 > 1:
			cut := left.b0 + 1 + r.below(left.b1-left.b0-1)
			left.b1, right.b0 = cut, cut
		default:
			continue
		}
		rects[i] = left
		rects = append(rects, right)
	}
	p := &Problem{}
	for _, c := range rects {
		p.Buffers = append(p.Buffers, Buffer{Lower: c.t0, Upper: c.t1, Size: c.b1 - c.b0})
	}
	return p
}

// Training makes up a problem in the shape of a training step of so many
// buffers: parameters that live throughout, activations that wait for their
// backward step, and scratch that lives for a step or two. It is for tests and
// measurements.
func Training(buffers int, seed uint64) *Problem {
	r := newXorshift(seed)
	p := &Problem{Buffers: make([]Buffer, 0, buffers)}
	steps := int64(max(buffers/2, 2)) // forward and backward
	for i := range buffers {
		at := int64(i) % steps
		size := 256 << r.below(13) // up to 1 MiB, in eighths above
		b := Buffer{Lower: at, Size: int64(size) + int64(size)/8*r.below(8)}
		switch kind := r.below(10); {
		case kind == 0:
			b.Lower, b.Upper = 0, steps
		case kind < 5 && at < steps/2:
			b.Upper = steps - at
		default:
			b.Upper = min(at+1+r.below(3), steps)
		}
		p.Buffers = append(p.Buffers, b)
	}
	return p
}
