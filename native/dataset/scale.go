package dataset

// Mean and Deviation are those of the grey levels of the digits to train on.
const (
	Mean      = 4.8929
	Deviation = 6.0231
)

// Scale is the map function of the input pipeline: it writes an 8x8 image
// into dst as size x size pixels, interpolated linearly between pixel centres;
// outside of the outermost centres the edge goes on. Grey levels are centred
// and scaled to a deviation of 1, without which what all images share drowns
// what tells them apart: the mlp then needs more than twice the steps.
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
			line[x] = float32(rows.mix(upper, lower)-Mean) * (1 / Deviation)
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
