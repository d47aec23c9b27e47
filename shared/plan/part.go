package plan

// part is a stretch of time whose buffers meet no others: its plan is its own
// affair, and the whole plan is as high as its highest part.
type part struct {
	core       *core
	sizes      []int64 // of the core's buffers
	height     int64
	searchable bool
	floorTries int
	rungTries  int
}

// newParts takes a model apart where no life goes on, and notes how high each
// part of a plan is.
func newParts(m *model, offsets []int64) []*part {
	whole := newCore(m)
	var parts []*part
	for _, c := range whole.split() {
		p := &part{core: c, sizes: c.size, searchable: c.searchable()}
		p.height = p.heightOf(offsets)
		parts = append(parts, p)
	}
	return parts
}

func (p *part) heightOf(offsets []int64) int64 {
	var h int64
	for k, i := range p.core.ids {
		h = max(h, offsets[i]+p.sizes[k])
	}
	return h
}

// take copies the part's offsets if they are better.
func (p *part) take(from, to []int64) {
	h := p.heightOf(from)
	if h >= p.height {
		return
	}
	p.height = h
	for _, i := range p.core.ids {
		to[i] = from[i]
	}
}

// split takes a core apart at the borders that no buffer's life spans.
func (c *core) split() []*core {
	spanned := make([]int32, c.sections+1)
	for _, runs := range c.runs {
		spanned[runs[0].first+1]++
		spanned[runs[len(runs)-1].end]--
	}
	partOf := make([]int32, c.sections) // of each section
	firsts := []int32{0}
	var lives int32
	for s := 1; s < c.sections; s++ {
		if lives += spanned[s]; lives == 0 {
			firsts = append(firsts, int32(s))
		}
		partOf[s] = int32(len(firsts) - 1)
	}
	if len(firsts) == 1 {
		return []*core{c}
	}
	parts := make([]*core, len(firsts))
	for k, first := range firsts {
		end := int32(c.sections)
		if k+1 < len(firsts) {
			end = firsts[k+1]
		}
		parts[k] = &core{sections: int(end - first)}
	}
	for i, runs := range c.runs {
		k := partOf[runs[0].first]
		for r := range runs {
			runs[r].first -= firsts[k]
			runs[r].end -= firsts[k]
		}
		parts[k].add(c, i)
	}
	for _, p := range parts {
		p.finish()
	}
	return parts
}

// add takes over a buffer of another core.
func (c *core) add(from *core, i int) {
	c.ids = append(c.ids, from.ids[i])
	c.size = append(c.size, from.size[i])
	c.align = append(c.align, from.align[i])
	c.fixed = append(c.fixed, from.fixed[i])
	c.runs = append(c.runs, from.runs[i])
	c.life = append(c.life, from.life[i])
}

// Limits of the search: its tables have an entry for each buffer in each
// section of its life and for each conflict, and its lists of unplaced buffers
// sum up to half the square of their number.
const (
	maxSearched  = 4096
	maxConflicts = 1 << 20
	maxPresence  = 1 << 20
)

// searchable says whether the search's tables stay small.
func (c *core) searchable() bool {
	live := make([]int64, c.sections+1)
	var presence, conflicts int64
	for _, runs := range c.runs {
		for _, r := range runs {
			presence += int64(r.end - r.first)
			live[r.first]++
			live[r.end]--
		}
	}
	// A run conflicts with those alive when it starts, itself left out: at most
	// so many pairs.
	var now, before int64
	for s := range c.sections {
		before, now = now, now+live[s]
		if born := now - before; born > 0 {
			conflicts += born * now
		}
	}
	return len(c.ids) <= maxSearched && presence <= maxPresence && conflicts <= maxConflicts
}
