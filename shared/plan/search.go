package plan

import (
	"math"
	"slices"
)

// verdict is how a search ended.
type verdict uint8

const (
	unknown    verdict = iota // out of budget, or told to stop
	found                     // there is a plan, in offsets
	impossible                // proven: there is none
)

// search decides whether the buffers of a core fit into a capacity. It places
// them bottom-up by (offset, rank), each at its minimal offset: the highest
// top among the placed buffers that conflict with it. Every plan can be pushed
// down to one that is reached this way, so the one choice is which buffer
// comes next.
//
// Buffers are numbered by rank.
type search struct {
	n        int
	capacity int64
	size     []int64
	align    []int64
	fixed    []int64
	runs     [][]run
	hull     []run
	adjacent [][]int32
	members  [][]int32 // buffers of each section
	twin     []int32   // the buffer of next better rank that is alike; -1: none
	ids      []int32   // position in the core
	blocks   [][]int32 // fixed buffers that conflict, by offset

	low      []int64 // where it would rest on what is placed; of placed buffers, where they are
	minimal  []int64 // least offset it can end up at: low, or more
	placed   []bool
	left     []int64 // bytes of each section not placed yet
	crossing []int32 // unplaced buffers that span the border in front of a section
	weight   []float64
	ease     []float64
	witness  []int32 // for each section, a buffer that can come next in it
	done     []int32 // placed buffers in order
	trail    []undo
	arena    []int32 // lists of unplaced buffers, a stack

	style  style
	nodes  int64
	budget int64
	poll   int64 // stop is asked each so many nodes, less one: a mask
	stop   func() bool
	needed int64 // the least capacity at which some refusal would not have been one
}

// undo is a buffer's bounds before they were raised.
type undo struct {
	buffer       int32
	low, minimal int64
}

func newSearch(c *core, ranked []int32) *search {
	n := len(ranked)
	s := &search{
		n: n, ids: ranked,
		size: make([]int64, n), align: make([]int64, n), fixed: make([]int64, n), runs: make([][]run, n), hull: make([]run, n),
		members: make([][]int32, c.sections), twin: make([]int32, n), adjacent: make([][]int32, n),
		low: make([]int64, n), minimal: make([]int64, n), placed: make([]bool, n), left: make([]int64, c.sections),
		crossing: make([]int32, c.sections+1), witness: make([]int32, c.sections), weight: make([]float64, c.sections), ease: make([]float64, c.sections),
	}
	for at := range s.weight {
		s.weight[at] = 1
	}
	for k, i := range ranked {
		s.size[k], s.align[k], s.fixed[k], s.runs[k] = c.size[i], c.align[i], c.fixed[i], c.runs[i]
		s.hull[k] = run{s.runs[k][0].first, s.runs[k][len(s.runs[k])-1].end}
		for _, r := range s.runs[k] {
			for at := r.first; at < r.end; at++ {
				s.members[at] = append(s.members[at], int32(k))
			}
		}
	}
	s.findAdjacent()
	s.findTwins()
	if c.any {
		s.findBlocks()
	}
	return s
}

func (s *search) findAdjacent() {
	seen := make([]int32, s.n)
	for k := range seen {
		seen[k] = -1
	}
	for k := range s.n {
		seen[k] = int32(k)
		for _, r := range s.runs[k] {
			for at := r.first; at < r.end; at++ {
				for _, u := range s.members[at] {
					if seen[u] != int32(k) {
						seen[u] = int32(k)
						s.adjacent[k] = append(s.adjacent[k], u)
					}
				}
			}
		}
	}
}

func (s *search) findTwins() {
	for k := range s.n {
		s.twin[k] = -1
		for _, t := range s.adjacent[k] { // those alike conflict
			if t < int32(k) && t > s.twin[k] && s.alike(t, int32(k)) {
				s.twin[k] = t
			}
		}
	}
}

func (s *search) alike(a, b int32) bool {
	return s.fixed[a] < 0 && s.fixed[b] < 0 && s.size[a] == s.size[b] && s.align[a] == s.align[b] && slices.Equal(s.runs[a], s.runs[b])
}

func (s *search) findBlocks() {
	s.blocks = make([][]int32, s.n)
	for k := range s.n {
		for _, u := range s.adjacent[k] {
			if s.fixed[u] >= 0 {
				s.blocks[k] = append(s.blocks[k], u)
			}
		}
		slices.SortFunc(s.blocks[k], func(a, b int32) int { return sign(float64(s.fixed[a] - s.fixed[b])) })
	}
}

// lift is the least offset for a buffer that is not below at: aligned, and
// not in the way of a fixed one.
func (s *search) lift(k int32, at int64) int64 {
	if a := s.align[k]; a > 1 {
		at = roundUp(at, a)
	}
	if s.blocks != nil {
		for _, f := range s.blocks[k] {
			if at < s.fixed[f]+s.size[f] && s.fixed[f] < at+s.size[k] {
				at = roundUp(s.fixed[f]+s.size[f], s.align[k])
			}
		}
	}
	return at
}

// decide looks for a plan within the capacity, for up to budget nodes.
func (s *search) decide(capacity, budget int64) verdict {
	s.capacity, s.nodes, s.budget, s.needed = capacity, 0, budget, math.MaxInt64
	s.done, s.trail, s.arena = s.done[:0], s.trail[:0], s.arena[:0]
	clear(s.placed)
	clear(s.left)
	clear(s.crossing)
	for k := range s.n {
		s.minimal[k] = s.fixed[k]
		if s.fixed[k] < 0 {
			s.minimal[k] = s.lift(int32(k), 0)
		}
		s.require(s.minimal[k] + s.size[k])
		s.low[k] = s.minimal[k]
		for _, r := range s.runs[k] {
			for at := r.first; at < r.end; at++ {
				s.left[at] += s.size[k]
			}
		}
		for at := s.hull[k].first + 1; at < s.hull[k].end; at++ {
			s.crossing[at]++
		}
	}
	for at, list := range s.members {
		s.witness[at] = list[0]
		s.ease[at] = s.easeOf(s.weight[at])
		s.require(s.left[at])
	}
	if s.needed < math.MaxInt64 {
		return impossible
	}
	list := make([]int32, s.n)
	for k := range list {
		list[k] = int32(k)
	}
	return s.split(list, 0, int32(len(s.left)))
}

// split takes unplaced buffers in sections [first, end) apart where none spans
// a border, and solves part by part. Each part comes behind the placement
// (offset, rank).
func (s *search) split(list []int32, first, end int32) verdict {
	from := first
	for at := first + 1; at <= end; at++ {
		if at < end && s.crossing[at] > 0 {
			continue
		}
		if from == first && at == end {
			return s.node(list, first, end)
		}
		base := len(s.arena)
		for _, k := range list {
			if s.hull[k].first >= from && s.hull[k].end <= at {
				s.arena = append(s.arena, k)
			}
		}
		part := s.arena[base:len(s.arena):len(s.arena)]
		if len(part) > 0 {
			if v := s.node(part, from, at); v != found {
				s.arena = s.arena[:base]
				return v
			}
		}
		s.arena = s.arena[:base]
		from = at
	}
	return found
}

// node places the unplaced buffers of a list, which live in [first, end) and
// are connected.
func (s *search) node(list []int32, first, end int32) verdict {
	if len(list) == 0 {
		return found
	}
	base, before := len(s.arena), len(s.trail)
	for {
		s.nodes++ // each decision is one
		if s.nodes > s.budget || s.nodes&s.poll == 0 && s.stop != nil && s.stop() {
			return unknown
		}
		k := s.choose(list, first, end)
		if k < 0 {
			break
		}
		mark, done := len(s.trail), len(s.done)
		hatless, ok := s.place(k, s.low[k], first, end)
		if ok {
			for _, u := range list {
				if u != k {
					s.arena = append(s.arena, u)
				}
			}
			below := s.arena[base:len(s.arena):len(s.arena)]
			v := s.split(below, first, end)
			s.arena = s.arena[:base]
			if v != impossible {
				return v
			}
		}
		s.unplace(done, mark)
		if hatless || s.fixed[k] >= 0 || !s.raise(k) || !s.fits(first, end) {
			break
		}
	}
	s.unplace(len(s.done), before)
	return impossible
}

// style is how a search chooses the section to fill next: one that is low, has
// few buffers that can come next, and has failed often.
type style struct {
	lowest bool    // no section: the lowest buffer of all
	shift  float64 // how little lowness matters, in capacities
	root   bool    // the square root of the count instead of the count
	fails  float64 // exponent of the weight of failures: 0, 0.5 or 1
}

func (s *search) easeOf(weight float64) float64 {
	switch s.style.fails {
	case 0:
		return 1
	case 1:
		return 1 / weight
	}
	return 1 / math.Sqrt(weight)
}

// choose picks the buffer to decide about: it ends up at its low, or rests on
// a buffer not placed yet. -1: none can come next.
//
// Nothing unplaced may fit under it, so that whatever conflicts with it comes
// on top. The lowest buffer of some plan always is such a one.
func (s *search) choose(list []int32, first, end int32) int32 {
	k := int32(-1)
	if !s.style.lowest {
		k = s.fromSection(first, end)
	}
	for k >= 0 {
		under := s.under(k)
		if under < 0 {
			return k
		}
		if !s.open(under) {
			break
		}
		k = under
	}
	ceiling := int64(math.MaxInt64)
	for _, u := range list {
		ceiling = min(ceiling, s.low[u]+s.size[u])
	}
	k = -1
	for _, u := range list {
		if s.low[u] < ceiling && (k < 0 || s.low[u] < s.low[k]) && s.open(u) {
			k = u
		}
	}
	return k
}

// open says whether a buffer can end up at its low, as far as is known. Of
// buffers that are alike the one of better rank is below the other.
func (s *search) open(k int32) bool {
	return s.minimal[k] == s.low[k] && (s.twin[k] < 0 || s.placed[s.twin[k]])
}

// under is an unplaced buffer with room under another; -1: none.
func (s *search) under(k int32) int32 {
	for _, u := range s.adjacent[k] {
		if !s.placed[u] && s.low[u]+s.size[u] <= s.low[k] {
			return u
		}
	}
	return -1
}

// fromSection is the lowest open buffer of the section to fill next: that of
// the least score, a height times a count. It begins with the lowest section,
// so that most others need not be counted.
func (s *search) fromSection(first, end int32) int32 {
	shift := s.style.shift * float64(s.capacity)
	low, lowBase := int32(-1), math.Inf(1)
	for at := first; at < end; at++ {
		if s.left[at] > 0 {
			if base := (float64(s.capacity-s.left[at]) + shift) * s.ease[at]; base < lowBase {
				low, lowBase = at, base
			}
		}
	}
	if low < 0 {
		return -1
	}
	best, bestScore := s.scored(low, lowBase, math.Inf(1))
	for at := first; at < end; at++ {
		if s.left[at] == 0 || at == low {
			continue
		}
		base := (float64(s.capacity-s.left[at]) + shift) * s.ease[at]
		if base >= bestScore {
			continue
		}
		if k, score := s.scored(at, base, bestScore); k >= 0 {
			best, bestScore = k, score
		}
	}
	return best
}

// scored is the lowest open buffer of a section and the section's score, if
// that is below a bound; -1 otherwise.
func (s *search) scored(at int32, base, bound float64) (lowest int32, score float64) {
	most := math.MaxInt
	if ratio := bound / base; !s.style.root && ratio < 1<<20 {
		most = int(ratio) // a larger count is of no interest
	} else if s.style.root && ratio < 1<<10 {
		most = int(ratio * ratio)
	}
	limit := s.capacity - s.left[at]
	lowest = -1
	count := 0
	for _, u := range s.members[at] {
		if s.placed[u] || s.minimal[u] > limit {
			continue
		}
		if count++; count > most {
			return -1, bound
		}
		if (lowest < 0 || s.low[u] < s.low[lowest]) && s.open(u) {
			lowest = u
		}
	}
	score = base * float64(count)
	if s.style.root {
		score = base * math.Sqrt(float64(count))
	}
	if lowest < 0 || score >= bound {
		return -1, bound
	}
	return lowest, score
}

// place puts a buffer at an offset. It says whether no unplaced buffer
// conflicts with it, and whether all sections in [first, end) can still be
// filled within the capacity.
func (s *search) place(k int32, o int64, first, end int32) (hatless, ok bool) {
	s.placed[k] = true
	s.done = append(s.done, k)
	for _, r := range s.runs[k] {
		for at := r.first; at < r.end; at++ {
			s.left[at] -= s.size[k]
		}
	}
	for at := s.hull[k].first + 1; at < s.hull[k].end; at++ {
		s.crossing[at]--
	}
	top := o + s.size[k]
	hatless, ok = true, true
	for _, u := range s.adjacent[k] {
		if s.placed[u] {
			continue
		}
		hatless = false
		if s.low[u] >= top {
			continue
		}
		if s.fixed[u] >= 0 {
			ok = false // it lies under the top of what is placed
			continue
		}
		s.trail = append(s.trail, undo{u, s.low[u], s.minimal[u]})
		s.low[u] = s.lift(u, top)
		s.minimal[u] = max(s.minimal[u], s.low[u])
		ok = s.require(s.minimal[u]+s.size[u]) && ok
	}
	return hatless, ok && s.raiseAgain(k) && s.fits(first, end)
}

// raise is told that a buffer does not end up at its low: it will then rest on
// a buffer not placed yet, and one not placed yet will be in its way. It says
// whether that can be.
func (s *search) raise(k int32) bool {
	support := int64(math.MaxInt64 / 2)
	room := s.low[k] + s.size[k]
	blocked := false
	for _, p := range s.adjacent[k] {
		if !s.placed[p] && p != k {
			support = min(support, s.minimal[p]+s.size[p])
			blocked = blocked || s.minimal[p] < room
		}
	}
	if !blocked {
		return false
	}
	if support > s.minimal[k] || s.minimal[k] == s.low[k] {
		s.trail = append(s.trail, undo{k, s.low[k], s.minimal[k]})
		s.minimal[k] = s.lift(k, support)
	}
	return s.require(s.minimal[k] + s.size[k])
}

// raiseAgain looks once more at what was raised and conflicts with a buffer
// just placed.
func (s *search) raiseAgain(k int32) bool {
	for _, u := range s.adjacent[k] {
		if !s.placed[u] && s.minimal[u] > s.low[u] && !s.raise(u) {
			return false
		}
	}
	return true
}

// fits says whether each section with unplaced buffers has one that can come
// next: low enough that all of them fit on top of each other.
func (s *search) fits(first, end int32) bool {
	for at := first; at < end; at++ {
		if s.left[at] == 0 {
			continue
		}
		limit := s.capacity - s.left[at]
		if w := s.witness[at]; !s.placed[w] && s.minimal[w] <= limit {
			continue
		}
		if !s.testify(at, limit) {
			s.fail(at)
			return false
		}
	}
	return true
}

// require says whether a height is within the capacity, and remembers by how
// little it is not.
func (s *search) require(height int64) bool {
	if height <= s.capacity {
		return true
	}
	s.needed = min(s.needed, height)
	return false
}

// fail notes that a section cannot be filled.
func (s *search) fail(at int32) {
	lowest := int64(math.MaxInt64)
	for _, u := range s.members[at] {
		if !s.placed[u] {
			lowest = min(lowest, s.minimal[u])
		}
	}
	s.require(lowest + s.left[at])
	s.weight[at]++
	s.ease[at] = s.easeOf(s.weight[at])
}

func (s *search) testify(at int32, limit int64) bool {
	for _, u := range s.members[at] {
		if !s.placed[u] && s.minimal[u] <= limit {
			s.witness[at] = u
			return true
		}
	}
	return false
}

// unplace takes back all placements and raises since the marks.
func (s *search) unplace(done, mark int) {
	for _, k := range s.done[done:] {
		s.placed[k] = false
		for _, r := range s.runs[k] {
			for at := r.first; at < r.end; at++ {
				s.left[at] += s.size[k]
			}
		}
		for at := s.hull[k].first + 1; at < s.hull[k].end; at++ {
			s.crossing[at]++
		}
	}
	s.done = s.done[:done]
	for at := len(s.trail) - 1; at >= mark; at-- {
		was := s.trail[at]
		s.low[was.buffer], s.minimal[was.buffer] = was.low, was.minimal
	}
	s.trail = s.trail[:mark]
}
