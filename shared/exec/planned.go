package exec

import (
	"fmt"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/plan"
)

// arenaAlignment is that of tensors inside an arena, in bytes, as XLA's.
const arenaAlignment = 64

// alone is the place of what lies outside of the arenas.
const alone = int64(-1)

// arena is the memory that one execution of a plan asks of one allocator.
type arena struct {
	of     spaceID // the allocator
	buffer bufferID
	Arena
}

// Arena is the result of planning one memory for one concrete function. Bytes.
type Arena struct {
	Device  event.DeviceID
	Size    int64 // asked of the allocator, once per execution
	Load    int64 // the most that its tensors need at one time
	Tensors int
}

// Arenas are what was planned; nothing before the first step, and in other
// modes than Planned.
func (p *Plan) Arenas() []Arena {
	out := make([]Arena, len(p.arenas))
	for i := range p.arenas {
		out[i] = p.arenas[i].Arena
	}
	return out
}

// Arena is what lies in a device's arena now, in bytes, and the most that ever
// did.
func (r *Runtime) Arena(dev event.DeviceID) (inUse, peak int64) {
	if a := r.spaces[r.memory[dev]].arena; a != noSpace {
		return r.spaces[a].inUse, r.spaces[a].peak
	}
	return 0, 0
}

// attachArena gives a memory the space of its arenas. To a viewer that is an
// allocator of its own, whose only region is the arena while an execution
// holds it, so that the tensors inside are seen like any others, and the
// block around them too.
func (r *Runtime) attachArena(id spaceID) {
	in := &r.spaces[id]
	at := spaceID(len(r.spaces))
	in.arena = at
	name := strings.TrimSuffix(in.memory.Name(), "_bfc") + "_planned"
	facts := event.Fields{
		{Key: "name", Value: name}, {Key: "kind", Value: "planned"}, {Key: "within", Value: in.memory.Name()},
	}
	r.spaces = append(r.spaces, space{
		r: r, id: event.AllocatorID(at), device: in.device, begun: true, arena: noSpace, within: id,
	})
	r.names.arena = r.strings.ID("planned arena")
	r.ev = event.Event{
		Kind: event.AllocatorFacts, Device: r.spaces[at].device, Allocator: event.AllocatorID(at),
		Text: r.strings.ID(facts.Encode()), Step: event.NoStep,
	}
	r.out.host(&r.ev)
}

// put sends a request to the place that the plan has for the unit, if any.
func (p *Plan) put(r *Runtime, q *request, unit int32) {
	if r.dry != nil {
		q.unit = unit + 1
		return
	}
	if p.place == nil || p.place[unit] == alone {
		return
	}
	q.space = r.spaces[q.space].arena
	q.offset = p.place[unit]
}

func inArena(bytes int64) int64 { return (bytes + arenaAlignment - 1) &^ (arenaAlignment - 1) }

// allocatePlanned makes a buffer at its place. Nothing is asked of anybody.
func (r *Runtime) allocatePlanned(s *space, q *request) bufferID {
	id := r.newBuffer()
	b := &r.buffers[id]
	*b = buffer{}
	b.refs, b.space = 1, r.spaces[s.within].arena
	if q.bytes == 0 {
		return id
	}
	b.address, b.size, b.requested = s.base+uint64(q.offset), inArena(q.bytes), q.bytes
	s.inUse += b.size
	s.peak = max(s.peak, s.inUse)
	r.tellAlloc(s, b, q)
	return id
}

// takeArenas asks for the arenas of an execution.
func (r *Runtime) takeArenas(p *Plan) bool {
	for i := range p.arenas {
		a := &p.arenas[i]
		b, ok := r.allocate(&request{
			bytes: a.Size, op: r.names.arena, tensor: r.names.arena, space: a.of, category: event.Temporary,
		})
		if !ok {
			return false
		}
		a.buffer = b
		s := &r.spaces[r.spaces[a.of].arena]
		s.base = r.buffers[b].address
		r.tellArena(event.RegionAdd, s, a)
	}
	return true
}

// giveArenas gives them back. On the device the work may still run: what asks
// for the memory next is ordered behind it.
func (r *Runtime) giveArenas(p *Plan) {
	for i := range p.arenas {
		a := &p.arenas[i]
		if a.buffer == 0 {
			continue
		}
		r.tellArena(event.RegionRemove, &r.spaces[r.spaces[a.of].arena], a)
		r.drop(a.buffer)
		a.buffer = 0
	}
}

func (r *Runtime) tellArena(k event.Kind, s *space, a *arena) {
	b := &r.buffers[a.buffer]
	r.ev = event.Event{
		Kind: k, Device: s.device, Allocator: s.id, Address: b.address, Size: b.size, Step: r.step,
	}
	if k == event.RegionAdd {
		r.ev.Requested = b.requested
	}
	r.out.host(&r.ev)
}

// layOut plans the arenas of a concrete function: the executor itself runs
// the graph once without doing anything, which tells from when to when each
// buffer lives, what is taken over in place and what is shared; then offsets
// are found for what lives and dies within an execution. Entry parameters (the
// batch), results, constants, variables and what the program keeps stay apart.
func (r *Runtime) layOut(p *Plan) bool {
	if r.cfg.Mode != Planned {
		return true
	}
	lives, err := r.rehearse(p)
	if err != nil {
		r.fail(fmt.Errorf("plan the memory of %s: %w", p.p.Name, err))
		return false
	}
	p.arenas = nil
	p.place = make([]int64, len(p.tensors)+len(p.nodes))
	for i := range p.place {
		p.place[i] = alone
	}
	for id := range r.spaces {
		if r.spaces[id].arena == noSpace {
			continue
		}
		if err := r.layOutSpace(p, spaceID(id), lives); err != nil {
			r.fail(fmt.Errorf("plan the memory of %s on %s: %w", p.p.Name, r.cfg.Devices[r.spaces[id].device].Name.Short(), err))
			return false
		}
	}
	return true
}

// A plan this close to its load, as one in so many, is good enough; and this is
// how long the planner may look for one, in decisions for each tensor.
const (
	closeEnough    = 2000
	nodesPerTensor = 100
)

func (r *Runtime) layOutSpace(p *Plan, id spaceID, lives []life) error {
	var problem plan.Problem
	var units []int32
	for _, l := range lives {
		if l.space == id && !l.alone && l.size > 0 {
			problem.Buffers = append(problem.Buffers, plan.Buffer{Lower: l.lower, Upper: l.upper, Size: l.size, Align: arenaAlignment})
			units = append(units, l.unit)
		}
	}
	if len(units) == 0 {
		return nil
	}
	load := plan.Load(&problem)
	best, err := plan.Minimize(&problem, plan.Options{Goal: load + load/closeEnough, Nodes: nodesPerTensor * int64(len(units))})
	if err != nil {
		return err
	}
	// Two tensors on the same bytes would be wrong numbers far from their cause.
	if err := plan.Check(&problem, best.Plan); err != nil {
		return err
	}
	for i, u := range units {
		p.place[u] = best.Offsets[i]
	}
	p.arenas = append(p.arenas, arena{of: id, Arena: Arena{
		Device: r.spaces[id].device, Size: best.Height, Load: load, Tensors: len(units),
	}})
	return nil
}
