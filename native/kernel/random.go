package kernel

import "tideline/shared/program"

// draws are the random numbers of one call: number i depends on the run's
// seed, the step, the node's own seed and i alone, so that any core, any host
// and a recomputation get the same.
type draws struct{ key uint64 }

const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio, as in splitmix64

func (c *Call) draws() draws {
	k := mix(c.Seed + golden)
	k = mix(k ^ uint64(c.Node.Attrs.Seed)*golden)
	return draws{mix(k + uint64(c.Step)*golden)}
}

// at gives 64 random bits: splitmix64 at position i of the stream of the key.
func (d draws) at(i int) uint64 { return mix(d.key + uint64(i+1)*golden) }

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// kept is the least draw that keeps an element; 0 keeps all.
func kept(rate float64) uint64 {
	switch {
	case rate <= 0:
		return 0
	case rate >= 1:
		return 1<<64 - 1
	}
	return uint64(rate * (1 << 32) * (1 << 32))
}

// keepScale is what makes up for the dropped elements.
func keepScale(rate float64) float64 {
	if rate >= 1 {
		return 0
	}
	return 1 / (1 - rate)
}

func dropout[T float](c *Call, from, to int) {
	x, y, mask := in[T](c, 0), out[T](c, 0), out[uint8](c, 1)
	rate, d := c.Node.Attrs.Value, c.draws()
	scale, limit := T(keepScale(rate)), kept(rate)
	for i := from; i < to; i++ {
		if d.at(i) >= limit {
			y[i], mask[i] = x[i]*scale, 1
		} else {
			y[i], mask[i] = 0, 0
		}
	}
}

func dropoutGrad[T float](c *Call, from, to int) {
	dy, mask, dx := in[T](c, 0), in[uint8](c, 1), out[T](c, 0)
	scale := T(keepScale(c.Node.Attrs.Value))
	for i := from; i < to; i++ {
		if mask[i] != 0 {
			dx[i] = dy[i] * scale
		} else {
			dx[i] = 0
		}
	}
}

// randomUniform takes as many bits as the type's significand has, so that no
// number is rounded up to 1.
func randomUniform(c *Call, from, to int) {
	d := c.draws()
	switch t := c.outValue(0).DType; t {
	case program.Float32:
		y := out[float32](c, 0)
		for i := from; i < to; i++ {
			y[i] = float32(d.at(i)>>40) / (1 << 24)
		}
	case program.Float64:
		y := out[float64](c, 0)
		for i := from; i < to; i++ {
			y[i] = float64(d.at(i)>>11) / (1 << 53)
		}
	case program.Float16:
		y := out[uint16](c, 0)
		for i := from; i < to; i++ {
			y[i] = toFloat16(float32(d.at(i)>>53) / (1 << 11))
		}
	case program.BFloat16:
		y := out[uint16](c, 0)
		for i := from; i < to; i++ {
			y[i] = toBFloat16(float32(d.at(i)>>56) / (1 << 8))
		}
	default:
		panic("no kernel for " + t.String())
	}
}
