package kernel

// lstmCell goes sample by sample. Gates lie as input, candidate, forget,
// output.
func lstmCell[T float](c *Call, from, to int) {
	h := last(c.inValue(1))
	for r := from; r < to; r++ {
		pre, old := in[T](c, 0)[r*4*h:][:4*h], in[T](c, 1)[r*h:][:h]
		gates, cell, hidden := out[T](c, 0)[r*4*h:][:4*h], out[T](c, 1)[r*h:][:h], out[T](c, 2)[r*h:][:h]
		for j, was := range old {
			i, g := sigmoid(float64(pre[j])), tanhOf(float64(pre[h+j]))
			f, o := sigmoid(float64(pre[2*h+j])), sigmoid(float64(pre[3*h+j]))
			now := f*float64(was) + i*g
			gates[j], gates[h+j], gates[2*h+j], gates[3*h+j] = T(i), T(g), T(f), T(o)
			cell[j], hidden[j] = T(now), T(o*tanhOf(now))
		}
	}
}

// lstmCellGrad gives the gradients of pre-activations and old state.
func lstmCellGrad[T float](c *Call, from, to int) {
	h := last(c.inValue(1))
	for r := from; r < to; r++ {
		gates, old, now := in[T](c, 0)[r*4*h:][:4*h], in[T](c, 1)[r*h:][:h], in[T](c, 2)[r*h:][:h]
		dc, dh := in[T](c, 3)[r*h:][:h], in[T](c, 4)[r*h:][:h]
		dpre, dold := out[T](c, 0)[r*4*h:][:4*h], out[T](c, 1)[r*h:][:h]
		for j := range h {
			i, g, f, o := gates[j], gates[h+j], gates[2*h+j], gates[3*h+j]
			t, up, was := tanhOf(now[j]), dh[j], old[j]
			d := dc[j] + up*o*(1-t*t)
			dpre[j] = d * g * i * (1 - i)
			dpre[h+j] = d * i * (1 - g*g)
			dpre[2*h+j] = d * was * f * (1 - f)
			dpre[3*h+j] = up * t * o * (1 - o)
			dold[j] = d * f
		}
	}
}

// lstmRows is the number of samples.
func lstmRows(c *Call) int { return int(c.inValue(1).Shape.Elements()) / max(1, last(c.inValue(1))) }
