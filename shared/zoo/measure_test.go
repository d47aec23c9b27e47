package zoo

import (
	"strings"
	"testing"

	"tideline/shared/program"
)

// parameters adds up the model's variables under a scope.
func parameters(p *program.Program, scope string) (sum int64) {
	for i := range p.Variables {
		if v := &p.Variables[i]; !v.Slot && !v.Training && strings.HasPrefix(v.Name, scope) {
			sum += v.Shape.Elements()
		}
	}
	return sum
}

// outputs adds up the elements of the first outputs of an op's forward nodes.
func outputs(p *program.Program, op program.Op) (sum int64) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == op && n.Phase == program.Forward {
			sum += p.Values[n.Outputs[0]].Shape.Elements()
		}
	}
	return sum
}

// products adds up the operations of all forward products, two per
// multiply-add.
func products(p *program.Program) (flops int64) {
	for i := range p.Nodes {
		switch n := &p.Nodes[i]; n.Op {
		case program.OpConv2D, program.OpConv2DBackpropInput, program.OpMatMul, program.OpBatchMatMul:
			if n.Phase == program.Forward {
				flops += p.Cost(n).FLOPs
			}
		default:
		}
	}
	return flops
}

// saved adds up the bytes of what the forward pass makes, or is fed, under a
// scope and the backward pass reads. Tensors that share a buffer count once,
// variables not at all.
func saved(tb testing.TB, p *program.Program, scope string) (sum int64) {
	tb.Helper()
	root := make([]program.ValueID, len(p.Values))
	for i := range root {
		root[i] = program.ValueID(i)
	}
	kept := map[program.ValueID]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		d, err := program.Lookup(n.Op)
		if err != nil {
			tb.Fatal(err)
		}
		if d.Alias {
			root[n.Outputs[0]] = root[n.Inputs[0]]
		}
		if n.Phase != program.Backward {
			continue
		}
		for _, v := range n.Inputs {
			x := &p.Values[root[v]]
			forward := x.Producer == program.None || p.Nodes[x.Producer].Phase == program.Forward
			if forward && x.Variable == program.None && !kept[root[v]] && strings.HasPrefix(x.Name, scope) {
				kept[root[v]] = true
				sum += x.Bytes()
			}
		}
	}
	return sum
}

// savedPerSample is what one more sample adds to saved.
func savedPerSample(tb testing.TB, model string, opt Options, scope string) int64 {
	tb.Helper()
	opt.Train = true
	if opt.Optimizer == "" {
		opt.Optimizer = "sgd"
	}
	opt.Batch = 3
	more := saved(tb, build(tb, model, opt).Program, scope)
	opt.Batch = 2
	return more - saved(tb, build(tb, model, opt).Program, scope)
}

// count gives the number of an op's nodes.
func count(p *program.Program, op program.Op) (n int) {
	for i := range p.Nodes {
		if p.Nodes[i].Op == op {
			n++
		}
	}
	return n
}

// near says whether got is want, give or take a fraction.
func near(got, want, within float64) bool {
	return got >= want*(1-within) && got <= want*(1+within)
}
