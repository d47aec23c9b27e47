package kernel

import (
	"fmt"
	"slices"

	"tideline/shared/program"
)

// maxRank bounds the dimensions of a broadcast or reduction, so that the walk
// over them needs no memory.
const maxRank = 8

// walk goes over the elements of a shape in order and keeps, beside, the
// index into up to two tensors whose step along each dimension is given.
type walk struct {
	extent [maxRank]int64
	step   [2][maxRank]int64
	at     [maxRank]int64
	rank   int
}

// set makes the walk go over s, without a position in any tensor yet.
func (w *walk) set(s program.Shape) error {
	if len(s) > maxRank {
		return fmt.Errorf("%d dimensions, at most %d are supported", len(s), maxRank)
	}
	w.rank = copy(w.extent[:], s)
	return nil
}

// follow makes tensor t move as a tensor of shape s, aligned at the last
// dimension, moves under broadcasting: not at all along extents of 1.
func (w *walk) follow(t int, s program.Shape) {
	stride := int64(1)
	for d, extent := range slices.Backward(s) {
		if extent != 1 {
			w.step[t][w.rank-len(s)+d] = stride
		}
		stride *= extent
	}
}

// next moves the indexes to the next element.
func (w *walk) next(i, j *int64) {
	for d := w.rank - 1; d >= 0; d-- {
		w.at[d]++
		*i += w.step[0][d]
		*j += w.step[1][d]
		if w.at[d] < w.extent[d] {
			return
		}
		w.at[d] = 0
		*i -= w.step[0][d] * w.extent[d]
		*j -= w.step[1][d] * w.extent[d]
	}
}

func add(c *Call) error {
	return binary(c, func(a, b float32) float32 { return a + b })
}

func sub(c *Call) error {
	return binary(c, func(a, b float32) float32 { return a - b })
}

func mul(c *Call) error {
	return binary(c, func(a, b float32) float32 { return a * b })
}

// binary is right in place: an input as large as the output is walked in step
// with it.
func binary(c *Call, f func(a, b float32) float32) error {
	a, b, out := c.in(0), c.in(1), c.out(0)
	switch {
	case len(a) == len(out) && len(b) == len(out):
		for i := range out {
			out[i] = f(a[i], b[i])
		}
		return nil
	case len(a) == len(out) && len(b) == 1:
		y := b[0]
		for i := range out {
			out[i] = f(a[i], y)
		}
		return nil
	}
	var w walk
	if err := w.set(c.outValue(0).Shape); err != nil {
		return err
	}
	w.follow(0, c.inValue(0).Shape)
	w.follow(1, c.inValue(1).Shape)
	var i, j int64
	for k := range out {
		out[k] = f(a[i], b[j])
		w.next(&i, &j)
	}
	return nil
}

func broadcastTo(c *Call) error {
	x, out := c.in(0), c.out(0)
	if len(x) == 1 {
		for i := range out {
			out[i] = x[0]
		}
		return nil
	}
	var w walk
	if err := w.set(c.outValue(0).Shape); err != nil {
		return err
	}
	w.follow(0, c.inValue(0).Shape)
	var i, unused int64
	for k := range out {
		out[k] = x[i]
		w.next(&i, &unused)
	}
	return nil
}
