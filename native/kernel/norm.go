package kernel

import "math"

// channelTile is how many channels are summed side by side.
const channelTile = 64

// batchStatistics fills the four outputs behind y for channels [from,to): mean
// and variance for the moving averages, mean and inverse deviation for the
// gradient. The variance handed out is that of the population that the batch
// is a sample of (n-1), as TensorFlow's is; the batch is normalised by its own.
func batchStatistics[T float](c *Call, from, to int) {
	epsilon := c.Node.Attrs.Value
	mean, variance := out[T](c, 1), out[T](c, 2)
	savedMean, inverse := out[T](c, 3), out[T](c, 4)
	if !c.Node.Attrs.Training {
		for j := from; j < to; j++ {
			m, v := in[T](c, 3)[j], in[T](c, 4)[j]
			mean[j], variance[j], savedMean[j] = m, v, m
			inverse[j] = T(1 / math.Sqrt(float64(v)+epsilon))
		}
		return
	}
	x, width := in[T](c, 0), inLast(c)
	n := float64(len(x) / width)
	var shift, sum, squares [channelTile]float64
	for from < to {
		k := min(to-from, channelTile)
		for i := range k {
			shift[i], sum[i], squares[i] = 0, 0, 0
			if n > 0 {
				// Differences to the first row keep the squares small.
				shift[i] = float64(x[from+i])
			}
		}
		for r := from; r < len(x); r += width {
			for i, v := range x[r : r+k] {
				d := float64(v) - shift[i]
				sum[i] += d
				squares[i] += d * d
			}
		}
		for i := range k {
			m := sum[i] / n
			v := max(0, squares[i]/n-m*m)
			mean[from+i], savedMean[from+i] = T(shift[i]+m), T(shift[i]+m)
			variance[from+i] = T(v * n / max(1, n-1))
			inverse[from+i] = T(1 / math.Sqrt(v+epsilon))
		}
		from += k
	}
}

// batchNormalise computes rows of y from the statistics. The running mean and
// variance are what it reads at inference, since they were saved.
func batchNormalise[T float](c *Call, from, to int) {
	x, y, width := in[T](c, 0), out[T](c, 0), inLast(c)
	scale, offset, mean, inverse := in[T](c, 1), in[T](c, 2), out[T](c, 3), out[T](c, 4)
	scale, offset, mean, inverse = scale[:width], offset[:width], mean[:width], inverse[:width]
	for r := from; r < to; r++ {
		xs, ys := x[r*width:][:width], y[r*width:][:width]
		for j, v := range xs {
			ys[j] = (v-mean[j])*(inverse[j]*scale[j]) + offset[j]
		}
	}
}

// batchNormSums gives dscale and doffset of channels [from,to).
func batchNormSums[T float](c *Call, from, to int) {
	dy, x, width := in[T](c, 0), in[T](c, 1), inLast(c)
	mean, inverse := in[T](c, 3), in[T](c, 4)
	var scale, offset [channelTile]float64
	for from < to {
		k := min(to-from, channelTile)
		clear(scale[:k])
		clear(offset[:k])
		for r := from; r < len(x); r += width {
			xs := x[r : r+k]
			for i, g := range dy[r : r+k] {
				offset[i] += float64(g)
				scale[i] += float64(g) * (float64(xs[i]) - float64(mean[from+i]))
			}
		}
		for i := range k {
			out[T](c, 1)[from+i] = T(scale[i] * float64(inverse[from+i]))
			out[T](c, 2)[from+i] = T(offset[i])
		}
		from += k
	}
}

// batchNormInput gives rows of dx, possibly over dy.
func batchNormInput[T float](c *Call, from, to int) {
	dy, x, dx, width := in[T](c, 0), in[T](c, 1), out[T](c, 0), inLast(c)
	scale, mean, inverse := in[T](c, 2)[:width], in[T](c, 3)[:width], in[T](c, 4)[:width]
	dscale, doffset := out[T](c, 1)[:width], out[T](c, 2)[:width]
	one := T(width) / T(max(1, len(x)))
	if !c.Node.Attrs.Training {
		one = 0 // the statistics are constants
	}
	for r := from; r < to; r++ {
		xs, gs, ds := x[r*width:][:width], dy[r*width:][:width], dx[r*width:][:width]
		for j, g := range gs {
			normal := (xs[j] - mean[j]) * inverse[j]
			ds[j] = scale[j] * inverse[j] * (g - one*(doffset[j]+normal*dscale[j]))
		}
	}
}

// layerNorm normalises rows.
func layerNorm[T float](c *Call, from, to int) {
	n, gamma, beta := inLast(c), in[T](c, 1), in[T](c, 2)
	for r := from; r < to; r++ {
		x, y := in[T](c, 0)[r*n:][:n], out[T](c, 0)[r*n:][:n]
		mean := rowSum(x, n, 1) / float64(n)
		var squares float64
		for _, v := range x {
			d := float64(v) - mean
			squares += d * d
		}
		inverse := 1 / math.Sqrt(squares/float64(n)+c.Node.Attrs.Value)
		for j, v := range x {
			y[j] = T((float64(v)-mean)*inverse)*gamma[j] + beta[j]
		}
		out[T](c, 1)[r], out[T](c, 2)[r] = T(mean), T(inverse)
	}
}

// layerNormSums gives dgamma and dbeta of columns [from,to).
func layerNormSums[T float](c *Call, from, to int) {
	dy, x, width := in[T](c, 0), in[T](c, 1), inLast(c)
	mean, inverse := in[T](c, 3), in[T](c, 4)
	var gamma, beta [channelTile]float64
	for from < to {
		k := min(to-from, channelTile)
		clear(gamma[:k])
		clear(beta[:k])
		for r, m := range mean[:len(x)/width] {
			xs := x[r*width+from:][:k]
			for i, g := range dy[r*width+from:][:k] {
				beta[i] += float64(g)
				gamma[i] += float64(g) * (float64(xs[i]) - float64(m)) * float64(inverse[r])
			}
		}
		for i := range k {
			out[T](c, 1)[from+i], out[T](c, 2)[from+i] = T(gamma[i]), T(beta[i])
		}
		from += k
	}
}

// layerNormInput gives rows of dx, possibly over dy or x.
func layerNormInput[T float](c *Call, from, to int) {
	n, gamma := inLast(c), in[T](c, 2)
	for r := from; r < to; r++ {
		dy, x, dx := in[T](c, 0)[r*n:][:n], in[T](c, 1)[r*n:][:n], out[T](c, 0)[r*n:][:n]
		mean, inverse := float64(in[T](c, 3)[r]), float64(in[T](c, 4)[r])
		var sum, dot float64
		for j, g := range dy {
			w := float64(g) * float64(gamma[j])
			sum += w
			dot += w * (float64(x[j]) - mean) * inverse
		}
		sum /= float64(n)
		dot /= float64(n)
		for j, g := range dy {
			normal := (float64(x[j]) - mean) * inverse
			dx[j] = T(inverse * (float64(g)*float64(gamma[j]) - sum - normal*dot))
		}
	}
}
