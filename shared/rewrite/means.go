package rewrite

import (
	"fmt"
	"slices"

	"tideline/shared/program"
)

// combine lets what comes after the batches, and the host, read the means.
func (a *accumulator) combine() error {
	g := a.g
	a.ready = make([][]program.NodeID, a.k)
	a.findRows()
	means := map[program.ValueID]program.ValueID{}
	mean := func(v program.ValueID) (program.ValueID, error) {
		if j := slices.Index(a.small, v); j >= 0 {
			return g.p.Inputs[j], nil
		}
		from := g.value(v).Producer
		if from == program.None || int(from) >= len(a.repeated) || !a.repeated[from] {
			return v, nil
		}
		if m, ok := means[v]; ok {
			return m, nil
		}
		m, err := a.merge(v)
		means[v] = m
		return m, err
	}
	for n := range a.after {
		if !a.after[n] {
			continue
		}
		for j := range g.node(program.NodeID(n)).Inputs {
			m, err := mean(g.node(program.NodeID(n)).Inputs[j])
			if err != nil {
				return err
			}
			g.node(program.NodeID(n)).Inputs[j] = m
		}
	}
	for i := range g.p.Fetches {
		f := &g.p.Fetches[i]
		if x := g.value(f.Value); a.value[1][f.Value] != f.Value && (len(x.Shape) > 0 || !x.DType.Float()) {
			return fmt.Errorf("%s is fetched, %s%s: only the mean of numbers is known", f.Name, x.DType, x.Shape)
		}
		m, err := mean(f.Value)
		if err != nil {
			return err
		}
		if m != f.Value {
			g.value(f.Value).Role, g.value(m).Role = program.RoleActivation, program.RoleOutput
			f.Value = m
		}
	}
	return nil
}

// findRows finds the gradients of tables, which are as many rows as there are
// indices: those of k batches lie one behind the other, not on each other.
func (a *accumulator) findRows() {
	g := a.g
	a.rows = map[program.ValueID]bool{}
	for n := range a.after {
		x := g.node(program.NodeID(n))
		if !a.after[n] {
			continue
		}
		for _, v := range x.Inputs {
			index := g.value(v)
			if index.DType.Float() || index.DType == program.Bool || len(index.Shape) != 1 || a.value[1][v] == v {
				continue
			}
			for _, w := range x.Inputs {
				if s := g.value(w).Shape; w != v && g.value(w).Variable == program.None && len(s) > 0 && s[0] == index.Shape[0] {
					a.rows[a.origin(w)] = true
				}
			}
		}
	}
}

// origin follows the rows back through what scales them.
func (a *accumulator) origin(v program.ValueID) program.ValueID {
	for {
		n := a.g.value(v).Producer
		if n == program.None || int(n) >= len(a.after) || !a.after[n] {
			return v
		}
		v = a.g.node(n).Inputs[0]
	}
}

// merge adds what makes one value of v's k.
func (a *accumulator) merge(v program.ValueID) (program.ValueID, error) {
	g := a.g
	x := *g.value(v)
	from := *g.node(x.Producer)
	scope, name := split(from.Name)
	node := func(op program.Op, attrs program.Attrs, inputs ...program.ValueID) (program.ValueID, error) {
		role := x.Role
		if role == program.RoleOutput {
			role = program.RoleActivation
		}
		id, err := g.add(program.Node{
			Name: scope + "accumulate/" + name, Op: op, Attrs: attrs, Inputs: inputs, Phase: from.Phase, Device: from.Device, Of: from.Of,
		}, role)
		if err != nil {
			return program.None, err
		}
		a.sums = append(a.sums, id)
		return g.node(id).Outputs[0], nil
	}
	sum := v
	var err error
	if rows := a.rows[v]; rows || !x.DType.Float() && x.DType != program.Bool {
		attrs := noAttrs
		attrs.Axes = []int64{0}
		parts := make([]program.ValueID, a.k)
		for i := range parts {
			parts[i] = a.value[i][v]
			a.ready[i] = append(a.ready[i], g.value(parts[i]).Producer)
		}
		if sum, err = node(program.OpConcat, attrs, parts...); err != nil || !rows {
			return sum, err
		}
	} else {
		a.ready[0] = append(a.ready[0], x.Producer)
		op := program.OpAdd
		if x.DType == program.Bool {
			op = program.OpLogicalAnd
		}
		for i := 1; i < a.k; i++ {
			if sum, err = node(op, noAttrs, sum, a.value[i][v]); err != nil {
				return sum, err
			}
			a.ready[i] = append(a.ready[i], g.value(sum).Producer)
		}
		if op == program.OpLogicalAnd {
			return sum, nil
		}
	}
	attrs := noAttrs
	attrs.DType, attrs.Value = x.DType, 1/float64(a.k)
	id, err := g.add(program.Node{Name: scope + "accumulate/Const", Op: program.OpConst, Attrs: attrs, Phase: from.Phase, Of: program.None}, program.RoleConstant)
	if err != nil {
		return sum, err
	}
	a.sums = append(a.sums, id)
	return node(program.OpMul, noAttrs, sum, g.node(id).Outputs[0])
}

// infer gives what comes after the batches the shapes that follow from more rows.
func (a *accumulator) infer() error {
	g := a.g
	for n := range a.after {
		if !a.after[n] {
			continue
		}
		x := g.node(program.NodeID(n))
		def, err := program.Lookup(x.Op)
		if err != nil {
			return err
		}
		specs, err := def.Infer(&g.p, x)
		if err != nil {
			return err
		}
		for o, s := range specs {
			g.value(x.Outputs[o]).Shape = s.Shape
		}
	}
	return nil
}

// schedule lets each batch begin when the one before has given its gradients.
func (a *accumulator) schedule() {
	g := a.g
	var first, after []program.NodeID
	for n := range a.after {
		if a.after[n] {
			after = append(after, program.NodeID(n))
		} else {
			first = append(first, program.NodeID(n))
		}
	}
	g.order = first
	for i := 1; i < a.k; i++ {
		slices.Sort(a.ready[i-1])
		done := slices.Compact(a.ready[i-1])
		for _, s := range a.slices[i] {
			g.node(s).Control = slices.Clone(done)
		}
		for _, c := range a.copies[i] {
			if c == program.None {
				continue
			}
			if len(g.node(c).Inputs) == 0 { // draws that nothing else holds back
				g.node(c).Control = append(g.node(c).Control, done...)
			}
			g.order = append(g.order, c)
		}
	}
	g.order = append(append(g.order, a.sums...), after...)
}
