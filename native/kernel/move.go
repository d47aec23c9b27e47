package kernel

import (
	"fmt"
	"slices"
	"unsafe"

	"tideline/shared/program"
)

// The kernels here move elements, whatever these are.

func nothing(*Call, int, int) {}

func assign(c *Call, _, _ int) {
	n := c.inValue(0).Bytes()
	copy(c.In[0][:n], c.In[1][:n])
}

// same has nothing to do where executors share the buffer, as they should for
// ops that alias.
func same(c *Call, _, _ int) {
	if unsafe.SliceData(c.Out[0]) != unsafe.SliceData(c.In[0]) {
		copy(c.Out[0][:c.outValue(0).Bytes()], c.In[0])
	}
}

func shape(c *Call, _, _ int) {
	for i, e := range c.inValue(0).Shape {
		out[int32](c, 0)[i] = int32(e)
	}
}

func broadcastTo(c *Call, from, to int) {
	var l lanes
	l.shape(c.outValue(0).Shape)
	l.follow(0, c.inValue(0).Shape)
	l.collapse()
	c.moveSized(&l, 0, from, to)
}

// strides gives the steps of a tensor of shape s along its dimensions.
func strides(s program.Shape) (step [maxRank]int) {
	n := 1
	for d, e := range slices.Backward(s) {
		step[d] = n
		n *= int(e)
	}
	return step
}

func transposeDims(c *Call, from, to int) {
	var l lanes
	l.shape(c.outValue(0).Shape)
	step := strides(c.inValue(0).Shape)
	for d, a := range c.Node.Attrs.Axes {
		l.step[0][d] = step[a]
	}
	l.collapse()
	c.moveSized(&l, 0, from, to)
}

func sliceOf(c *Call, from, to int) {
	var l lanes
	l.shape(c.outValue(0).Shape)
	step := strides(c.inValue(0).Shape)
	base := 0
	for d, b := range c.Node.Attrs.Begin {
		l.step[0][d] = step[d]
		base += int(b) * step[d]
	}
	l.collapse()
	c.moveSized(&l, base, from, to)
}

// tileOf walks over each dimension twice: the repetitions, along which the
// input stands still, and what is repeated.
func tileOf(c *Call, from, to int) {
	var l lanes
	step := strides(c.inValue(0).Shape)
	for d, e := range c.inValue(0).Shape {
		l.extent[2*d], l.extent[2*d+1] = int(c.Node.Attrs.Axes[d]), int(e)
		l.step[0][2*d+1] = step[d]
	}
	l.rank = 2 * len(c.inValue(0).Shape)
	l.collapse()
	c.moveSized(&l, 0, from, to)
}

// pad walks over the input, whose elements go to other places.
func pad(c *Call, _, _ int) {
	clear(c.Out[0][:c.outValue(0).Bytes()])
	if c.inValue(0).Shape.Elements() == 0 {
		return
	}
	size := int(c.inValue(0).DType.Size())
	var l lanes
	l.shape(c.inValue(0).Shape)
	l.extent[l.rank], l.step[0][l.rank] = size, 1 // bytes
	step := strides(c.outValue(0).Shape)
	base := 0
	for d, b := range c.Node.Attrs.Begin {
		l.step[0][d] = step[d] * size
		base += int(b) * step[d] * size
	}
	l.rank++
	l.collapse()
	l.seek(0)
	for x := c.In[0][:c.inValue(0).Bytes()]; len(x) > 0; {
		n := l.left()
		copy(c.Out[0][base+l.pos[0]:], x[:n])
		l.skip(n)
		x = x[n:]
	}
}

// concat lays pieces of all inputs side by side.
func concat(c *Call, _, _ int) {
	axis := c.Node.Attrs.Axes[0]
	outer := int(c.outValue(0).Shape[:axis].Elements())
	width := int(c.outValue(0).Bytes()) / max(1, outer)
	at := 0
	for i := range c.In {
		piece := int(c.inValue(i).Bytes()) / max(1, outer)
		for r := range outer {
			copy(c.Out[0][r*width+at:][:piece], c.In[i][r*piece:])
		}
		at += piece
	}
}

// split is the way back.
func split(c *Call, _, _ int) {
	axis := c.Node.Attrs.Axes[0]
	outer := int(c.inValue(0).Shape[:axis].Elements())
	width := int(c.inValue(0).Bytes()) / max(1, outer)
	at := 0
	for i := range c.Out {
		piece := int(c.outValue(i).Bytes()) / max(1, outer)
		for r := range outer {
			copy(c.Out[i][r*piece:][:piece], c.In[0][r*width+at:])
		}
		at += piece
	}
}

// checkRows refuses an index, of input which, that names no row of a tensor.
func (c *Call) checkRows(which int, rows int64) error {
	for r := range int(c.inValue(which).Shape.Elements()) {
		if i := c.index(which, r); i < 0 || i >= rows {
			return fmt.Errorf("index %d, at position %d, is outside of [0,%d)", i, r, rows)
		}
	}
	return nil
}

func checkGather(c *Call) error { return c.checkRows(1, c.inValue(0).Shape[0]) }

func gatherUnits(c *Call) int { return int(c.inValue(1).Shape.Elements()) }

func gather(c *Call, from, to int) {
	row := int(c.inValue(0).Shape[1:].Elements() * c.inValue(0).DType.Size())
	for r := from; r < to; r++ {
		copy(c.Out[0][r*row:][:row], c.In[0][int(c.index(1, r))*row:])
	}
}

func checkSegments(c *Call) error {
	rows := c.outValue(0).Shape[0]
	for r := range int(c.inValue(1).Shape.Elements()) {
		if i := c.index(1, r); i >= rows {
			return fmt.Errorf("segment %d, at position %d, is outside of [0,%d)", i, r, rows)
		}
	}
	return nil
}

// segmentWidth is the elements of a row of the result.
func segmentWidth(c *Call) int {
	s := c.outValue(0).Shape
	return int(s[1:].Elements())
}

// segmentSum adds columns [from,to) of all rows, in the order in which they
// come; a negative segment drops the row.
func segmentSum[T number](c *Call, from, to int) {
	x, y, width := in[T](c, 0), out[T](c, 0), segmentWidth(c)
	for r := 0; r < len(y); r += width {
		clear(y[r+from : r+to])
	}
	for r := range int(c.inValue(1).Shape.Elements()) {
		if s := int(c.index(1, r)); s >= 0 {
			dst := y[s*width+from : s*width+to]
			adds(dst, dst, x[r*width+from:][:len(dst)], 0)
		}
	}
}

// oneHot leaves a row of zeros for an index that is no class.
func oneHot(c *Call, from, to int) {
	n := last(c.outValue(0))
	for r := from; r < to; r++ {
		i := c.index(0, r)
		hot := i >= 0 && i < int64(n)
		at := r * n
		switch t := c.outValue(0).DType; t {
		case program.Float32:
			setHot(out[float32](c, 0)[at:at+n], hot, i, 1)
		case program.Float64:
			setHot(out[float64](c, 0)[at:at+n], hot, i, 1)
		case program.Int32:
			setHot(out[int32](c, 0)[at:at+n], hot, i, 1)
		case program.Int64:
			setHot(out[int64](c, 0)[at:at+n], hot, i, 1)
		case program.Float16:
			setHot(out[uint16](c, 0)[at:at+n], hot, i, 0x3c00)
		case program.BFloat16:
			setHot(out[uint16](c, 0)[at:at+n], hot, i, 0x3f80)
		case program.Uint8, program.Bool:
			setHot(out[uint8](c, 0)[at:at+n], hot, i, 1)
		}
	}
}

func setHot[T number | unit](row []T, hot bool, i int64, one T) {
	clear(row)
	if hot {
		row[i] = one
	}
}
