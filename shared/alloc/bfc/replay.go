package bfc

import (
	"fmt"

	"tideline/shared/alloc"
)

// Op is one step of a replay.
type Op struct {
	// Bytes above 0 are asked for, with natural alignment, and go into the
	// slot. 0 asks for nothing and gets it. Free frees what the slot holds.
	Bytes int64
	Slot  uint32
}

// Free is the Bytes of an Op that frees.
const Free = -1

// Slot holds the block of a replayed request; the zero value holds none.
type Slot struct {
	Address uint64 // 0 when the request failed
	handle  uint32
}

// Replay plays ops with the blocks of slots, which it indexes with every
// op's Slot, and returns how many requests failed. It answers exactly as
// Allocate and Free would, one op after the other, but hands nothing over in
// between and finds a block by its handle. It stops at a slot whose address is
// no block in use, with an error that names the op.
func (a *Allocator) Replay(ops []Op, slots []Slot) (failed int, err error) {
	s := &a.sets[tagLower]
	for k := range ops {
		o := &ops[k]
		at := &slots[o.Slot]
		chunks := a.chunks
		if o.Bytes > 0 {
			size := (uint64(o.Bytes) + MinAllocation - 1) &^ (MinAllocation - 1)
			home := runOf(size)
			i := s.from(home)
			h := s.heads[i]
			rest := a.freeHandle
			if uint64(h)-1 >= uint64(len(chunks))-1 || chunks[h].size < size || rest == none || !a.plain {
				failed += a.request(o.Bytes, at)
				continue
			}
			c := &chunks[h]
			s.dropHead(i, c.up)
			a.index.add(chunks, h)
			if left := c.size - size; left >= min(size, a.splitWaste) {
				a.cutOff(chunks, h, size, rest)
				if j := runOf(left); s.leads(j, home, len(chunks)) {
					s.setHead(chunks, j, rest, s.heads[j])
				} else {
					s.insert(chunks, rest)
				}
			}
			a.handOut(c, o.Bytes)
			at.Address, at.handle = c.addr, h
			continue
		}
		h := at.handle
		if uint64(h)-1 >= uint64(len(chunks))-1 || o.Bytes == 0 || !a.plain {
			if o.Bytes == 0 {
				failed += a.request(0, at)
			} else if err = a.giveUp(at); err != nil {
				return failed, fmt.Errorf("replay, op %d: %w", k, err)
			}
			continue
		}
		c := &chunks[h]
		next, prev := c.next, c.prev
		n, p := &chunks[next], &chunks[prev]
		slot := &a.index.slots[a.index.home(at.Address)]
		if c.addr != at.Address || *slot != h || n.run|p.run >= inLong {
			if err = a.giveUp(at); err != nil {
				return failed, fmt.Errorf("replay, op %d: %w", k, err)
			}
			continue
		}
		*slot = c.chain
		c.id = idFree
		a.inUse -= int64(c.size)
		if n.run != 0 {
			s.dropHead(uint64(n.run), s.cut(chunks, next, n))
			a.absorb(chunks, h, next)
		}
		if p.run != 0 {
			s.dropHead(uint64(p.run), s.cut(chunks, prev, p))
			a.absorb(chunks, prev, h)
			h, c = prev, p
		}
		i := runOf(c.size)
		if up := s.heads[i]; int(up) >= len(chunks) {
			s.insert(chunks, h)
		} else if s.before(&chunks[up], c.size, c.addr) {
			s.insertBehind(chunks, i, h, up)
		} else {
			s.setHead(chunks, i, h, up)
		}
		*at = Slot{}
	}
	return failed, nil
}

// request is one request of a replay; it returns 1 when it failed.
func (a *Allocator) request(bytes int64, at *Slot) (failed int) {
	b, ok := a.Allocate(alloc.Request{Bytes: bytes})
	*at = Slot{Address: b.Address}
	if !ok {
		return 1
	}
	at.handle = a.at(b.Address)
	return 0
}

// giveUp is one free of a replay.
func (a *Allocator) giveUp(at *Slot) error {
	err := a.Free(at.Address)
	if err == nil {
		*at = Slot{}
	}
	return err
}
