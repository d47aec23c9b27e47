package rewrite

import (
	"cmp"
	"fmt"

	"tideline/shared/program"
)

// SwapMode says what is moved to host memory between its uses.
type SwapMode uint8

// The modes.
const (
	// SwapOff moves nothing.
	SwapOff SwapMode = iota
	// SwapManual moves the activations that were asked for.
	SwapManual
	// SwapHeuristics is Grappler's: nothing while the modelled peak fits the
	// device; else what lives over the peak, until the rest fits.
	SwapHeuristics
)

// Swap says what is moved to host memory and when it comes back.
type Swap struct {
	Mode SwapMode
	// Match are patterns for the names of the ops whose results SwapManual
	// moves, in which * stands for any text; none takes every op. Above leaves
	// out results of fewer bytes; what Grappler leaves out is left out anyway.
	Match []string
	Above int64
	// Ahead is how many nodes before its first reader SwapManual begins to
	// bring a tensor back, at least 1; 0 is as many as take the time of the
	// copy by Nanos, and no fewer than DefaultAhead.
	Ahead int
	// DeviceBytes is what SwapHeuristics must fit.
	DeviceBytes int64
	// Rate is the bytes per second of the link to the host, by which the way
	// back is begun; 0 is Grappler's 16 GB/s.
	Rate int64
	// Nanos is the modelled time of a node; nil counts FLOPs and moved bytes.
	Nanos func(*program.Program, *program.Node) int64
	// Eager takes program order for the order of the step, instead of the
	// graph executor's.
	Eager bool
}

// DefaultAhead is the least prefetch distance in nodes where none is given.
const DefaultAhead = 4

// What Grappler's heuristic leaves alone, and the link it plans with.
const (
	smallestSwap = 1024           // bytes; smaller tensors stay
	shortestSwap = 1_000_000      // nanoseconds between making and use
	linkRate     = 16_000_000_000 // bytes per second of PCIe
	swapRounds   = 25
)

// ApplySwap adds pairs of SwapOut and SwapIn. It gives the number of pairs.
func ApplySwap(p *program.Program, s Swap) (*program.Program, int, error) {
	if s.Rate < 0 {
		return nil, 0, fmt.Errorf("swap %s over a link of %d bytes per second: nothing would come back", p.Name, s.Rate)
	}
	s.Rate = cmp.Or(s.Rate, linkRate)
	switch s.Mode {
	case SwapOff:
		return p, 0, nil
	case SwapManual:
		return s.manual(p)
	case SwapHeuristics:
		return s.heuristics(p)
	default:
		return nil, 0, fmt.Errorf("swap mode %d is unknown", s.Mode)
	}
}

func (s *Swap) order(p *program.Program) []program.NodeID {
	if s.Eager {
		return ProgramOrder(p)
	}
	return FIFO(p)
}

// timetable is an order of a program's nodes with what swapping asks of it.
type timetable struct {
	p      *program.Program
	order  []program.NodeID
	place  []int               // by node, in order; -1 for one that does not run
	reads  [][]program.NodeID  // by buffer: readers of it under any alias, once each
	under  [][]program.ValueID // by buffer, beside reads: under which value
	pinned []bool              // by buffer: variable, constant, input or fetched
}

func (s *Swap) timetable(p *program.Program) *timetable {
	t := &timetable{
		p: p, order: s.order(p), place: make([]int, len(p.Nodes)), reads: make([][]program.NodeID, len(p.Values)),
		under: make([][]program.ValueID, len(p.Values)), pinned: make([]bool, len(p.Values)),
	}
	for i := range t.place {
		t.place[i] = -1
	}
	for i, id := range t.order {
		t.place[id] = i
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if len(n.Outputs) > 0 && isAlias(n.Op) {
			continue // its readers are the buffer's
		}
		for _, v := range n.Inputs {
			b := root(p, v)
			if at := len(t.reads[b]); at == 0 || t.reads[b][at-1] != program.NodeID(i) || t.under[b][at-1] != v {
				t.reads[b] = append(t.reads[b], program.NodeID(i))
				t.under[b] = append(t.under[b], v)
			}
		}
	}
	for v := range p.Values {
		from := p.Values[v].Producer
		t.pinned[v] = from == program.None || p.Values[v].Variable != program.None || p.Nodes[from].Op == program.OpConst ||
			p.Nodes[from].Op == program.OpSwapIn || p.Nodes[from].Op == program.OpSwapOut
	}
	for _, f := range p.Fetches {
		t.pinned[root(p, f.Value)] = true
	}
	return t
}

func isAlias(op program.Op) bool {
	def, err := program.Lookup(op)
	return err == nil && def.Alias
}

// trip is one tensor's way to the host and back.
type trip struct {
	buffer  program.ValueID
	last    int // place of the last reader, or of the maker, that has it from the device
	first   int // place of the first reader after the trip
	uses    int // readers after the trip
	trigger int // place of the node after which it comes back
	fitness float64
}

// trip gives the way of a buffer whose readers at places from on read what came
// back. ok is false where there is none.
func (t *timetable) trip(b program.ValueID, back func(reader program.NodeID) bool) (trip, bool) {
	from := t.p.Values[b].Producer
	if t.pinned[b] || from == program.None || t.place[from] < 0 {
		return trip{}, false
	}
	x := trip{buffer: b, last: t.place[from], first: len(t.order)}
	for _, r := range t.reads[b] {
		at := t.place[r]
		switch {
		case at < 0:
		case back(r):
			x.first = min(x.first, at)
			x.uses++
		default:
			x.last = max(x.last, at)
		}
	}
	return x, x.uses > 0 && x.first > x.last
}

// swap writes the trip into the graph.
func (t *timetable) swap(g *graph, x trip, back func(reader program.NodeID) bool) error {
	v := g.value(x.buffer)
	from := v.Producer
	scope, name := split(g.node(from).Name)
	if v.Index > 0 {
		name = name + "_" + string(rune('0'+v.Index%10))
	}
	device := g.node(from).Device
	out, err := g.add(program.Node{
		Name: scope + "swap_out/" + name, Op: program.OpSwapOut, Inputs: []program.ValueID{x.buffer}, Attrs: noAttrs,
		Device: device, Phase: g.node(from).Phase, Of: program.None,
	}, program.RoleActivation)
	if err != nil {
		return err
	}
	g.after(out, t.order[x.last])
	in, err := g.add(program.Node{
		Name: scope + "swap_in/" + name, Op: program.OpSwapIn, Inputs: []program.ValueID{g.node(out).Outputs[0]}, Attrs: noAttrs,
		Control: []program.NodeID{t.order[x.trigger]}, Device: device, Phase: program.Backward, Of: from,
	}, v.Role)
	if err != nil {
		return err
	}
	g.after(in, t.order[x.trigger])
	again := map[program.ValueID]program.ValueID{x.buffer: g.node(in).Outputs[0]}
	for i, r := range t.reads[x.buffer] {
		if t.place[r] < 0 || !back(r) {
			continue
		}
		w := t.under[x.buffer][i]
		to, err := g.aliasAgain(w, again)
		if err != nil {
			return err
		}
		for j, u := range g.node(r).Inputs {
			if u == w {
				g.node(r).Inputs[j] = to
			}
		}
	}
	return nil
}

var noAttrs = program.Attrs{Variable: program.None, Slots: program.NoSlots}

// aliasAgain gives the alias v of a buffer over what came back of it.
func (g *graph) aliasAgain(v program.ValueID, again map[program.ValueID]program.ValueID) (program.ValueID, error) {
	if to, ok := again[v]; ok {
		return to, nil
	}
	from := g.value(v).Producer
	base, err := g.aliasAgain(g.node(from).Inputs[0], again)
	if err != nil {
		return v, err
	}
	n := *g.node(from)
	n.Name, n.Inputs, n.Phase, n.Control = n.Name+"/swapped", []program.ValueID{base}, program.Backward, nil
	id, err := g.add(n, g.value(v).Role)
	if err != nil {
		return v, err
	}
	again[v] = g.node(id).Outputs[0]
	return again[v], nil
}
