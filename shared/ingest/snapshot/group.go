package snapshot

import (
	"tideline/protocol/event"
	"tideline/shared/ingest/groups"
)

// group finds the frames to blame for most of what is held where a device holds
// most, and gives their stacks a category each. The bytes are those asked for:
// what rounding adds does not change who is first.
func (w *teller) group() {
	c := counter{w: w, number: make([]uint32, len(w.s.stackEnds)), byOp: map[event.StringID]uint32{}}
	c.name(0)
	for i := range w.list {
		c.device(&w.list[i])
	}
	w.groupOf = make([]event.Category, len(w.s.stackEnds))
	group := make([]event.Category, len(c.ops))
	for i, k := range groups.Largest(c.peak, c.most) {
		w.groups = append(w.groups, w.strs.At(c.ops[k]))
		group[k] = groups.Category(i)
	}
	for stack, n := range c.number {
		if n != 0 {
			w.groupOf[stack] = group[n-1]
		}
	}
}

// counter sums what is in use by the frame to blame. Number 0 is that of blocks
// without a stack, which count for the peak and get no group.
type counter struct {
	w      *teller
	number []uint32 // by stack, one more than that of its op; 0 for not yet
	byOp   map[event.StringID]uint32
	ops    []event.StringID
	// In bytes by op: now, at the peak of the device that holds most of it
	// then, and at most.
	now, peak, most []int64
	at              []holding // by the number of an address of the device
}

type holding struct {
	size int64
	op   uint32
}

// name is the number of a stack's op.
func (c *counter) name(stack uint32) uint32 {
	if int(stack) >= len(c.number) {
		return 0
	}
	if c.number[stack] == 0 {
		op := c.w.op(stack)
		n, ok := c.byOp[op]
		if !ok {
			n = uint32(len(c.ops))
			c.byOp[op] = n
			c.ops = append(c.ops, op)
			c.now, c.peak, c.most = append(c.now, 0), append(c.peak, 0), append(c.most, 0)
		}
		c.number[stack] = n + 1
	}
	return c.number[stack] - 1
}

// device goes through the trace twice: to find the peak, and to stop there.
func (c *counter) device(d *device) {
	at := c.walk(d, d.trace.n)
	c.walk(d, at)
	for i, n := range c.now[1:] {
		c.peak[i+1] = max(c.peak[i+1], n)
	}
}

// walk leaves in now what is in use after some events of the trace, and returns
// after how many of them most was.
func (c *counter) walk(d *device, events int) (peak int) {
	s := c.w.s
	clear(c.now)
	c.at = make([]holding, len(d.known.list))
	var sum, high int64
	take := func(n uint32, size int64, op uint32) {
		h := &c.at[n]
		c.now[h.op] -= h.size
		sum += size - h.size
		*h = holding{size, op}
		c.now[op] += size
		c.most[op] = max(c.most[op], c.now[op])
	}
	for _, b := range d.early {
		take(d.known.number(b.addr), b.size, 0)
	}
	for i := range d.known.list {
		if x := &d.known.list[i]; !x.seen && x.final != 0 {
			b := s.blocks.at(int(x.final) - 1)
			take(uint32(i), b.Size, c.name(b.Stack))
		}
	}
	high = sum
	for i := range events {
		switch e := s.Event(d.trace, i); e.Action {
		case Alloc:
			take(d.entry[i], e.Size, c.name(e.Stack))
			if sum > high {
				high, peak = sum, i+1
			}
		case Free, FreeCompleted:
			take(d.entry[i], 0, 0)
		default:
		}
	}
	c.most[0] = 0
	return peak
}
