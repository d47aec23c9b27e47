package peaks

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// why is a reason for which one mode holds a tensor and the other does not,
// both being at the same op.
type why int

const (
	byTape why = iota
	byList
	byLoop
	inPlace
	queued
	readAhead
	ahead
	behind
	rounding
	otherwise
	numWhys
)

// reasons are their names, and the rule that each follows from.
var reasons = [numWhys]struct{ name, rule string }{
	byTape:    {"tape", "The gradient tape records what backward ops will read of the forward pass and lets go of everything together, when `gradient()` has returned. All readers of this tensor have run; a graph dropped it after the last (execution, sections 5 and 2.5)."},
	byList:    {"list of gradients", "The program gets the gradients of all variables before it applies the first. A graph applies each as soon as it is there and drops it (execution, section 9)."},
	byLoop:    {"batch", "`for x, y in data` holds a batch until it has the next one, so that two meet and none dies with its last reader. In a graph it does (execution, sections 5 and 9)."},
	inPlace:   {"in place", "An op of the graph wrote its result over an input that nobody else held. In eager mode the program's variable holds every input, so that both exist (execution, section 3)."},
	queued:    {"not yet made", "The graph's queue is first in, first out, and the op that makes this tensor still waits in it, though it comes earlier in the program (execution, sections 2 and 11)."},
	readAhead: {"read ahead", "The last reader of this tensor comes later in the program. In the graph its other inputs were there, so that its turn in the queue came first, and the tensor died with it (execution, sections 2 and 11)."},
	ahead:     {"made ahead", "The op that makes this tensor comes later in the program. In the graph its inputs were there, so that its turn in the queue came first (execution, sections 2 and 11)."},
	behind:    {"reader waits", "In the program every reader of this tensor comes before this op. In the graph one still waits in the queue (execution, sections 2 and 11)."},
	rounding:  {"rounding", "What chunks hold beyond the bytes asked for: sizes are multiples of 256, and a free chunk is handed out whole if the rest would be smaller than the request and smaller than 128 MiB (execution, section 1, and the allocator)."},
	otherwise: {"other", "Two ops of the graph may run in another order than in the program (execution, section 2)."},
}

// uses knows of every tensor of a program where it is made and last read, in
// program order.
type uses struct {
	at             map[string]int // op by name
	made, read     map[string]int // by tensor, views counted as what they view
	forward        map[string]bool
	taped, applied map[string]bool // read by a backward op, by an update
	ops            []string        // in program order
	follows        []bool          // by op: it needs a gradient, so that it cannot run before the backward pass
}

func usesOf(t *testing.T, model string, batch int) *uses {
	t.Helper()
	p, err := zoo.Program(model, zoo.Options{Batch: batch, Train: true, Optimizer: "adam"})
	if err != nil {
		t.Fatal(err)
	}
	u := &uses{
		map[string]int{}, map[string]int{}, map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, nil, make([]bool, len(p.Nodes)),
	}
	begun := false
	owner := make([]program.ValueID, len(p.Values)) // whose memory a value is
	for i := range owner {
		owner[i] = program.ValueID(i)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		u.at[n.Name] = i
		u.ops = append(u.ops, n.Name)
		u.follows[i] = n.Phase == program.Backward && !begun // the gradient of the loss by itself
		begun = begun || n.Phase == program.Backward
		for _, v := range n.Inputs {
			if from := p.Values[v].Producer; from >= 0 && u.follows[from] {
				u.follows[i] = true
			}
		}
		def, err := program.Lookup(n.Op)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range n.Inputs {
			name := p.Values[owner[v]].Name
			u.read[name] = i
			u.taped[name] = u.taped[name] || n.Phase == program.Backward
			u.applied[name] = u.applied[name] || n.Phase == program.Update
		}
		for _, v := range n.Outputs {
			if def.Alias {
				owner[v] = owner[n.Inputs[0]]
				continue
			}
			name := p.Values[v].Name
			u.made[name] = i
			u.forward[name] = n.Phase == program.Forward
		}
	}
	return u
}

// beside finds the moment of the graph's step to lay beside eager mode's peak:
// at the same op, or at the one before it in the program that the graph cannot
// have run ahead of the backward pass.
func (u *uses) beside(op string, graph *recorded) *moment {
	for i := u.at[op]; i >= 0; i-- {
		if !u.follows[i] {
			continue
		}
		if m := graph.during(u.ops[i], peakSteps-1); m != nil {
			return m
		}
	}
	return nil
}

// eagerHolds says why eager mode holds what the graph does not, at op now.
func (u *uses) eagerHolds(b *block, now int, graph *moment) why {
	past, made := graph.past[b.name]
	switch {
	case b.category == event.Input:
		return byLoop
	case made && past.takenBy != "":
		if u.read[b.name] < now && u.forward[b.name] && u.taped[b.name] {
			return byTape // and so nobody else held it, in the graph
		}
		return inPlace
	case u.applied[b.name]:
		return byList
	case made && u.read[b.name] < now && u.forward[b.name] && u.taped[b.name]:
		return byTape
	case !made:
		return queued
	case !past.live && u.read[b.name] >= now:
		return readAhead
	}
	return otherwise
}

// graphHolds says why the graph holds what eager mode does not.
func (u *uses) graphHolds(b *block, now int) why {
	switch made, known := u.made[b.name]; {
	case !known:
		return otherwise
	case made > now:
		return ahead
	case u.read[b.name] < now:
		return behind
	}
	return otherwise
}

// difference is the bytes that one moment has and the other has not, by
// reason, with the names of the tensors.
type difference struct {
	bytes [numWhys]int64
	names [numWhys]map[string]*group
}

// group is the tensors of layers that differ in their numbers only.
type group struct {
	name  string
	bytes int64
	n     int
}

var layerNumber = regexp.MustCompile(`\d+/`)

func (d *difference) add(w why, name string, bytes int64) {
	d.bytes[w] += bytes
	if d.names[w] == nil {
		d.names[w] = map[string]*group{}
	}
	key := layerNumber.ReplaceAllString(name, "*/")
	g := d.names[w][key]
	if g == nil {
		g = new(group)
		d.names[w][key] = g
	}
	g.bytes += bytes
	g.n++
	if g.name = key; g.n == 1 {
		g.name = name
	}
}

// largest gives the groups of a reason, the largest first.
func (d *difference) largest(w why) []*group {
	var out []*group
	for _, g := range d.names[w] {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	return out
}

func (g *group) String() string {
	s := "`" + g.name + "`"
	if g.n > 1 {
		s += " × " + strconv.Itoa(g.n)
	}
	return s
}

// missing gives the blocks of m that n has not, or has fewer of.
func missing(m, n *moment) []block {
	have := map[string]int64{}
	for _, b := range n.held {
		have[b.name] += b.requested
	}
	var out []block
	for _, b := range m.held {
		if have[b.name] >= b.requested {
			have[b.name] -= b.requested
			continue
		}
		out = append(out, b)
	}
	return out
}

// compare explains what eager mode holds at its peak, beside the graph at the
// same op: more and less than that.
func compare(u *uses, eager, graph *moment) (more, less difference) {
	now := u.at[eager.op]
	for _, b := range missing(eager, graph) {
		more.add(u.eagerHolds(&b, now, graph), b.name, b.requested)
	}
	for _, b := range missing(graph, eager) {
		less.add(u.graphHolds(&b, now), b.name, b.requested)
	}
	_, e := eager.categories()
	_, g := graph.categories()
	if e > g {
		more.bytes[rounding] = e - g
	} else {
		less.bytes[rounding] = g - e
	}
	return more, less
}
