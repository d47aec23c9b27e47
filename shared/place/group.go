package place

import (
	"tideline/shared/device"
	"tideline/shared/program"
)

// groups is a union-find over nodes that must share a device. What a group
// knows is kept at its root.
type groups struct {
	parent []int32
	state  []group
}

// group is what a set of nodes agreed on.
type group struct {
	rank      int
	resource  device.Name // asked for by a node that makes a variable: it does not give way
	requested device.Name // asked for by any; at least as narrow as resource
	kernels   types       // that all of them have
	text      string      // the wish as written that requested comes from
	from      program.NodeID
	size      int
	fixed     bool // a node was placed, all others follow
}

func (g *groups) open(n int) {
	g.parent = make([]int32, n)
	g.state = make([]group, n)
	for i := range g.parent {
		g.parent[i] = int32(i)
	}
}

func (g *groups) root(n program.NodeID) program.NodeID {
	x := int32(n)
	for g.parent[x] != x {
		g.parent[x] = g.parent[g.parent[x]]
		x = g.parent[x]
	}
	return program.NodeID(x)
}

func (g *groups) of(n program.NodeID) *group { return &g.state[g.root(n)] }

// tie makes one group of two nodes' groups. Nothing of a failure sticks.
func (g *groups) tie(a, b program.NodeID, soft bool, possible func(*group) bool) error {
	x, y := g.root(a), g.root(b)
	if x == y {
		return nil
	}
	m, err := merged(&g.state[x], &g.state[y], soft)
	if err != nil {
		return err
	}
	if !possible(&m) && possible(&g.state[x]) && possible(&g.state[y]) {
		return errNoCommonDevice
	}
	if g.state[x].rank < g.state[y].rank {
		x, y = y, x
	}
	m.rank = g.state[x].rank
	if m.rank == g.state[y].rank {
		m.rank++
	}
	g.parent[y] = int32(x)
	g.state[x] = m
	return nil
}

func merged(x, y *group, soft bool) (group, error) {
	m := *x
	m.size += y.size
	m.kernels &= y.kernels
	if m.text == "" {
		m.text, m.from = y.text, y.from
	}
	var err error
	if m.resource, err = device.Merge(x.resource, y.resource, device.Hard); err != nil {
		return m, err
	}
	conflict := device.Hard
	if soft {
		conflict = device.Soft
	}
	if m.requested, err = device.Merge(x.requested, y.requested, conflict); err != nil {
		return m, err
	}
	// What the resource has said is not for a request to lose.
	m.requested, err = device.Merge(m.requested, m.resource, device.Override)
	return m, err
}
