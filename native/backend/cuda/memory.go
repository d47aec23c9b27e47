//go:build cuda

package cuda

/*
#include <cuda.h>

// Portable: every context of the process may copy from it.
static CUresult tl_host_alloc(void **p, size_t n) { return cuMemHostAlloc(p, n, CU_MEMHOSTALLOC_PORTABLE); }
*/
import "C"

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"gorgonia.org/cu"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/exec"
)

// region is memory of the driver behind a range of an abstract space.
type region struct {
	addr  uint64
	bytes int64
	ptr   uint64         // on a card
	host  unsafe.Pointer // page-locked
}

// regions is sorted by address.
type regions []region

func (r regions) find(addr uint64, bytes int64) (*region, uint64) {
	i, found := slices.BinarySearchFunc(r, addr, func(x region, a uint64) int {
		switch {
		case x.addr > a:
			return 1
		case x.addr < a:
			return -1
		}
		return 0
	})
	if !found {
		i--
	}
	if i < 0 {
		return nil, 0
	}
	off := addr - r[i].addr
	if off > uint64(r[i].bytes) || uint64(bytes) > uint64(r[i].bytes)-off {
		return nil, 0
	}
	return &r[i], off
}

func (r *regions) add(x region) {
	i, _ := slices.BinarySearchFunc(*r, x.addr, func(y region, a uint64) int {
		if y.addr < a {
			return -1
		}
		return 1
	})
	*r = slices.Insert(*r, i, x)
}

// take removes the regions within a range and returns them.
func (r *regions) take(addr uint64, bytes int64) []region {
	var out []region
	*r = slices.DeleteFunc(*r, func(x region) bool {
		in := x.addr >= addr && x.addr+uint64(x.bytes) <= addr+uint64(bytes)
		if in {
			out = append(out, x)
		}
		return in
	})
	return out
}

// backed is an address space whose ranges the driver gives memory for.
type backed struct {
	alloc.SubAllocator
	b      *Backend
	dev    event.DeviceID
	pinned bool
}

// Back implements exec.Driver.
func (b *Backend) Back(dev event.DeviceID, pinned bool, space alloc.SubAllocator) alloc.SubAllocator {
	if dev == host && !pinned {
		return space
	}
	return &backed{space, b, dev, pinned}
}

// Take implements alloc.SubAllocator: what the driver refuses is refused.
func (s *backed) Take(alignment, bytes int64) (addr uint64, received int64, ok bool) {
	addr, received, ok = s.SubAllocator.Take(alignment, bytes)
	if !ok {
		return 0, 0, false
	}
	if err := s.b.get(s.dev, s.pinned, addr, received); err != nil {
		s.SubAllocator.Give(addr, received)
		if !errors.Is(err, cu.OutOfMemory) {
			s.b.fail(err)
		}
		return 0, 0, false
	}
	return addr, received, true
}

// Give implements alloc.SubAllocator.
func (s *backed) Give(addr uint64, bytes int64) {
	s.b.put(s.dev, addr, bytes)
	s.SubAllocator.Give(addr, bytes)
}

// get asks the driver for memory behind a range.
func (b *Backend) get(dev event.DeviceID, pinned bool, addr uint64, bytes int64) error {
	x := region{addr: addr, bytes: bytes}
	if pinned {
		d := b.lanes[1].d
		err := d.do(func() error {
			var err error
			if x.host, err = hostAlloc(bytes); err != nil {
				return d.fail(fmt.Sprintf("lock %s of host memory", event.FormatBytes(bytes)), err)
			}
			return nil
		})
		if err == nil {
			b.pinned.add(x)
		}
		return err
	}
	d := b.lanes[dev].d
	err := d.do(func() error {
		p, err := cu.MemAlloc(bytes)
		if err != nil {
			return d.fail("allocate "+event.FormatBytes(bytes), err)
		}
		x.ptr = uint64(p)
		return nil
	})
	if err == nil {
		b.mapped[dev].add(x)
	}
	return err
}

// hostAlloc gets page-locked memory, which the binding has no function for.
func hostAlloc(bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	err := cuError(C.tl_host_alloc(&p, C.size_t(bytes)))
	return p, err
}

// cuError is a result of our own calls as the binding would return it.
func cuError(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	if r == C.CUDA_ERROR_OUT_OF_MEMORY {
		return cu.OutOfMemory
	}
	return driverError(r)
}

// driverError is a result that the binding has no need of a name for.
type driverError int

func (e driverError) Error() string { return fmt.Sprintf("CUDA error %d", int(e)) }

// put gives memory back to the driver, which waits for the card first.
func (b *Backend) put(dev event.DeviceID, addr uint64, bytes int64) {
	if dev == host {
		for _, x := range b.pinned.take(addr, bytes) {
			b.free(b.lanes[1].d, "unlock host memory", func() error { return cu.MemFreeHost(x.host) })
		}
		return
	}
	for _, x := range b.mapped[dev].take(addr, bytes) {
		b.free(b.lanes[dev].d, "free memory", func() error { return cu.MemFree(cu.DevicePtr(x.ptr)) })
	}
}

func (b *Backend) free(d *gpu, what string, f func() error) {
	err := d.do(func() error {
		if d.broken.Load() != nil {
			return nil // it goes with the context
		}
		if err := f(); err != nil {
			return d.fail(what, err)
		}
		return nil
	})
	if err != nil {
		b.fail(err)
	}
}

// Map implements exec.Backend: what came through Back is there already.
func (b *Backend) Map(dev event.DeviceID, addr uint64, bytes int64) error {
	if dev == host {
		if x, _ := b.pinned.find(addr, bytes); x != nil {
			return nil
		}
		return b.memory.Map(dev, addr, bytes)
	}
	if x, _ := b.mapped[dev].find(addr, bytes); x != nil {
		return nil
	}
	return b.get(dev, false, addr, bytes)
}

// Unmap implements exec.Backend.
func (b *Backend) Unmap(dev event.DeviceID, addr uint64, bytes int64) {
	if dev == host {
		b.memory.Unmap(dev, addr, bytes)
	}
	b.put(dev, addr, bytes)
}

// Bytes implements exec.Backend: memory of the host, page-locked or not.
func (b *Backend) Bytes(r exec.Ref) []byte {
	if r.Device != host || r.Bytes == 0 {
		return nil
	}
	if x, off := b.pinned.find(r.Address, r.Bytes); x != nil {
		return unsafe.Slice((*byte)(unsafe.Add(x.host, off)), r.Bytes)
	}
	return b.memory.Bytes(r)
}

// pointer is where memory of an accelerator really lies.
func (b *Backend) pointer(r exec.Ref) (uint64, error) {
	if r.Device != host && int(r.Device) < len(b.mapped) {
		if x, off := b.mapped[r.Device].find(r.Address, r.Bytes); x != nil {
			return x.ptr + off, nil
		}
	}
	return 0, fmt.Errorf("%d bytes at %#x of device %d are not mapped", r.Bytes, r.Address, r.Device)
}
