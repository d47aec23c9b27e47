package rewrite

import (
	"fmt"
	"slices"
	"strconv"

	"tideline/shared/program"
)

// Accumulate makes of a training step one that goes through k batches of the
// same size, one after the other, before it changes the weights by the mean of
// their gradients: the batch is k times as large, the activations are not.
// Losses and other fetched numbers are means, too; gradients are clipped after
// they are accumulated, and a step counts as overflown when one of its batches
// did. p must be a step as it was built, or with what it recomputes: other passes
// make it unclear what belongs to the backward pass.
//
// The means differ from those of one large batch by rounding alone, unless the
// model looks at the batch as a whole (batch norm) or draws random numbers. A
// norm to clip by may differ, too, where gradients are rows of a table: rows of
// one index are squared apart or as their sum, by how they come.
func Accumulate(p *program.Program, k int) (*program.Program, error) {
	if k < 1 {
		return nil, fmt.Errorf("accumulate gradients over %d batches: must be at least 1", k)
	}
	if k == 1 {
		return p, nil
	}
	a := accumulator{g: edit(p), k: k}
	a.sort()
	for _, step := range []func() error{a.feed, a.repeat, a.combine, a.infer} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("accumulate gradients of %s over %d batches: %w", p.Name, k, err)
		}
	}
	a.schedule()
	return a.g.finish()
}

type accumulator struct {
	g *graph
	k int
	// By node of the step as it was: repeated for each batch; after all of
	// them; the rest is done once and serves all.
	repeated, after []bool
	copies          [][]program.NodeID       // by batch from 1, by old node; None for what is not repeated
	small           []program.ValueID        // the inputs as they were
	value           [][]program.ValueID      // by batch, by old value: what stands for it there
	slices          [][]program.NodeID       // by batch: what cuts it from the inputs
	sums            []program.NodeID         // that combine all batches
	ready           [][]program.NodeID       // by batch: what is there when it is done
	rows            map[program.ValueID]bool // gradients that are rows of a table
}

// sort decides which nodes are repeated. After all batches come the updates
// and what prepares gradients for them: backward nodes that are the gradient
// of no forward node and lead to none that is.
func (a *accumulator) sort() {
	g := a.g
	n := len(g.p.Nodes)
	a.repeated, a.after = make([]bool, n), make([]bool, n)
	reads := g.readers()
	fed := make([]bool, len(g.p.Values)) // differs from batch to batch
	for _, v := range g.p.Inputs {
		fed[v] = true
	}
	for i := range g.p.Nodes {
		x := g.node(program.NodeID(i))
		own := x.Op == program.OpRandomUniform || slices.ContainsFunc(x.Inputs, func(v program.ValueID) bool { return fed[v] })
		a.repeated[i] = own
		for _, v := range x.Outputs {
			fed[v] = own
		}
	}
	for i := n - 1; i >= 0; i-- {
		x := g.node(program.NodeID(i))
		a.after[i] = x.Phase == program.Update || x.Phase == program.Backward && x.Of == program.None && !a.leadsBack(x, reads, fed)
		if a.after[i] {
			a.repeated[i] = false
		}
	}
}

// leadsBack says whether a backward node belongs to the backward pass proper.
func (a *accumulator) leadsBack(n *program.Node, reads [][]program.NodeID, fed []bool) bool {
	for _, v := range n.Inputs {
		if from := a.g.producer(v); fed[v] && (from == nil || from.Phase == program.Forward) {
			return true
		}
	}
	for _, v := range n.Outputs {
		for _, r := range reads[v] {
			if !a.after[r] {
				return true
			}
		}
	}
	return false
}

// feed makes the inputs k times as large and cuts the batches from them.
func (a *accumulator) feed() error {
	g := a.g
	g.p.Batch *= a.k
	a.small = g.p.Inputs
	g.p.Inputs = make([]program.ValueID, len(a.small))
	for range a.k {
		of := make([]program.ValueID, len(g.p.Values))
		for v := range of {
			of[v] = program.ValueID(v)
		}
		a.value = append(a.value, of)
	}
	a.slices = make([][]program.NodeID, a.k)
	for j, v := range a.small {
		x := *g.value(v)
		if len(x.Shape) == 0 {
			return fmt.Errorf("input %s is a scalar: there is nothing to cut", x.Name)
		}
		all := x
		all.Shape = slices.Clone(x.Shape)
		all.Shape[0] *= int64(a.k)
		g.p.Inputs[j] = program.ValueID(len(g.p.Values))
		g.p.Values = append(g.p.Values, all)
		for i := range a.k {
			begin := make([]int64, len(x.Shape))
			begin[0] = int64(i) * x.Shape[0]
			attrs := noAttrs
			attrs.Begin, attrs.Shape = begin, x.Shape
			id, err := g.add(program.Node{
				Name: "microbatch" + strconv.Itoa(i) + "/" + x.Name, Op: program.OpSlice, Attrs: attrs,
				Inputs: []program.ValueID{g.p.Inputs[j]}, Phase: program.Forward, Of: program.None,
			}, program.RoleInput)
			if err != nil {
				return err
			}
			a.slices[i] = append(a.slices[i], id)
			a.value[i][v] = g.node(id).Outputs[0]
		}
	}
	return nil
}

// repeat makes the copies for the batches from the second on.
func (a *accumulator) repeat() error {
	g := a.g
	a.copies = make([][]program.NodeID, a.k)
	for i := 1; i < a.k; i++ {
		a.copies[i] = make([]program.NodeID, len(a.repeated))
		for n := range a.repeated {
			a.copies[i][n] = program.None
			if !a.repeated[n] {
				continue
			}
			id, err := a.copy(program.NodeID(n), i)
			if err != nil {
				return err
			}
			a.copies[i][n] = id
			for o, v := range g.node(program.NodeID(n)).Outputs {
				a.value[i][v] = g.node(id).Outputs[o]
			}
		}
	}
	for n := range a.repeated {
		x := g.node(program.NodeID(n))
		for j, v := range x.Inputs {
			if a.repeated[n] {
				x.Inputs[j] = a.value[0][v]
			}
		}
		if a.repeated[n] || !stateful(x) {
			continue
		}
		for _, c := range slices.Clone(x.Control) { // what reads the variable, in every batch
			for i := 1; i < a.k; i++ {
				if again := a.copies[i][c]; again != program.None {
					x.Control = append(x.Control, again)
				}
			}
		}
	}
	return nil
}

// seedStride keeps the random numbers of batches apart.
const seedStride = 1_000_003

func (a *accumulator) copy(n program.NodeID, batch int) (program.NodeID, error) {
	g := a.g
	c := *g.node(n)
	c.Inputs, c.Control = slices.Clone(c.Inputs), slices.Clone(c.Control)
	for j, v := range c.Inputs {
		c.Inputs[j] = a.value[batch][v]
	}
	for j, before := range c.Control {
		if again := a.copies[batch][before]; a.repeated[before] && again != program.None {
			c.Control[j] = again
		}
	}
	if c.Of != program.None && a.repeated[c.Of] {
		c.Of = a.copies[batch][c.Of]
	}
	if c.Op == program.OpDropout || c.Op == program.OpRandomUniform {
		c.Attrs.Seed += int64(batch) * seedStride
	}
	if stateful(&c) { // statistics move with each batch, in order
		last := n
		if batch > 1 {
			last = a.copies[batch-1][n]
		}
		c.Control = append(c.Control, last)
	}
	scope, name := split(c.Name)
	c.Name = scope + "microbatch" + strconv.Itoa(batch) + "/" + name
	role := program.RoleActivation
	if len(c.Outputs) > 0 {
		role = g.value(c.Outputs[0]).Role
	}
	if role == program.RoleOutput {
		role = program.RoleActivation
	}
	return g.add(c, role)
}
