package rewrite

import "tideline/shared/program"

// Live is what a program holds in one device's memory when its nodes run in an
// order, by the rules of the graph executor: an input dies with its last
// reader, aliases share a buffer, a sole owner is taken over in place, what
// nobody reads is freed at once. Everything is taken to be on one device; the
// only thing in host memory is what SwapOut gives. Sizes are requested bytes.
type Live struct {
	Order      []program.NodeID
	Bytes      []int64 // while Order[i] runs, with its outputs, its workspace and Persistent
	Peak       int64
	At         program.NodeID // the first node with the peak, None when nothing runs
	Persistent int64          // variables, optimizer state and constants
	// Made and Dies are, by value, places in Order: where it is made and where
	// its last reader runs. Made is -1 for an input; Dies is len(Order) for
	// what is fetched. Both are -1 for what is never made, and Dies is Made for
	// what nobody reads.
	Made, Dies []int32
}

// LiveBytes is the modelled peak of a step in the graph executor's order and
// the node that runs then.
func LiveBytes(p *program.Program) (peak int64, at program.NodeID) {
	l := Measure(p, FIFO(p))
	return l.Peak, l.At
}

// ProgramOrder is the order of eager execution.
func ProgramOrder(p *program.Program) []program.NodeID {
	out := make([]program.NodeID, len(p.Nodes))
	for i := range out {
		out[i] = program.NodeID(i)
	}
	return out
}

// FIFO is the order of the graph executor with one device: a queue of ready
// nodes, first in first out; a node that has run makes its readers ready in
// the order in which they stand in the program, then those that only waited
// for it.
func FIFO(p *program.Program) []program.NodeID {
	missing := make([]int32, len(p.Nodes))
	reads := readers(p)
	waits := make([][]program.NodeID, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		missing[i] = int32(len(n.Inputs) + len(n.Control))
		for _, c := range n.Control {
			waits[c] = append(waits[c], program.NodeID(i))
		}
	}
	queue := make([]program.NodeID, 0, len(p.Nodes))
	for i := range missing {
		if missing[i] == 0 {
			queue = append(queue, program.NodeID(i))
		}
	}
	arrive := func(list []program.NodeID) {
		for _, n := range list {
			if missing[n]--; missing[n] == 0 {
				queue = append(queue, n)
			}
		}
	}
	for _, v := range p.Inputs { // stand in the queue before all nodes
		arrive(reads[v])
	}
	for at := 0; at < len(queue); at++ {
		for _, v := range p.Nodes[queue[at]].Outputs {
			arrive(reads[v])
		}
		arrive(waits[queue[at]])
	}
	return queue
}

// readers lists, by value, the nodes that take it, once for each input.
func readers(p *program.Program) [][]program.NodeID {
	count := make([]int32, len(p.Values))
	total := 0
	for i := range p.Nodes {
		for _, v := range p.Nodes[i].Inputs {
			count[v]++
			total++
		}
	}
	out := make([][]program.NodeID, len(p.Values))
	all := make([]program.NodeID, total)
	for v, c := range count {
		out[v], all = all[:0:c], all[c:]
	}
	for i := range p.Nodes {
		for _, v := range p.Nodes[i].Inputs {
			out[v] = append(out[v], program.NodeID(i))
		}
	}
	return out
}

// Measure works out what p holds when its nodes run in this order, in which
// everything must be made before it is read, as in what FIFO and ProgramOrder
// give.
func Measure(p *program.Program, order []program.NodeID) *Live {
	m := meter{
		p: p, buffer: make([]int32, len(p.Values)), edges: make([]int32, len(p.Values)),
		out: &Live{Order: order, Bytes: make([]int64, len(order)), At: program.None, Made: make([]int32, len(p.Values)), Dies: make([]int32, len(p.Values))},
	}
	m.begin()
	for i, id := range order {
		m.run(int32(i), &p.Nodes[id])
		if m.out.Bytes[i] > m.out.Peak {
			m.out.Peak, m.out.At = m.out.Bytes[i], id
		}
	}
	for _, f := range p.Fetches { // its reference is never dropped
		m.out.Dies[f.Value] = int32(len(order))
	}
	return m.out
}

type meter struct {
	p       *program.Program
	out     *Live
	live    int64
	buffer  []int32 // by value: its buffer, an index into refs; 0 for one that costs nothing
	edges   []int32 // by value: readers, and the host for what is fetched
	refs    []int32
	size    []int64
	slots   []int32
	outputs []int32
}

func (m *meter) begin() {
	p := m.p
	for i := range p.Variables {
		m.out.Persistent += p.Variables[i].Bytes()
	}
	for i := range p.Nodes {
		if p.Nodes[i].Op == program.OpConst {
			m.out.Persistent += p.Values[p.Nodes[i].Outputs[0]].Bytes()
		}
		for _, v := range p.Nodes[i].Inputs {
			m.edges[v]++
		}
	}
	for _, f := range p.Fetches {
		m.edges[f.Value]++
	}
	m.live = m.out.Persistent
	m.refs, m.size = []int32{0}, []int64{0}
	for v := range m.out.Made {
		m.out.Made[v], m.out.Dies[v] = -1, -1
	}
	for _, v := range p.Inputs {
		m.handOn(v, m.allocate(p.Values[v].Bytes()), -1)
	}
}

func (m *meter) allocate(bytes int64) int32 {
	m.refs, m.size = append(m.refs, 1), append(m.size, bytes)
	m.live += bytes
	return int32(len(m.refs) - 1)
}

func (m *meter) drop(b int32) {
	if b == 0 {
		return
	}
	if m.refs[b]--; m.refs[b] == 0 {
		m.live -= m.size[b]
	}
}

// handOn gives a value's buffer to its readers in place of its maker.
func (m *meter) handOn(v program.ValueID, b, at int32) {
	m.buffer[v] = b
	m.out.Made[v], m.out.Dies[v] = at, at
	if b != 0 {
		m.refs[b] += m.edges[v]
	}
	m.drop(b)
}

func (m *meter) run(at int32, n *program.Node) {
	def, err := program.Lookup(n.Op)
	if err != nil {
		return
	}
	m.slots, m.outputs = m.slots[:0], m.outputs[:0]
	for _, v := range n.Inputs {
		m.slots = append(m.slots, m.buffer[v])
	}
	for o, v := range n.Outputs {
		m.outputs = append(m.outputs, m.output(def, n, o, v))
	}
	m.out.Bytes[at] = m.live
	if def.Workspace != nil {
		m.out.Bytes[at] += def.Workspace(m.p, n)
	}
	for _, b := range m.slots {
		m.drop(b)
	}
	for o, v := range n.Outputs {
		m.handOn(v, m.outputs[o], at)
	}
	for _, v := range n.Inputs {
		m.out.Dies[v] = max(m.out.Dies[v], at)
	}
}

// output is the buffer of output o: an input's, or a new one.
func (m *meter) output(def *program.Def, n *program.Node, o int, v program.ValueID) int32 {
	switch {
	case n.Op == program.OpVariable || n.Op == program.OpConst || n.Op == program.OpSwapOut:
		return 0
	case def.Alias:
		if m.slots[0] != 0 {
			m.refs[m.slots[0]]++
		}
		return m.slots[0]
	case o == def.ForwardOutput:
		for _, i := range def.Forwardable {
			if i < len(m.slots) && m.slots[i] != 0 && m.refs[m.slots[i]] == 1 && sameSize(m.p, n.Inputs[i], v) {
				b := m.slots[i]
				m.slots[i] = 0
				return b
			}
		}
	}
	return m.allocate(m.p.Values[v].Bytes())
}

// sameSize is what taking over a buffer asks of the two tensors.
func sameSize(p *program.Program, a, b program.ValueID) bool {
	x, y := &p.Values[a], &p.Values[b]
	return x.DType == y.DType && x.Shape.Elements() == y.Shape.Elements()
}
