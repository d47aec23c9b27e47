package kernel

import "math"

// The loops here read element i of every input before they write element i,
// which makes them right in place.

func tanh(c *Call) error {
	x, y := c.in(0), c.out(0)
	for i, v := range x {
		y[i] = tanh32(v)
	}
	return nil
}

// tanh32 takes the exponential in double precision: below 1e-4 the cubic term
// is under half a unit in the last place of a float32, above it the quotient
// loses nothing that a float32 could hold.
func tanh32(x float32) float32 {
	switch {
	case x > 9.1:
		return 1
	case x < -9.1:
		return -1
	case x < 1e-4 && x > -1e-4:
		return x
	}
	e := math.Exp(2 * float64(x))
	return float32((e - 1) / (e + 1))
}

func tanhGrad(c *Call) error {
	y, dy, dx := c.in(0), c.in(1), c.out(0)
	for i := range dx {
		dx[i] = dy[i] * (1 - y[i]*y[i])
	}
	return nil
}

func relu(c *Call) error {
	x, y := c.in(0), c.out(0)
	for i, v := range x {
		y[i] = max(v, 0)
	}
	return nil
}

func reluGrad(c *Call) error {
	dy, y, dx := c.in(0), c.in(1), c.out(0)
	for i := range dx {
		if y[i] > 0 {
			dx[i] = dy[i]
		} else {
			dx[i] = 0
		}
	}
	return nil
}

func addN(c *Call) error {
	out := c.out(0)
	if len(c.In) == 2 {
		a, b := c.in(0), c.in(1)
		for i := range out {
			out[i] = a[i] + b[i]
		}
		return nil
	}
	for i := range out {
		var s float32
		for j := range c.In {
			s += elements[float32](c.In[j])[i]
		}
		out[i] = s
	}
	return nil
}

func biasAdd(c *Call) error {
	x, bias, y := c.in(0), c.in(1), c.out(0)
	for r := 0; r < len(x); r += len(bias) {
		xs, ys := x[r:r+len(bias)], y[r:r+len(bias)]
		for j, b := range bias {
			ys[j] = xs[j] + b
		}
	}
	return nil
}

func biasAddGrad(c *Call) error {
	dy, db := c.in(0), c.out(0)
	clear(db)
	for r := 0; r < len(dy); r += len(db) {
		row := dy[r : r+len(db)]
		for j, g := range row {
			db[j] += g
		}
	}
	return nil
}
