package store

import (
	"cmp"
	"math/bits"
	"slices"

	"tideline/protocol/event"
)

// Sort orders allocations of this pool.
func (p *Pool) Sort(allocs []int32, by SortKey) {
	var key func(i int32) int64 // ascending
	switch by {
	case ByAge:
		slices.SortFunc(allocs, cmp.Compare[int32])
		return
	case ByAddress:
		slices.SortFunc(allocs, func(a, b int32) int {
			return cmp.Or(cmp.Compare(uint64(p.allocs.at(addrCol, int(a))), uint64(p.allocs.at(addrCol, int(b)))), cmp.Compare(a, b))
		})
		return
	case ByWaste:
		key = func(i int32) int64 { return -p.allocs.at(wasteCol, int(i)) }
	default:
		key = func(i int32) int64 { return -p.allocs.at(sizeCol, int(i)) }
	}
	slices.SortFunc(allocs, func(a, b int32) int {
		return cmp.Or(cmp.Compare(key(a), key(b)), cmp.Compare(a, b))
	})
}

// Totals sums allocations by category, in the order of the categories; those
// with none are left out.
func (p *Pool) Totals(allocs []int32) []Total {
	var sum [event.NumCategories]Total
	for _, i := range allocs {
		sum[p.allocs.at(kindCol, int(i))&0xff].add(p, int(i))
	}
	var out []Total
	for c := range sum {
		if sum[c].Count > 0 {
			sum[c].Category = event.Category(c)
			out = append(out, sum[c])
		}
	}
	return out
}

// TotalsByOp sums allocations by op and category, largest first, at most n (0:
// all). What one op holds may be of several kinds: a result that is kept, and
// workspace that is not.
func (p *Pool) TotalsByOp(allocs []int32, n int) []Total {
	at := make(map[uint64]int)
	var out []Total
	for _, i := range allocs {
		op, c := event.StringID(p.allocs.at(opCol, int(i))), event.Category(p.allocs.at(kindCol, int(i)))
		key := uint64(op)<<8 | uint64(c)
		k, ok := at[key]
		if !ok {
			k = len(out)
			at[key] = k
			out = append(out, Total{Op: op, Category: c})
		}
		out[k].add(p, int(i))
	}
	out = arrange(out, func(a, b *Total) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Category, b.Category))
	})
	if n > 0 && len(out) > n {
		out = out[:n]
	}
	return out
}

// TotalsByName sums allocations by tensor, op and category, in the order in
// which they come first. Of a program that was recorded elsewhere the tensor is
// the stack of the allocation.
func (p *Pool) TotalsByName(allocs []int32) []Total {
	// A key of eight bytes holds two of the three; totals of the same names,
	// which are of different categories, follow each other by next.
	var at table // 1 + the last total of the names
	var out []Total
	var next []int32 // by total: 1 + the one before it, 0 at the end
	for _, i := range allocs {
		row := p.allocs.row(int(i))
		tensor, op, c := row.at(tensorCol), row.at(opCol), event.Category(row.at(kindCol))
		key := uint64(tensor)<<32 | uint64(uint32(op))
		last, _ := at.get(key)
		k := int32(last)
		for k > 0 && out[k-1].Category != c {
			k = next[k-1]
		}
		if k == 0 {
			out = append(out, Total{Tensor: event.StringID(tensor), Op: event.StringID(op), Category: c})
			next = append(next, int32(last))
			k = int32(len(out))
			at.put(key, uint64(k))
		}
		t := &out[k-1]
		t.Bytes += row.at(sizeCol)
		t.Waste += row.at(wasteCol)
		t.Count++
	}
	return out
}

// Largest is the n largest of totals, largest first, and the sum of the others.
func Largest(list []Total, n int) (top []Total, rest Total) {
	if len(list) > n { // sort only what may be among the largest
		var count [grades]int
		for i := range list {
			count[grade(list[i].Bytes)]++
		}
		least := grades - 1
		for left := n - count[least]; left > 0; left -= count[least] {
			least--
		}
		for i := range list {
			if grade(list[i].Bytes) >= least {
				top = append(top, list[i])
			} else {
				rest.plus(&list[i])
			}
		}
		list = top
	}
	top = arrange(list, func(a, b *Total) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Tensor, b.Tensor), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Category, b.Category))
	})
	for len(top) > n {
		rest.plus(&top[len(top)-1])
		top = top[:len(top)-1]
	}
	return top, rest
}

func (t *Total) plus(x *Total) {
	t.Bytes += x.Bytes
	t.Waste += x.Waste
	t.Count += x.Count
}

const grades = 64 << 3

// grade orders sizes roughly: by their magnitude and the three bits after their
// highest.
func grade(bytes int64) int {
	k := bits.Len64(uint64(max(bytes, 0)))
	return k<<3 | int(bytes<<3>>max(k-1, 0))&7
}

// Names is allocation i's tensor and op, without the rest of it.
func (p *Pool) Names(i int) (tensor, op event.StringID) {
	return event.StringID(p.allocs.at(tensorCol, i)), event.StringID(p.allocs.at(opCol, i))
}

func (t *Total) add(p *Pool, i int) {
	t.Bytes += p.allocs.at(sizeCol, i)
	t.Waste += p.allocs.at(wasteCol, i)
	t.Count++
}

// Peak is the highest use in the window [t0,t1), with at most top ops.
func (p *Pool) Peak(t0, t1 int64, top int) Peak {
	a := p.inUse.before(t0, 0)
	b := p.inUse.before(t1, a)
	n, at := a, t0
	if b > a {
		if e := p.inUse.extent(a, b); a == 0 || e.hi > p.inUse.valueAfter(a) {
			n, at = int(e.at)+1, p.inUse.time(int(e.at))
		}
	}
	m := Moment{at, n, p.reserved.before(t0, 0)} // what came in, if that is the highest
	if n > a {
		m = p.moment(n, at)
	}
	k := Peak{State: p.In(m)}
	live := p.liveAfter(nil, n)
	k.Count = len(live)
	if top > 0 {
		k.Top = p.TotalsByOp(live, top)
	}
	return k
}

// ChunkMapAt is the pool's memory at time at: regions ascending by address,
// tiled by blocks in use and the holes between them. A region that no event
// told of is shown as runs of adjacent blocks, since what lies between them
// may not be the pool's.
func (p *Pool) ChunkMapAt(at int64) event.ChunkMap { return p.ChunkMapIn(p.After(at)) }

// chunkMap tiles regions, ascending by address, with live blocks.
func (p *Pool) chunkMap(live []int32, held []Region) event.ChunkMap {
	p.Sort(live, ByAddress)
	var m event.ChunkMap
	var end uint64 // of the last region of m
	for _, i := range live {
		c := event.Chunk{Address: uint64(p.allocs.at(addrCol, int(i))), Size: p.allocs.at(sizeCol, int(i)), InUse: true}
		c.Requested = c.Size - p.allocs.at(wasteCol, int(i))
		for len(held) > 0 && held[0].Address <= c.Address {
			m, end = closeRegion(m), held[0].Address+uint64(held[0].Size)
			m = append(m, event.Region{Address: held[0].Address, Size: held[0].Size})
			held = held[1:]
		}
		if len(m) == 0 || c.Address >= end {
			m = append(closeRegion(m), event.Region{Address: c.Address})
			end = c.Address
		}
		r := &m[len(m)-1]
		if have := filled(r); c.Address > have {
			r.Chunks = append(r.Chunks, event.Chunk{Address: have, Size: int64(c.Address - have)})
		}
		r.Chunks = append(r.Chunks, c)
		if last := c.Address + uint64(c.Size); last > end {
			// A made-up region grows with its blocks; a real one whose block
			// reaches beyond it was extended, and takes in its neighbour.
			end = last
			if len(held) > 0 && held[0].Address < last {
				end = max(last, held[0].Address+uint64(held[0].Size))
				held = held[1:]
			}
			r.Size = int64(end - r.Address)
		}
	}
	for _, r := range held {
		m = append(closeRegion(m), event.Region{Address: r.Address, Size: r.Size})
	}
	return closeRegion(m)
}

// heldIn is the regions that events told of and that are held at a moment,
// ascending by address.
func (p *Pool) heldIn(m Moment) []Region {
	var held []Region
	for i := range p.regions {
		if r := &p.regions[i]; !r.Implied && r.heldAfter(m.regions) {
			held = append(held, *r)
		}
	}
	return arrange(held, func(a, b *Region) int { return cmp.Compare(a.Address, b.Address) })
}

// arrange is list in order. It sorts numbers, for sorting each type of value
// by itself would make the browser's module some 15 KB larger a type.
func arrange[T any](list []T, compare func(a, b *T) int) []T {
	order := make([]int32, len(list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compare(&list[a], &list[b]) })
	out := make([]T, len(list))
	for i, k := range order {
		out[i] = list[k]
	}
	return out
}

func filled(r *event.Region) uint64 {
	if n := len(r.Chunks); n > 0 {
		return r.Chunks[n-1].Address + uint64(r.Chunks[n-1].Size)
	}
	return r.Address
}

// closeRegion tiles the rest of the last region with a hole.
func closeRegion(m event.ChunkMap) event.ChunkMap {
	if len(m) == 0 {
		return m
	}
	r := &m[len(m)-1]
	if have, end := filled(r), r.Address+uint64(r.Size); have < end {
		r.Chunks = append(r.Chunks, event.Chunk{Address: have, Size: int64(end - have)})
	}
	return m
}
