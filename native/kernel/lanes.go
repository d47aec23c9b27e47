package kernel

import (
	"slices"

	"tideline/shared/program"
)

// lanes walks over the elements of a shape, in order, run by run along the
// innermost dimension, and keeps the index into up to three tensors whose step
// along each dimension is given. Neighbouring dimensions that all tensors
// cross evenly are made one first, so that runs are long.
type lanes struct {
	rank   int
	extent [2 * maxRank]int
	step   [3][2 * maxRank]int
	at     [2 * maxRank]int
	pos    [3]int
}

// shape makes the walk go over s, with every tensor standing still.
func (l *lanes) shape(s program.Shape) {
	l.rank = len(s)
	for d, e := range s {
		l.extent[d] = int(e)
	}
}

// follow makes tensor t move as a tensor of shape s, aligned at the last
// dimension, moves under broadcasting: not at all along extents of 1.
func (l *lanes) follow(t int, s program.Shape) {
	stride := 1
	for d, extent := range slices.Backward(s) {
		if extent != 1 {
			l.step[t][l.rank-len(s)+d] = stride
		}
		stride *= int(extent)
	}
}

// collapse joins dimensions. A walk has one dimension at least.
func (l *lanes) collapse() {
	n := 0
	for d := range l.rank {
		if l.extent[d] == 1 {
			continue
		}
		if n > 0 && l.joins(n-1, d) {
			l.extent[n-1] *= l.extent[d]
		} else {
			l.extent[n] = l.extent[d]
			n++
		}
		for t := range l.step {
			l.step[t][n-1] = l.step[t][d]
		}
	}
	if n == 0 {
		l.extent[0], l.step[0][0], l.step[1][0], l.step[2][0] = 1, 1, 1, 1
		n = 1
	}
	l.rank = n
}

func (l *lanes) joins(a, b int) bool {
	for t := range l.step {
		if l.step[t][a] != l.step[t][b]*l.extent[b] {
			return false
		}
	}
	return true
}

// seek goes to an element.
func (l *lanes) seek(to int) {
	l.pos = [3]int{}
	for d := l.rank - 1; d >= 0; d-- {
		if l.extent[d] == 0 {
			continue
		}
		l.at[d] = to % l.extent[d]
		to /= l.extent[d]
		for t := range l.pos {
			l.pos[t] += l.at[d] * l.step[t][d]
		}
	}
}

// left is how many elements the run has from here.
func (l *lanes) left() int { return l.extent[l.rank-1] - l.at[l.rank-1] }

// stride is the step of tensor t along a run.
func (l *lanes) stride(t int) int { return l.step[t][l.rank-1] }

// skip goes n elements on, at most to the end of the run.
func (l *lanes) skip(n int) {
	for d := l.rank - 1; ; d-- {
		l.at[d] += n
		for t := range l.pos {
			l.pos[t] += n * l.step[t][d]
		}
		if l.at[d] < l.extent[d] || d == 0 {
			return
		}
		l.at[d] = 0
		for t := range l.pos {
			l.pos[t] -= l.extent[d] * l.step[t][d]
		}
		n = 1
	}
}

// move writes elements [from,to) of the walk: out[k] = x[tensor 0's index].
func move[T unit](l *lanes, y, x []T, base, from, to int) {
	l.seek(from)
	for from < to {
		n := min(l.left(), to-from)
		dst, p := y[from:from+n], base+l.pos[0]
		switch s := l.stride(0); s {
		case 1:
			copy(dst, x[p:p+n])
		case 0:
			fill(dst, x[p])
		default:
			for i := range dst {
				dst[i] = x[p]
				p += s
			}
		}
		l.skip(n)
		from += n
	}
}

func fill[T number | unit](dst []T, x T) {
	for i := range dst {
		dst[i] = x
	}
}

// moveSized is move for elements of any size.
func (c *Call) moveSized(l *lanes, base, from, to int) {
	switch c.outValue(0).DType.Size() {
	case 1:
		move(l, out[uint8](c, 0), in[uint8](c, 0), base, from, to)
	case 2:
		move(l, out[uint16](c, 0), in[uint16](c, 0), base, from, to)
	case 4:
		move(l, out[uint32](c, 0), in[uint32](c, 0), base, from, to)
	case 8:
		move(l, out[uint64](c, 0), in[uint64](c, 0), base, from, to)
	}
}
