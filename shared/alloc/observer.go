package alloc

// Severity of a log record.
type Severity byte

// The severities an allocator uses; the values are the letters in a log.
const (
	Info    Severity = 'I'
	Warning Severity = 'W'
)

// Observer hears what an allocator does apart from answering, and lends it
// what it must not have itself: a clock and the name of the running op. Calls
// come in the order of the doing. Embed NoObserver to hear only some.
type Observer interface {
	// RegionTaken: the driver gave received bytes at addr; asked is what was
	// asked for (received may be more).
	RegionTaken(addr uint64, asked, received int64)
	// RegionRefused: the driver had no asked bytes.
	RegionRefused(asked int64)
	// RegionGiven: bytes at addr went back to the driver.
	RegionGiven(addr uint64, bytes int64)
	// Wait is called when a failed request would sleep until memory comes
	// back, at most for nanos. It returns how long it waited: nanos when
	// nothing came, less when the allocator should try at once. A simulator
	// moves its clock; within the call it may free blocks of this allocator.
	// An answer below 1 counts as nanos, so that no request waits for ever.
	Wait(nanos int64) int64
	// Log is one record for people; text may have several lines.
	Log(s Severity, text string)
	// Op is the name of the op on whose behalf memory is asked for now.
	Op() string
}

// NoObserver hears nothing and knows nobody who would free memory.
type NoObserver struct{}

var _ Observer = NoObserver{}

// RegionTaken does nothing.
func (NoObserver) RegionTaken(uint64, int64, int64) {}

// RegionRefused does nothing.
func (NoObserver) RegionRefused(int64) {}

// RegionGiven does nothing.
func (NoObserver) RegionGiven(uint64, int64) {}

// Wait lets all of the time pass.
func (NoObserver) Wait(nanos int64) int64 { return nanos }

// Log drops the record.
func (NoObserver) Log(Severity, string) {}

// Op is empty.
func (NoObserver) Op() string { return "" }
