package store

// Window is a piece of time cut into W buckets of equal length, one for each
// pixel column. Bucket i covers [Edge(i), Edge(i+1)).
type Window struct {
	T0, T1 int64 // nanoseconds, T0 < T1
	W      int   // buckets
}

// Edge is where bucket i begins; Edge(W) is T1.
func (w Window) Edge(i int) int64 {
	d, n, k := w.T1-w.T0, int64(w.W), int64(i)
	// Divided first, so that long runs times many columns do not overflow.
	return w.T0 + d/n*k + d%n*k/n
}

// Bucket is the inverse of Edge: the bucket that holds time t, clamped to the
// window.
func (w Window) Bucket(t int64) int {
	if t <= w.T0 {
		return 0
	}
	if t >= w.T1 {
		return w.W - 1
	}
	i := int(float64(t-w.T0) / float64(w.T1-w.T0) * float64(w.W))
	i = min(max(i, 0), w.W-1)
	for i > 0 && w.Edge(i) > t {
		i--
	}
	for i < w.W-1 && w.Edge(i+1) <= t {
		i++
	}
	return i
}

// valid reports whether the window has any bucket, and its length is a number.
func (w Window) valid() bool { return w.W > 0 && w.T1 > w.T0 && w.T1-w.T0 > 0 }

func itoa(n int64) string {
	var b [20]byte
	i, neg := len(b), n < 0
	if neg {
		n = -n
	}
	for {
		i--
		b[i] = byte('0' + n%10)
		if n /= 10; n == 0 {
			break
		}
	}
	if neg {
		i--
		b[i] = '-'
	}
	return string(b[i:])
}
