package contest

// Builder makes a trace of calls that are known otherwise than by events.
type Builder struct {
	t    Trace
	size []int64 // requested, by slot
	live int64   // blocks
}

// NewBuilder begins a trace. Of head the name, kind, device, limit, pools and
// the original are taken.
func NewBuilder(head *Trace) *Builder {
	return &Builder{t: Trace{Name: head.Name, Kind: head.Kind, Device: head.Device, Limit: head.Limit, Pools: head.Pools, Original: head.Original}}
}

// Add takes a call. A slot is allocated before it is freed, and is free before it
// is allocated again; an allocation that Fails leaves its slot free.
func (b *Builder) Add(c Call) {
	for int(c.Slot) >= len(b.size) {
		b.size = append(b.size, 0)
	}
	t := &b.t
	switch {
	case c.Kind == Allocate && c.Fails:
		t.OutOfMem++
	case c.Kind == Allocate:
		b.size[c.Slot] = c.Bytes
		b.live++
		t.allocated(c.Bytes)
	case c.Kind == Free:
		t.requested -= b.size[c.Slot]
		b.live--
	}
	t.add(c)
}

// Begin says that the state is built up: what follows was recorded.
func (b *Builder) Begin() { b.t.Begins, b.t.Allocs, b.t.Floor = b.t.n, b.live, b.t.requested }

// Trace is what was built; nothing is added to it afterwards.
func (b *Builder) Trace() *Trace { return &b.t }
