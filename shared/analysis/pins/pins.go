// Package pins finds regions of which little keeps much: memory of the driver
// that is mostly idle and can neither be given back nor used as one, because of
// the blocks that live in it.
//
// What a pin names is exact: without these blocks the whole region would be
// free. It says nothing of whether they could be elsewhere, and moves nothing.
package pins

import (
	"math/bits"
	"sort"
	"strconv"

	"tideline/protocol/event"
)

// Pin is a region that is idle but for some blocks. Sizes are bytes.
type Pin struct {
	Address uint64
	Size    int64
	Idle    int64  // of it: what its blocks keep from being given back
	Live    int64  // in use
	Blocks  int    // in use: all of these must go
	Largest uint64 // address of the largest of them
	Holder  string // whose that is; "" where it is not known
}

// Of lists the regions that hold both, those first in which least keeps most:
// by idle bytes for each live one.
func Of(m event.ChunkMap) (out []Pin) {
	for i := range m {
		p := Pin{Address: m[i].Address, Size: m[i].Size}
		largest := int64(-1)
		for _, c := range m[i].Chunks {
			if !c.InUse {
				p.Idle += c.Size
				continue
			}
			p.Live += c.Size
			p.Blocks++
			if c.Size > largest {
				largest, p.Largest = c.Size, c.Address
			}
		}
		if p.Blocks > 0 && p.Idle > 0 {
			out = append(out, p)
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if c := ratio(a, b); c != 0 {
			return c > 0
		}
		return a.Idle > b.Idle || a.Idle == b.Idle && a.Address < b.Address
	})
	return out
}

// ratio compares idle by live of two pins, without losing a byte.
func ratio(a, b *Pin) int {
	hi, lo := bits.Mul64(uint64(max(0, a.Idle)), uint64(max(0, b.Live)))
	hj, lj := bits.Mul64(uint64(max(0, b.Idle)), uint64(max(0, a.Live)))
	switch {
	case hi > hj || hi == hj && lo > lj:
		return 1
	case hi < hj || lo < lj:
		return -1
	}
	return 0
}

// Idle is what all of them keep.
func Idle(list []Pin) (n int64) {
	for i := range list {
		n += list[i].Idle
	}
	return n
}

// Line is a pin in words.
func (p *Pin) Line() string {
	s := event.FormatBytes(p.Idle) + " idle of " + event.FormatBytes(p.Size) + ", kept by "
	if p.Blocks == 1 {
		s += "1 block of "
	} else {
		s += strconv.Itoa(p.Blocks) + " blocks of "
	}
	s += event.FormatBytes(p.Live)
	if p.Holder != "" {
		s += ", " + p.Holder
		if p.Blocks > 1 {
			s += " the largest"
		}
	}
	return s
}
