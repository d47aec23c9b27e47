package async

import (
	"errors"
	"fmt"

	"tideline/shared/alloc"
)

// Failure tells of a request that failed, after a synchronisation. Bytes.
type Failure struct {
	Requested int64
	Limit     int64 // 0 when there is none
	Reserved  int64
	Used      int64 // rounded blocks
	Idle      int64 // whole pages that nobody uses
	Partly    int64 // free, but in pages that are partly used
	name      string
}

// Error says what failed in the words of TensorFlow's allocator, and what the
// pool held.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s cuMemAllocAsync failed to allocate %d: CUDA error: out of memory (CUDA_ERROR_OUT_OF_MEMORY)\n Reserved/Limit: %d/%d, used: %d, idle pages: %d, free in pages partly used: %d (%s)",
		f.name, uint64(f.Requested), f.Reserved, f.Limit, f.Used, f.Idle, f.Partly, Label)
}

// Failure is the last request that failed, or nil.
func (p *Pool) Failure() *Failure { return p.failure }

func (p *Pool) fail(bytes int64) {
	f := &Failure{Requested: bytes, Limit: p.o.Limit, Reserved: p.stats.Pool, Used: p.used, Idle: p.idle(), name: p.o.Name}
	f.Partly = f.Reserved - f.Used - f.Idle
	p.failure = f
	p.o.Observer.Log(alloc.Warning, f.Error())
}

// Check verifies the invariants. It is for tests.
func (p *Pool) Check() error {
	if err := p.table.Check(); err != nil {
		return err
	}
	var mapped, used, listed, free int64
	for h := range p.table.Chunks {
		c := &p.table.Chunks[h]
		mapped += c.Size
		if c.InUse() {
			used += c.Size
		} else {
			free += c.Size
		}
		if c.Flags == 0 && c.Size%p.o.Page != 0 {
			return fmt.Errorf("the chunk at %x of %d bytes is no whole pages, and in no shared page", c.Addr, c.Size)
		}
		if c.Size > 0 && c.Flags != 0 && (c.Addr < p.pages[c.Flags].addr || c.Addr+uint64(c.Size) > p.pages[c.Flags].addr+uint64(p.o.Page)) {
			return fmt.Errorf("the chunk at %x of %d bytes lies outside of its page at %x", c.Addr, c.Size, p.pages[c.Flags].addr)
		}
	}
	for _, l := range p.lists {
		listed += l.runs.Bytes() + l.holes.Bytes()
	}
	if mapped != p.stats.Pool || used != p.used || free != listed {
		return fmt.Errorf("%d bytes are mapped, %d used, %d free; the pool says %d, %d, and its lists %d", mapped, used, free, p.stats.Pool, p.used, listed)
	}
	if p.o.Limit > 0 && mapped > p.o.Limit {
		return errors.New("more is reserved than the limit allows")
	}
	return nil
}
