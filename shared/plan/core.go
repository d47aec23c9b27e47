package plan

import (
	"slices"
)

// run is a stretch of sections [first, end).
type run struct{ first, end int32 }

// core is a problem as the search sees it: buffers of some size, each taking
// up all of itself in one or more runs of sections, and the sections that can
// bind. A section whose live set is contained in a neighbour's cannot.
//
// A buffer that occupies a part of itself for a while is taken as whole then:
// plans of the core are plans of the problem, not the other way round.
type core struct {
	ids      []int32 // position in the problem
	size     []int64
	align    []int64
	fixed    []int64 // offset, or -1
	runs     [][]run
	life     []int64 // duration, as the problem has it
	sections int
	floor    int64   // the largest sum of a section, or what a fixed offset asks for
	peaks    []int64 // the largest sum in each buffer's life
	grain    int64   // heights are sums of sizes, hence multiples of this
	any      bool    // some buffer is fixed
}

func newCore(m *model) *core {
	c := &core{}
	starts := make([]bool, len(m.times)+1)
	ends := make([]bool, len(m.times)+1)
	for i := range m.p.Buffers {
		spans := m.of(i)
		if len(spans) == 0 {
			continue
		}
		b := &m.p.Buffers[i]
		c.ids = append(c.ids, int32(i))
		c.size = append(c.size, b.Size)
		c.life = append(c.life, b.Upper-b.Lower)
		c.align = append(c.align, b.align())
		fixed := int64(-1)
		if b.Fixed {
			fixed = b.Offset
		}
		c.fixed = append(c.fixed, fixed)
		runs := make([]run, 0, 1)
		for _, s := range spans {
			if k := len(runs); k > 0 && runs[k-1].end == s.first {
				runs[k-1].end = s.end
				continue
			}
			runs = append(runs, run{s.first, s.end})
		}
		for _, r := range runs {
			starts[r.first], ends[r.end] = true, true
		}
		c.runs = append(c.runs, runs)
	}
	c.reduce(m.sections(), starts, ends)
	c.finish()
	return c
}

// finish derives what follows from the buffers.
func (c *core) finish() {
	for i, size := range c.size {
		c.grain = gcd(c.grain, size)
		if c.fixed[i] >= 0 {
			c.grain = gcd(c.grain, c.fixed[i])
			c.any = true
			c.floor = max(c.floor, c.fixed[i]+size)
		}
	}
	for _, a := range c.align {
		if c.grain%a != 0 { // rounding up leaves multiples of a power of two
			c.grain &= -c.grain
		}
	}
	for _, sum := range c.sums() {
		c.floor = max(c.floor, sum)
	}
}

// reduce renumbers the runs by the sections that can bind: those with a start
// in front, since the last such section, and an end behind.
func (c *core) reduce(sections int, starts, ends []bool) {
	before := make([]int32, sections+1) // binding sections in front of each
	fresh := false
	for s := range sections {
		before[s] = int32(c.sections)
		fresh = fresh || starts[s]
		if fresh && ends[s+1] {
			c.sections++
			fresh = false
		}
	}
	before[sections] = int32(c.sections)
	for _, runs := range c.runs {
		for k := range runs {
			runs[k] = run{before[runs[k].first], before[runs[k].end]}
		}
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// sums adds up the sizes alive in each section.
func (c *core) sums() []int64 {
	sums := make([]int64, c.sections+1)
	for i, runs := range c.runs {
		for _, r := range runs {
			sums[r.first] += c.size[i]
			sums[r.end] -= c.size[i]
		}
	}
	for s := 1; s <= c.sections; s++ {
		sums[s] += sums[s-1]
	}
	return sums[:c.sections]
}

// findPeaks is left to the first search: it takes a step for each section of
// each life.
func (c *core) findPeaks() {
	sums := c.sums()
	c.peaks = make([]int64, len(c.ids))
	for i, runs := range c.runs {
		for _, r := range runs {
			c.peaks[i] = max(c.peaks[i], slices.Max(sums[r.first:r.end]))
		}
	}
}

// heuristic is a static order of the buffers for the search.
type heuristic uint8

const (
	wat heuristic = iota // life, area, largest section sum
	taw
	twa
	heuristics
)

// ranked is the buffers in a heuristic's order, all keys descending.
func (c *core) ranked(h heuristic, noise func() uint64) []int32 {
	n := len(c.ids)
	type keys struct {
		a, b, c float64
		i       int32
	}
	if c.peaks == nil {
		c.findPeaks()
	}
	order := make([]keys, n)
	for i := range n {
		w, t := float64(c.life[i]), float64(c.peaks[i])
		a := w * float64(c.size[i])
		if noise != nil {
			w, a, t = w*jitter(noise), a*jitter(noise), t*jitter(noise)
		}
		switch h {
		case wat:
			order[i] = keys{w, a, t, int32(i)}
		case taw:
			order[i] = keys{t, a, w, int32(i)}
		default:
			order[i] = keys{t, w, a, int32(i)}
		}
	}
	slices.SortStableFunc(order, func(x, y keys) int { // in the search's loop: not sort.SliceStable
		switch {
		case x.a != y.a:
			return sign(y.a - x.a)
		case x.b != y.b:
			return sign(y.b - x.b)
		}
		return sign(y.c - x.c)
	})
	ranked := make([]int32, n)
	for k := range order {
		ranked[k] = order[k].i
	}
	return ranked
}

// jitter is a factor between 1 and 1.6. The conversion keeps machines that
// multiply and add at once from rounding differently.
func jitter(noise func() uint64) float64 {
	return 1 + float64(float64(noise()%1024)*(0.6/1024))
}

func sign(x float64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}
