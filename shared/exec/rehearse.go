package exec

import (
	"slices"

	"tideline/protocol/event"
	"tideline/shared/device"
)

// life is a buffer's in a rehearsal: from the count of allocations and frees
// at which it was made to the one at which it was freed.
type life struct {
	unit         int32
	space        spaceID
	alone        bool // outlives the execution, or is asked for in any case
	lower, upper int64
	size         int64
}

// dryRun records lives in place of asking for memory.
type dryRun struct {
	clock int64
	next  uint64
	lives []life
}

func (d *dryRun) allocate(r *Runtime, q *request) bufferID {
	id := r.newBuffer()
	s := &r.spaces[q.space]
	b := &r.buffers[id]
	*b = buffer{refs: 1, space: q.space, pinned: s.pinned, requested: q.bytes, size: inArena(q.bytes)}
	if q.bytes == 0 {
		return id
	}
	d.next += arenaAlignment
	b.address = d.next
	if q.unit == 0 || s.arena == noSpace {
		return id
	}
	d.clock++
	d.lives = append(d.lives, life{unit: q.unit - 1, space: q.space, lower: d.clock, size: b.size})
	b.life = int32(len(d.lives))
	return id
}

func (d *dryRun) free(b *buffer) {
	if b.life != 0 {
		d.clock++
		d.lives[b.life-1].upper = d.clock
	}
}

// outlives notes that a buffer is needed after the execution.
func (d *dryRun) outlives(b *buffer) {
	if b.life != 0 {
		d.lives[b.life-1].alone = true
	}
}

// rehearse runs the graph once on a runtime that does nothing.
func (r *Runtime) rehearse(p *Plan) ([]life, error) {
	d := &Runtime{
		cfg: r.cfg, backend: idle{}, strings: r.strings, spaces: slices.Clone(r.spaces), memory: r.memory,
		hostSpace: r.hostSpace, pinnedSpace: r.pinnedSpace, buffers: make([]buffer, 1, 256),
		dry: &dryRun{}, out: emitter{sink: nobody{}, clock: idle{}, next: far, feedAt: far},
	}
	d.cfg.Stop = nil
	d.variables = make([]variable, len(r.variables))
	for i := range d.variables {
		d.variables[i] = variable{d.outside(r.hostSpace, 1), true}
	}
	constants := slices.Clone(p.buf)
	for i := range p.nodes {
		n := &p.nodes[i]
		switch n.kind {
		case constNode:
			p.buf[n.out[0]] = d.outside(p.tensors[n.out[0]].space, p.tensors[n.out[0]].bytes)
		case variableNode:
			v := p.p.Nodes[n.src].Attrs.Variable
			d.variables[v].buffer = d.outside(p.tensors[n.out[0]].space, p.tensors[n.out[0]].bytes)
		default:
		}
	}
	batch := make([]bufferID, len(p.inputs))
	for i, t := range p.inputs {
		batch[i] = d.outside(d.hostSpace, p.tensors[t].bytes)
	}
	err := d.graphStep(p, batch)
	for _, f := range p.fetches {
		if b := p.slot[p.nodes[f.node].firstSlot]; b != 0 {
			d.dry.outlives(&d.buffers[b])
		}
	}
	for _, k := range d.kept {
		d.dry.outlives(&d.buffers[k.buffer])
	}
	d.land()
	clear(p.slot)
	copy(p.buf, constants)
	d.dry.clock++
	for i := range d.dry.lives {
		if l := &d.dry.lives[i]; l.upper == 0 {
			l.upper = d.dry.clock
			l.alone = true
		}
	}
	return d.dry.lives, err
}

// outside is memory that no plan places, held by one reference.
func (r *Runtime) outside(s spaceID, bytes int64) bufferID {
	return r.dry.allocate(r, &request{bytes: bytes, space: s})
}

// idle is a Backend on which nothing takes time.
type idle struct{}

func (idle) Open([]*device.Logical) error            { return nil }
func (idle) Close()                                  {}
func (idle) Modelled() bool                          { return true }
func (idle) Map(event.DeviceID, uint64, int64) error { return nil }
func (idle) Unmap(event.DeviceID, uint64, int64)     {}
func (idle) Bytes(Ref) []byte                        { return nil }
func (idle) Now() int64                              { return 0 }
func (idle) Spend(int64)                             {}
func (idle) WaitUntil(int64)                         {}
func (idle) Launch(*Kernel) (Span, error)            { return Span{}, nil }
func (idle) Copy(*Copy) (Span, error)                { return Span{}, nil }
func (idle) Idle(event.DeviceID) int64               { return 0 }
