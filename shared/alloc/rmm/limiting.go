package rmm

import (
	"fmt"

	"tideline/shared/alloc"
	"tideline/shared/alloc/stream"
)

// Limiting is RMM's adaptor that refuses what would bring the sum of all
// requests, each rounded up to 256 bytes, above a limit. Unlike a maximum of
// the pool below it counts what is in use and not what is held.
type Limiting struct {
	alloc.Allocator
	limit   int64
	taken   int64
	sizes   map[uint64]int64 // of blocks in use, rounded, by address
	failure string
}

// NewLimiting puts a limit in bytes over an allocator.
func NewLimiting(a alloc.Allocator, limit int64) (*Limiting, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("rmm limiting adaptor: the limit is %d, expected bytes above 0", limit)
	}
	return &Limiting{Allocator: a, limit: limit, sizes: map[uint64]int64{}}, nil
}

// Allocate implements alloc.Allocator.
func (l *Limiting) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes > 0 && (r.Bytes > l.limit || roundUp(r.Bytes) > l.limit-l.taken) {
		l.failure = fmt.Sprintf("std::bad_alloc: out_of_memory: RMM failure: exceeded memory limit (request %d bytes, %d in use, limit %d)", r.Bytes, l.taken, l.limit)
		return alloc.Block{}, false
	}
	b, ok := l.Allocator.Allocate(r)
	if ok {
		l.taken += roundUp(r.Bytes)
		l.sizes[b.Address] = roundUp(r.Bytes)
	}
	return b, ok
}

// Free implements alloc.Allocator.
func (l *Limiting) Free(addr uint64) error {
	if err := l.Allocator.Free(addr); err != nil {
		return err
	}
	l.taken -= l.sizes[addr]
	delete(l.sizes, addr)
	return nil
}

// Failure is the text of the last request that the adaptor refused.
func (l *Limiting) Failure() string { return l.failure }

// Check verifies what is below, and the sum. It is for tests.
func (l *Limiting) Check() error {
	sum := int64(0)
	for _, n := range l.sizes {
		sum += n
	}
	if sum != l.taken || sum > l.limit {
		return fmt.Errorf("%d bytes are in use, %d counted, limit %d", sum, l.taken, l.limit)
	}
	if c, ok := l.Allocator.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// UseStream sets the stream of the calls that follow, where the allocator below
// knows any.
func (l *Limiting) UseStream(s stream.ID) {
	if a, ok := l.Allocator.(interface{ UseStream(stream.ID) }); ok {
		a.UseStream(s)
	}
}
