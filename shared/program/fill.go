package program

// Fill writes the first values of variable id into dst, which holds its
// elements. The numbers depend on seed and id alone: the generator is
// splitmix64, of which the upper 24 bits of each draw make one number. A
// variable of another type has the same numbers, converted.
func (p *Program) Fill(dst []float32, id VariableID, seed uint64) { fill(p, dst, id, seed) }

// Fill64 is Fill for a float64 variable: the same numbers as in float32.
func (p *Program) Fill64(dst []float64, id VariableID, seed uint64) { fill(p, dst, id, seed) }

func fill[T float32 | float64](p *Program, dst []T, id VariableID, seed uint64) {
	init := p.Variables[id].Init
	switch init.Kind {
	case InitUniform:
		state := mix(seed) ^ mix(uint64(id)+0x5851f42d4c957f2d)
		scale := float32(init.Scale)
		for i := range dst {
			state += golden
			unit := float32(mix(state)>>40) * (1.0 / (1 << 23)) // exact, in [0,2)
			dst[i] = T(float32(unit-1) * scale)
		}
	case InitConstant:
		for i := range dst {
			dst[i] = T(init.Scale)
		}
	default:
		clear(dst)
	}
}

const golden = 0x9e3779b97f4a7c15

// mix is splitmix64's output function.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
