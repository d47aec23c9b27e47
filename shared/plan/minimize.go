package plan

import (
	"fmt"
	"slices"
)

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
	m := &minimizer{o: o, noise: newXorshift(1)}
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
	m.parts = newParts(g.model, m.Offsets)
	m.improve()
	return &m.Result, nil
}

// minimizer is a search under way.
type minimizer struct {
	Result
	*greedy
	o       Options
	parts   []*part // nil until the greedy passes are done
	stopped bool
	noise   xorshift
	order   []int32 // that the best lifted plan was made in
}

func (m *minimizer) done() bool {
	return m.stopped || m.Proven() || m.Nodes >= m.o.Nodes || m.o.Goal > 0 && (m.Height <= m.o.Goal || m.Floor > m.o.Goal)
}

// stop asks once more, until it was told.
func (m *minimizer) stop() bool {
	m.stopped = m.stopped || m.o.Stop != nil && m.o.Stop()
	return m.stopped
}

func (m *minimizer) tell() {
	if m.o.Progress != nil {
		m.o.Progress(&m.Result)
	}
}

// take keeps a plan that is lower than the best, or what of it is lower in
// some part.
func (m *minimizer) take(plan Plan, by string) bool {
	height := plan.Height
	switch {
	case m.Offsets == nil || m.parts == nil && height < m.Height:
		m.Offsets = plan.Offsets
	case m.parts == nil:
		return false
	default:
		for _, p := range m.parts {
			p.take(plan.Offsets, m.Offsets)
		}
		if height = m.p.height(m.Offsets); height >= m.Height {
			return false
		}
	}
	m.Height, m.By = height, by
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

// How often the floor is asked for before anything else, and before it is asked
// for less often.
const (
	floorFirst = 12
	floorOften = 150
)

// improve goes on until done. It is always about the part that is as high as
// the whole plan.
func (m *minimizer) improve() {
	for !m.done() {
		p := m.highest()
		if !p.searchable || p.floorTries >= floorFirst {
			break
		}
		m.decide(p, m.lowestRung(p), floorStyles, &p.floorTries)
	}
	m.liftAll()
	for turn := 0; !m.done(); turn++ {
		switch p := m.highest(); {
		case !p.searchable || turn%64 == 63:
			m.liftAgain()
		case turn%3 == 0 && (p.floorTries < floorOften || turn%2 == 0):
			m.decide(p, m.lowestRung(p), floorStyles, &p.floorTries)
		default:
			m.decide(p, m.someRung(p), rungStyles, &p.rungTries)
		}
	}
}

// highest is the first part that is as high as any.
func (m *minimizer) highest() *part {
	best := m.parts[0]
	for _, p := range m.parts {
		if p.height > best.height {
			best = p
		}
	}
	return best
}

// lowestRung is the least capacity worth asking for that is not known to be
// impossible. The whole plan's floor may be another part's: then it does to be
// no higher than that, and nothing follows from it for this part.
func (m *minimizer) lowestRung(p *part) int64 {
	g, floor := p.core.grain, p.core.floor
	if len(m.parts) == 1 {
		floor = max(floor, m.Floor)
	}
	return max((floor+g-1)/g*g, m.Floor/g*g)
}

// highestRung is the largest capacity worth asking for.
func (m *minimizer) highestRung(p *part) int64 {
	high := m.Height - 1
	if m.o.Goal > 0 {
		high = min(high, m.o.Goal)
	}
	return high / p.core.grain * p.core.grain
}

// Of many rungs the low ones are asked for more often, of few the highest.
const (
	fewRungs   = 64
	smallSteps = 8
)

// someRung draws a capacity above the lowest rung.
func (m *minimizer) someRung(p *part) int64 {
	low, high := m.lowestRung(p), m.highestRung(p)
	rungs := (high-low)/p.core.grain + 1
	if rungs <= 1 {
		return low
	}
	if m.o.Goal > 0 && p.rungTries%2 == 0 {
		return high
	}
	if rungs <= fewRungs {
		if p.rungTries%4 < 2 { // small steps succeed more often
			return high - p.core.grain*m.noise.below(min(rungs, smallSteps))
		}
		return low + p.core.grain*m.noise.below(rungs)
	}
	u := float64(m.noise.next()%(1<<20)) / (1 << 20)
	return low + p.core.grain*int64(u*u*float64(rungs))
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

// decide searches a part at one capacity, with the order, the style and the
// budget that come next after tries, and takes in what it learns.
func (m *minimizer) decide(p *part, capacity int64, styles []style, tries *int) {
	if capacity > m.highestRung(p) {
		// The lowest rung is above all that would be an improvement.
		m.raiseFloor(p, capacity)
		return
	}
	try := *tries
	*tries++
	noise := m.noise.next
	if try < len(styles)*int(heuristics) {
		noise = nil
	}
	s := newSearch(p.core, p.core.ranked(heuristic(try/len(styles)%int(heuristics)), noise))
	s.style = styles[try%len(styles)]
	s.stop = m.stop
	s.poll = 63
	budget := max(2*int64(s.n), leastBudget) * luby(try/(3*int(heuristics)*len(styles))+1)
	verdict := s.decide(capacity, min(budget, m.o.Nodes-m.Nodes))
	m.Nodes += s.nodes
	switch verdict {
	case found:
		offsets := slices.Clone(m.Offsets)
		for k, i := range s.ids {
			offsets[p.core.ids[i]] = s.low[k]
		}
		m.take(Plan{offsets, m.p.height(offsets)}, "search")
	case impossible:
		m.raiseFloor(p, s.needed)
	case unknown:
	}
}

// raiseFloor is told that no plan of a part, its buffers taken as whole, is
// lower than a height.
func (m *minimizer) raiseFloor(p *part, height int64) {
	height = min(height, p.height)
	p.core.floor = max(p.core.floor, height)
	if m.windowed {
		p.searchable = p.core.floor < p.height
	} else if height > m.Floor {
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
