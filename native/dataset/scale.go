package dataset

// Scale is the map function of the input pipeline: it writes an 8x8 image
// into dst as size x size pixels from 0 to 1, interpolated linearly between
// pixel centres; outside of the outermost centres the edge goes on.
func Scale(dst []float32, image []uint8, size int) {
	var rows, cols sampler
	for y := range size {
		rows.set(y, size)
		top, bottom := image[rows.low*Side:][:Side], image[rows.high*Side:][:Side]
		line := dst[y*size:][:size]
		for x := range line {
			cols.set(x, size)
			upper := cols.mix(float32(top[cols.low]), float32(top[cols.high]))
			lower := cols.mix(float32(bottom[cols.low]), float32(bottom[cols.high]))
			line[x] = rows.mix(upper, lower) * (1.0 / Levels)
		}
	}
}

// sampler finds the two source pixels that a target pixel lies between.
type sampler struct {
	low, high int
	weight    float32 // of high
}

func (s *sampler) set(at, size int) {
	pos := float32(float32(at)+0.5)*Side/float32(size) - 0.5
	pos = min(max(pos, 0), Side-1)
	s.low = int(pos)
	s.high = min(s.low+1, Side-1)
	s.weight = pos - float32(s.low)
}

// mix rounds each product by itself, so that all hosts agree.
func (s *sampler) mix(a, b float32) float32 {
	return a + float32((b-a)*s.weight)
}
