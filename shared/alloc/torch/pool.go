package torch

import "sort"

// Stream is a stream's handle; 0 is the default stream. The order of handles
// decides in which order free memory is given back.
type Stream uint64

// PoolID names a private pool; the zero value is the default pool.
type PoolID struct{ A, B uint64 }

// Default reports whether it is the default pool.
func (p PoolID) Default() bool { return p == PoolID{} }

// kind indexes statistics, and says which pool of a pair is meant.
type kind uint8

const (
	all kind = iota
	small
	large
	numKinds
)

// pool is a set of blocks that share no memory with any other: the small or
// the large ones of the default or of a private pool.
type pool struct {
	kind    kind
	owner   *private // nil for the default pool
	calls   int64    // searches, counted while garbage collection is on
	arenas  []*arena // ascending by stream
	last    *arena   // found last
	noSplit bool
}

// private is a pool of its own, made for a captured graph or by a user.
type private struct {
	id    PoolID
	pools [numKinds]*pool
	users int   // captures and holders; at 0 its idle memory may be given back
	held  int64 // bytes of the driver
	onOOM bool  // may serve requests of the default pool that would fail
}

// arena is one stream's part of a pool.
type arena struct {
	stream   Stream
	pool     *pool
	number   uint32
	free     freeSet
	unmapped []uint32 // ascending by address
}

// id names the pool that the arena is part of.
func (ar *arena) id() PoolID {
	if ar.pool.owner == nil {
		return PoolID{}
	}
	return ar.pool.owner.id
}

func (p *pool) position(s Stream) int {
	return sort.Search(len(p.arenas), func(i int) bool { return p.arenas[i].stream >= s })
}

// arenaOf finds or makes the part of a stream.
func (a *Allocator) arenaOf(p *pool, s Stream) *arena {
	if p.last != nil && p.last.stream == s {
		return p.last
	}
	i := p.position(s)
	if i == len(p.arenas) || p.arenas[i].stream != s {
		p.arenas = append(p.arenas, nil)
		copy(p.arenas[i+1:], p.arenas[i:])
		p.arenas[i] = a.newArena(p, s)
	}
	p.last = p.arenas[i]
	return p.last
}

func (a *Allocator) newArena(p *pool, s Stream) *arena {
	if n := len(a.spareArenas); n > 0 {
		ar := a.spareArenas[n-1]
		a.spareArenas = a.spareArenas[:n-1]
		ar.stream, ar.pool = s, p
		return ar
	}
	ar := &arena{stream: s, pool: p, number: uint32(len(a.arenas))}
	a.arenas = append(a.arenas, ar)
	return ar
}

func (ar *arena) unmappedAt(a *Allocator, addr uint64) int {
	return sort.Search(len(ar.unmapped), func(i int) bool { return a.blocks[ar.unmapped[i]].addr >= addr })
}

func (ar *arena) addUnmapped(a *Allocator, h uint32) {
	i := ar.unmappedAt(a, a.blocks[h].addr)
	ar.unmapped = append(ar.unmapped, 0)
	copy(ar.unmapped[i+1:], ar.unmapped[i:])
	ar.unmapped[i] = h
}

func (ar *arena) dropUnmapped(a *Allocator, h uint32) {
	i := ar.unmappedAt(a, a.blocks[h].addr)
	ar.unmapped = append(ar.unmapped[:i], ar.unmapped[i+1:]...)
}
