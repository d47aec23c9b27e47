package device

// Logical is a device as a program sees it: CPU:0, GPU:0. Several may share a
// card.
type Logical struct {
	Name  Name
	Card  *Card // nil for the host
	Model Model
	Limit int64 // bytes that its allocator may take; 0 for the host
	// Alone is what Limit would be if nobody else held memory of the card. It
	// equals Limit where that was configured rather than worked out.
	Alone   int64
	Growth  bool
	FreeNow int64 // bytes free on the card when the device was made
	Held    int64 // bytes that others held on the card then
	Context int64 // bytes of the run's own driver context, counted once per card
	Reserve int64 // bytes that Limit leaves to libraries and the driver; 0 where it was configured
	// Physical is the card's place in the driver's order, Priority that of its
	// streams (lower is more urgent), Unified whether Limit may exceed the card.
	Physical int
	Priority int
	Unified  bool
}

// IsHost says whether this is a CPU.
func (l *Logical) IsHost() bool { return l.Card == nil }

// MemoryLimit is the memory_limit that the device reports: its Limit, and for
// a CPU a number that nothing enforces.
func (l *Logical) MemoryLimit() int64 {
	if l.IsHost() {
		return CPUMemoryLimit
	}
	return l.Limit
}
