package kernel

import "math"

func applySGD(c *Call) error {
	w, rate, g := c.in(0), c.in(1)[0], c.in(2)
	for i := range w {
		w[i] -= rate * g[i]
	}
	return nil
}

// applyAdam follows TensorFlow's formula: the bias correction is folded into
// the rate, and epsilon is added to the uncorrected root.
func applyAdam(c *Call) error {
	w, m, v, g := c.in(0), c.in(1), c.in(2), c.in(9)
	power1, power2 := float64(c.in(3)[0]), float64(c.in(4)[0])
	beta1, beta2, epsilon := c.in(6)[0], c.in(7)[0], c.in(8)[0]
	rate := float32(float64(c.in(5)[0]) * math.Sqrt(1-power2) / (1 - power1))
	for i, d := range g {
		m[i] += (d - m[i]) * (1 - beta1)
		v[i] += (d*d - v[i]) * (1 - beta2)
		w[i] -= rate * m[i] / (float32(math.Sqrt(float64(v[i]))) + epsilon)
	}
	return nil
}
