package plan

import "slices"

// Lifting improves a greedy plan: the buffers that stand out above a goal are
// taken first in the next pass, and so find room further down. What stands out
// then goes first in turn, until the goal is met or nothing helps any more.

// patience is how many passes in a row may bring nothing.
const patience = 8

// liftOrders begins with those that lifting helps most on large graphs.
var liftOrders = [...]Order{ByDuration, ByStart, ByLoad, BySize, ByArea}

// liftAll lifts from each order once, with the quick placement first.
func (m *minimizer) liftAll() {
	for pl := range placementNames {
		for _, o := range liftOrders {
			if m.done() {
				return
			}
			m.lift(m.greedy.order(o), Placement(pl), 10)
		}
	}
}

// liftAgain lifts from a disturbed order: that of the best plan lifted so far,
// or one of the five.
func (m *minimizer) liftAgain() {
	order := m.order
	if order == nil || m.noise.next()%4 == 0 {
		order = m.greedy.order(Order(m.noise.next() % uint64(len(orderNames))))
	}
	order = slices.Clone(order)
	n := uint64(len(order))
	for range 1 + m.noise.next()%(1+n/16) {
		i, j := m.noise.next()%n, m.noise.next()%n
		order[i], order[j] = order[j], order[i]
	}
	m.lift(order, Placement(m.noise.next()%uint64(len(placementNames))), int64(2+m.noise.next()%30))
}

// lift goes on for as long as it helps. The goal lies a share of the gap under
// the lowest height met: one over step.
func (m *minimizer) lift(order []int32, where Placement, step int64) {
	var lowest int64
	for calm := 0; calm < patience && !m.done(); calm++ {
		plan, ok := m.pass(order, where)
		if !ok {
			return
		}
		if lowest == 0 || plan.Height < lowest {
			lowest, calm = plan.Height, 0
		}
		if m.take(plan, "lift") {
			m.order = order
		}
		goal := lowest - 1 - (lowest-m.Floor)/step
		order = m.raised(order, plan.Offsets, goal)
	}
}

// raised is an order with what stands out above a goal in front.
func (m *minimizer) raised(order []int32, offsets []int64, goal int64) []int32 {
	next := make([]int32, 0, len(order))
	for _, above := range [...]bool{true, false} {
		for _, i := range order {
			if (offsets[i]+m.p.Buffers[i].Size > goal) == above {
				next = append(next, i)
			}
		}
	}
	return next
}
