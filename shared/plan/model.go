package plan

import (
	"slices"
)

// span is a stretch of sections in which a buffer occupies the same bytes
// [low, high) of itself. Stretches in which it occupies none are left out.
type span struct {
	first, end int32 // sections [first, end)
	low, high  int64
}

// model is a problem in terms of sections: the stretches of time between
// neighbouring ends of lives and gaps, in which the live set is constant.
type model struct {
	p        *Problem
	times    []int64 // section s is [times[s], times[s+1])
	spans    []span
	spanAt   []int32 // the spans of buffer i are spans[spanAt[i]:spanAt[i+1]]
	sums     []int64 // bytes occupied in each section
	windowed bool    // some buffer occupies a part of itself
}

func (m *model) of(i int) []span { return m.spans[m.spanAt[i]:m.spanAt[i+1]] }

func (m *model) sections() int { return len(m.sums) }

func newModel(p *Problem) *model {
	m := &model{p: p, times: make([]int64, 0, 2*len(p.Buffers))}
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if b.Size == 0 {
			continue
		}
		m.times = append(m.times, b.Lower, b.Upper)
		for _, g := range b.Gaps {
			m.times = append(m.times, g.Lower, g.Upper)
		}
	}
	slices.Sort(m.times)
	m.times = slices.Compact(m.times)
	m.spanAt = make([]int32, len(p.Buffers)+1)
	m.spans = make([]span, 0, len(p.Buffers))
	for i := range p.Buffers {
		m.addSpans(&p.Buffers[i])
		m.spanAt[i+1] = int32(len(m.spans))
	}
	m.sums = make([]int64, max(len(m.times)-1, 0))
	m.sumUp(m.spans, m.sums, func(s span) int64 { return s.high - s.low })
	return m
}

func (m *model) addSpans(b *Buffer) {
	if b.Size == 0 {
		return
	}
	at := b.Lower
	for _, g := range b.Gaps {
		m.addSpan(at, g.Lower, 0, b.Size)
		m.addSpan(g.Lower, g.Upper, g.Low, g.High)
		if g.High > g.Low && g.High-g.Low < b.Size {
			m.windowed = true
		}
		at = g.Upper
	}
	m.addSpan(at, b.Upper, 0, b.Size)
}

func (m *model) addSpan(lower, upper, low, high int64) {
	if lower == upper || low == high {
		return
	}
	m.spans = append(m.spans, span{m.section(lower), m.section(upper), low, high})
}

// section is the one that begins at a time that is among the times.
func (m *model) section(t int64) int32 {
	i, _ := slices.BinarySearch(m.times, t)
	return int32(i)
}

// sumUp adds the weights of spans up per section.
func (m *model) sumUp(spans []span, into []int64, weight func(span) int64) {
	if len(into) == 0 {
		return
	}
	step := make([]int64, len(into)+1)
	for _, s := range spans {
		w := weight(s)
		step[s.first] += w
		step[s.end] -= w
	}
	var sum int64
	for s := range into {
		sum += step[s]
		into[s] = sum
	}
}

func (m *model) load() int64 {
	var l int64
	for _, s := range m.sums {
		l = max(l, s)
	}
	return l
}

// floor is a height that no plan can go below. It is the load, made sharper
// where offsets are coarser than sizes: where every offset is a multiple of g,
// all buffers but the topmost of a section take up a multiple of g.
func (m *model) floor() int64 {
	floor := m.load()
	g := int64(0)
	for i := range m.p.Buffers {
		b := &m.p.Buffers[i]
		if b.Fixed {
			floor = max(floor, b.Offset+b.Size)
		}
		floor = max(floor, b.Size)
		if a := b.align(); b.Size > 0 && (g == 0 || a < g) {
			g = a
		}
	}
	if g <= 1 || m.windowed {
		return floor
	}
	sums := make([]int64, len(m.sums))
	pad := make([]int64, len(m.sums)) // the most that the topmost buffer can save
	for i := range m.p.Buffers {
		size := m.p.Buffers[i].Size
		for _, s := range m.of(i) {
			for at := s.first; at < s.end; at++ {
				sums[at] += roundUp(size, g)
				pad[at] = max(pad[at], roundUp(size, g)-size)
			}
		}
	}
	for s := range sums {
		floor = max(floor, sums[s]-pad[s])
	}
	return floor
}

// Load is the largest sum of bytes occupied at one instant: no plan of any
// kind is lower. The problem must be valid.
func Load(p *Problem) int64 { return newModel(p).load() }

// Floor is a height that no plan can go below: the load, or more where
// alignment, a fixed offset or a single buffer asks for more. The problem must
// be valid.
func Floor(p *Problem) int64 { return newModel(p).floor() }
