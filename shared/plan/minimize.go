package plan

import "fmt"

// DefaultNodes is the budget of a search that is given none: some seconds.
const DefaultNodes = 1 << 20

// Options bound a search.
type Options struct {
	// Nodes is the budget in decisions of the search; a greedy pass costs as
	// many as there are buffers. The same budget gives the same plan everywhere.
	// 0 means DefaultNodes; math.MaxInt64 goes on until Stop says so.
	Nodes int64
	// Goal ends the search at a plan of this height or less; 0 asks for the
	// least height.
	Goal int64
	// Stop is asked often, at the latest each few milliseconds; once it says
	// true, the best plan so far is returned. nil never stops.
	Stop func() bool
	// Progress is told of each better plan and of each better floor. The
	// result belongs to the search: copy what outlives the call. nil is not told.
	Progress func(*Result)
}

// Result is the best plan found, and what is known about it.
type Result struct {
	Plan
	Load   int64  // largest sum of bytes occupied at one instant
	Floor  int64  // no plan is lower: the load, or more where that is proven
	By     string // what found the plan: a greedy method, "lift" or "search"
	First  Method // the best of the ten greedy methods
	Greedy int64  // its height
	Nodes  int64  // spent
}

// Proven says whether the plan is known to be as low as any can be.
func (r *Result) Proven() bool { return r.Height <= r.Floor }

// Gap is how far the height is above the floor, as a fraction of the floor.
func (r *Result) Gap() float64 {
	if r.Floor == 0 {
		return 0
	}
	return float64(r.Height-r.Floor) / float64(r.Floor)
}

// Minimize looks for the lowest plan: first by the ten greedy methods, then at
// exactly the load, then by lifting and by a ladder of capacities between the
// floor and the best height. It returns once the plan is proven optimal, the
// goal is reached or proven out of reach, the budget is spent, or Stop says so;
// it always has a valid plan then.
//
// The error is that of an invalid problem or of fixed offsets that conflict.
// Where buffers occupy parts of themselves (gaps with a window), plans are
// proven optimal only by meeting the floor.
func Minimize(p *Problem, o Options) (*Result, error) {
	m := &minimizer{o: o, noise: 0x9e3779b97f4a7c15}
	if m.o.Nodes <= 0 {
		m.o.Nodes = DefaultNodes
	}
	g, err := newGreedy(p)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	m.greedy = g
	m.Load, m.Floor = g.load(), g.floor()
	m.tryGreedy()
	if m.done() {
		return &m.Result, nil
	}
	m.core = newCore(g.model)
	m.searchable = m.core.searchable()
	m.improve()
	return &m.Result, nil
}

// Size limits of the search, in entries of its tables: conflicts of pairs and
// sections of lives.
const (
	maxConflicts = 4 << 20
	maxPresence  = 8 << 20
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
	return presence <= maxPresence && conflicts <= maxConflicts
}

// minimizer is a search under way.
type minimizer struct {
	Result
	*greedy
	o          Options
	core       *core
	searchable bool
	stopped    bool
	noise      uint64
	order      []int32 // that the best lifted plan was made in
	floorTries int
	rungTries  int
}

func (m *minimizer) done() bool {
	return m.stopped || m.Proven() || m.Nodes >= m.o.Nodes || m.o.Goal > 0 && (m.Height <= m.o.Goal || m.Floor > m.o.Goal)
}

// stop asks once more, until it was told.
func (m *minimizer) stop() bool {
	m.stopped = m.stopped || m.o.Stop != nil && m.o.Stop()
	return m.stopped
}

// random draws the next of a fixed sequence (xorshift).
func (m *minimizer) random() uint64 {
	m.noise ^= m.noise << 13
	m.noise ^= m.noise >> 7
	m.noise ^= m.noise << 17
	return m.noise >> 11
}

func (m *minimizer) tell() {
	if m.o.Progress != nil {
		m.o.Progress(&m.Result)
	}
}

// take keeps a plan that is lower than the best.
func (m *minimizer) take(plan Plan, by string) bool {
	if m.Offsets != nil && plan.Height >= m.Height {
		return false
	}
	m.Plan, m.By = plan, by
	m.tell()
	return true
}

func (m *minimizer) tryGreedy() {
	for o := range orderNames {
		order := m.greedy.order(Order(o))
		for pl := range placementNames {
			plan, ok := m.pass(order, Placement(pl))
			if !ok {
				return
			}
			by := Method{Order(o), Placement(pl)}
			if m.Offsets == nil || plan.Height < m.Greedy {
				m.First, m.Greedy = by, plan.Height
			}
			m.take(plan, by.String())
			if m.done() {
				return
			}
		}
	}
}

// pass is one greedy pass; not ok once the search was stopped. The first of
// all is made in any case.
func (m *minimizer) pass(order []int32, where Placement) (Plan, bool) {
	stop := m.stop
	if m.Offsets == nil {
		stop = nil
	}
	plan, ok := m.plan(order, where, stop)
	m.Nodes += int64(len(order))
	return plan, ok
}

// improve goes on until done.
func (m *minimizer) improve() {
	for i := 0; m.searchable && i < 12 && !m.done(); i++ {
		m.decide(m.lowestRung(), floorStyles, &m.floorTries)
	}
	m.liftAll()
	for turn := 0; !m.done(); turn++ {
		switch {
		case !m.searchable || turn%64 == 63:
			m.liftAgain()
		case turn%3 == 0:
			m.decide(m.lowestRung(), floorStyles, &m.floorTries)
		default:
			m.decide(m.someRung(), rungStyles, &m.rungTries)
		}
		if !m.windowed || m.done() {
			continue
		}
		if m.core.floor >= m.Height { // whole buffers have no better plan
			m.searchable = false
		}
	}
}

// lowestRung is the least capacity that is not known to be impossible.
func (m *minimizer) lowestRung() int64 {
	floor := max(m.core.floor, m.Floor)
	if m.windowed {
		floor = m.core.floor
	}
	return (floor + m.core.grain - 1) / m.core.grain * m.core.grain
}

// highestRung is the largest capacity worth asking for.
func (m *minimizer) highestRung() int64 {
	high := m.Height - 1
	if m.o.Goal > 0 {
		high = min(high, m.o.Goal)
	}
	return high / m.core.grain * m.core.grain
}

// fewRungs are tried all alike; of more, the low ones are tried more often.
const fewRungs = 64

// someRung draws a capacity above the lowest rung.
func (m *minimizer) someRung() int64 {
	low, high := m.lowestRung(), m.highestRung()
	rungs := (high-low)/m.core.grain + 1
	if rungs <= 1 {
		return low
	}
	if m.o.Goal > 0 && m.rungTries%2 == 0 {
		return high
	}
	if rungs <= fewRungs {
		return low + m.core.grain*int64(m.random()%uint64(rungs))
	}
	u := float64(m.random()%(1<<20)) / (1 << 20)
	return low + m.core.grain*int64(u*u*float64(rungs))
}

// Styles are taken in turn. At the load there is no room for waste, and the
// sections with few candidates tell early; further up, plain descents are
// quick and many.
var (
	floorStyles = []style{{}, {fails: 0.5}, {root: true}, {}, {shift: 0.125}, {lowest: true}}
	rungStyles  = []style{{lowest: true}, {lowest: true}, {}, {lowest: true}, {lowest: true}, {fails: 0.5}}
)

// leastBudget keeps the descents of small problems from ending too early.
const leastBudget = 500

// decide searches at one capacity, with the order, the style and the budget
// that come next after tries, and takes in what it learns.
func (m *minimizer) decide(capacity int64, styles []style, tries *int) {
	if capacity > m.highestRung() {
		// The lowest rung is above all that would be an improvement.
		m.raiseFloor(capacity)
		return
	}
	try := *tries
	*tries++
	noise := m.random
	if try < len(styles)*int(heuristics) {
		noise = nil
	}
	s := newSearch(m.core, m.core.ranked(heuristic(try/len(styles)%int(heuristics)), noise))
	s.style = styles[try%len(styles)]
	s.stop = m.stop
	s.poll = 63
	budget := max(2*int64(s.n), leastBudget) * luby(try/(3*int(heuristics)*len(styles))+1)
	verdict := s.decide(capacity, min(budget, m.o.Nodes-m.Nodes))
	m.Nodes += s.nodes
	switch verdict {
	case found:
		offsets := make([]int64, len(m.p.Buffers))
		for i := range m.p.Buffers {
			offsets[i] = m.p.Buffers[i].Offset
		}
		for k, i := range s.ids {
			offsets[m.core.ids[i]] = s.low[k]
		}
		m.take(Plan{offsets, m.p.height(offsets)}, "search")
	case impossible:
		m.raiseFloor(s.needed)
	case unknown:
	}
}

// raiseFloor is told that no plan of whole buffers is lower than a height.
func (m *minimizer) raiseFloor(height int64) {
	height = min(height, m.Height)
	m.core.floor = max(m.core.floor, height)
	if !m.windowed && height > m.Floor {
		m.Floor = height
		m.tell()
	}
}

// luby is the sequence 1 1 2 1 1 2 4 ..., from its first number on: budgets of
// restarts that waste little whatever the right budget is.
func luby(i int) int64 {
	for k := 1; ; k++ {
		switch full := 1<<k - 1; {
		case i == full:
			return 1 << (k - 1)
		case i < full:
			return luby(i - full/2)
		}
	}
}
