package rmm_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/rmm"
	"tideline/shared/alloc/stream"
)

// plainBlock is a block as RMM keeps it: an address, a size, and whether it
// begins an upstream block.
type plainBlock struct {
	addr uint64
	size int64
	head bool
}

// plainPool is the pool written for clarity: free lists as slices by address.
// It is the oracle of the real one.
type plainPool struct {
	sub     alloc.SubAllocator
	maximum int64
	size    int64
	order   []stream.ID // of first use
	lists   map[stream.ID][]plainBlock
	used    map[uint64]plainBlock
	waits   int
}

func newPlainPool(sub alloc.SubAllocator, initial, maximum int64) *plainPool {
	p := &plainPool{sub: sub, maximum: maximum, lists: map[stream.ID][]plainBlock{}, used: map[uint64]plainBlock{}}
	p.touch(0)
	if initial > 0 {
		b, _ := p.upstream(initial)
		p.insert(0, b)
	}
	return p
}

func (p *plainPool) touch(s stream.ID) {
	if _, ok := p.lists[s]; !ok {
		p.lists[s] = nil
		p.order = append(p.order, s)
	}
}

func (p *plainPool) upstream(n int64) (plainBlock, bool) {
	addr, _, ok := p.sub.Take(256, n)
	if ok {
		p.size += n
	}
	return plainBlock{addr, n, true}, ok
}

// insert keeps the list sorted and joins neighbours, never onto a head.
func (p *plainPool) insert(s stream.ID, b plainBlock) {
	l := append(slices.Clone(p.lists[s]), b)
	slices.SortFunc(l, func(x, y plainBlock) int { return int(int64(x.addr - y.addr)) })
	for i := 0; i+1 < len(l); {
		if l[i].addr+uint64(l[i].size) == l[i+1].addr && !l[i+1].head {
			l[i].size += l[i+1].size
			l = slices.Delete(l, i+1, i+2)
		} else {
			i++
		}
	}
	p.lists[s] = l
}

func (p *plainPool) best(s stream.ID, n int64) (b plainBlock, ok bool) {
	at := -1
	for i, x := range p.lists[s] {
		if x.size >= n && (at < 0 || x.size < p.lists[s][at].size) {
			at = i
		}
	}
	if at < 0 {
		return b, false
	}
	b = p.lists[s][at]
	p.lists[s] = slices.Delete(p.lists[s], at, at+1)
	return b, true
}

func (p *plainPool) allocate(s stream.ID, bytes int64) (uint64, bool) {
	n := (bytes + 255) / 256 * 256
	p.touch(s)
	b, from, ok := p.find(s, n)
	if !ok {
		return 0, false
	}
	if rest := b.size - n; rest > 0 {
		p.insert(from, plainBlock{b.addr + uint64(n), rest, false})
		b.size = n
	}
	p.used[b.addr] = b
	return b.addr, true
}

func (p *plainPool) find(s stream.ID, n int64) (b plainBlock, from stream.ID, ok bool) {
	if b, ok := p.best(s, n); ok {
		return b, s, true
	}
	for _, o := range p.order {
		if o != s {
			if b, ok := p.best(o, n); ok {
				p.waits++
				return b, o, true
			}
		}
	}
	for _, o := range p.order {
		if o == s || len(p.lists[o]) == 0 {
			continue
		}
		p.waits++
		for _, b := range p.lists[o] {
			p.insert(s, b)
		}
		p.lists[o] = nil
		if b, ok := p.best(s, n); ok {
			return b, s, true
		}
	}
	ask := max(n, p.size)
	if p.maximum > 0 {
		left := p.maximum - p.size
		if n > left {
			return plainBlock{}, s, false
		}
		ask = max(n, (left/2+255)/256*256)
	}
	for {
		if b, ok := p.upstream(ask); ok {
			return b, s, true
		}
		if ask == n {
			return plainBlock{}, s, false
		}
		ask = max(n, (ask/2+255)/256*256)
	}
}

func (p *plainPool) free(s stream.ID, addr uint64) {
	p.touch(s)
	b := p.used[addr]
	delete(p.used, addr)
	p.insert(s, b)
}

func TestPoolGivesTheAddressesOfThePlainOne(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		initial, maximum, capacity := rnd.Int64N(64)*4096, int64(0), int64(0)
		if rnd.IntN(2) == 0 {
			maximum = initial + rnd.Int64N(1<<14)*256
		}
		if rnd.IntN(2) == 0 {
			capacity = initial + 1 + rnd.Int64N(8<<20)
		}
		waits := 0
		pool, err := rmm.NewPool(space(t, capacity), rmm.PoolOptions{Initial: initial, Maximum: maximum, OnWait: func(_, _ stream.ID) { waits++ }})
		if err != nil {
			t.Fatal(err)
		}
		plain := newPlainPool(space(t, capacity), initial, maximum)
		streams := 1 + rnd.IntN(4)
		var live []uint64
		for step := range 300 {
			s := stream.ID(rnd.IntN(streams))
			pool.UseStream(s)
			if len(live) > 0 && rnd.IntN(5) < 2 {
				i := rnd.IntN(len(live))
				if err := pool.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				plain.free(s, live[i])
				live = slices.Delete(live, i, i+1)
				continue
			}
			n := 1 + rnd.Int64N(1<<(1+rnd.IntN(19)))
			b, ok := pool.Allocate(alloc.Request{Bytes: n})
			addr, want := plain.allocate(s, n)
			if ok != want || b.Address != addr || waits != plain.waits {
				t.Fatalf("seed %d, step %d: %x %v after %d waits, the plain pool %x %v after %d", seed, step, b.Address, ok, waits, addr, want, plain.waits)
			}
			if ok {
				live = append(live, addr)
			}
		}
	}
}

// plainArena is the arena written for clarity.
type plainArena struct {
	all  []*plainSuper // by address
	used map[uint64]int64
}

type plainSuper struct {
	addr  uint64
	size  int64
	owner string
	free  []plainBlock // by address
}

func (s *plainSuper) empty() bool { return len(s.free) == 1 && s.free[0].size == s.size }

func (s *plainSuper) fits(n int64) bool {
	return slices.ContainsFunc(s.free, func(b plainBlock) bool { return b.size >= n })
}

func (s *plainSuper) take(n int64) uint64 {
	for i := range s.free {
		if b := &s.free[i]; b.size >= n {
			addr := b.addr
			b.addr += uint64(n)
			if b.size -= n; b.size == 0 {
				s.free = slices.Delete(s.free, i, i+1)
			}
			return addr
		}
	}
	panic("it fits")
}

// acquire is the first superblock of the global arena that fits, split if it
// is whole and long enough.
func (a *plainArena) acquire(n int64) *plainSuper {
	const mib = 1 << 20
	for i, s := range a.all {
		if s.owner != "" || !s.fits(n) {
			continue
		}
		if least := max(mib, n); s.empty() && s.size >= least+mib {
			tail := &plainSuper{addr: s.addr + uint64(least), size: s.size - least}
			tail.free = []plainBlock{{addr: tail.addr, size: tail.size}}
			s.size = least
			s.free = []plainBlock{{addr: s.addr, size: least}}
			a.all = slices.Insert(a.all, i+1, tail)
		}
		return s
	}
	return nil
}

func (a *plainArena) try(owner string, n int64) (uint64, bool) {
	if n > 1<<20 {
		if s := a.acquire(n); s != nil {
			return s.take(n), true
		}
		return 0, false
	}
	for _, s := range a.all {
		if s.owner == owner && s.fits(n) {
			return s.take(n), true
		}
	}
	if s := a.acquire(n); s != nil {
		s.owner = owner
		return s.take(n), true
	}
	return 0, false
}

func (a *plainArena) allocate(owner string, bytes int64) (uint64, bool) {
	n := (bytes + 255) / 256 * 256
	addr, ok := a.try(owner, n)
	if !ok {
		for _, s := range a.all {
			if s.empty() {
				s.owner = ""
			}
		}
		a.join()
		addr, ok = a.try(owner, n)
	}
	if ok {
		a.used[addr] = n
	}
	return addr, ok
}

func (a *plainArena) join() {
	for i := 0; i+1 < len(a.all); {
		x, y := a.all[i], a.all[i+1]
		if x.owner == "" && y.owner == "" && x.empty() && y.empty() {
			x.size += y.size
			x.free[0].size = x.size
			a.all = slices.Delete(a.all, i+1, i+2)
		} else {
			i++
		}
	}
}

func (a *plainArena) release(addr uint64) {
	n := a.used[addr]
	delete(a.used, addr)
	for _, s := range a.all {
		if addr < s.addr || addr >= s.addr+uint64(s.size) {
			continue
		}
		s.free = append(s.free, plainBlock{addr: addr, size: n})
		slices.SortFunc(s.free, func(x, y plainBlock) int { return int(int64(x.addr - y.addr)) })
		for i := 0; i+1 < len(s.free); {
			if s.free[i].addr+uint64(s.free[i].size) == s.free[i+1].addr {
				s.free[i].size += s.free[i+1].size
				s.free = slices.Delete(s.free, i+1, i+2)
			} else {
				i++
			}
		}
		if s.owner == "" && s.empty() {
			a.join()
		}
		return
	}
}

func TestArenaGivesTheAddressesOfThePlainOne(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		size := mib + rnd.Int64N(1<<17)*256
		whole := arena(t, rmm.ArenaOptions{Size: size})
		base := uint64(alloc.DefaultBase)
		plain := &plainArena{used: map[uint64]int64{}}
		plain.all = []*plainSuper{{addr: base, size: size, free: []plainBlock{{addr: base, size: size}}}}
		streams := 1 + rnd.IntN(4)
		var live []uint64
		for step := range 300 {
			s := stream.ID(rnd.IntN(streams))
			whole.UseStream(s)
			if len(live) > 0 && rnd.IntN(5) < 2 {
				i := rnd.IntN(len(live))
				if err := whole.Free(live[i]); err != nil {
					t.Fatal(err)
				}
				plain.release(live[i])
				live = slices.Delete(live, i, i+1)
				continue
			}
			n := 1 + rnd.Int64N(1<<(1+rnd.IntN(23)))
			b, ok := whole.Allocate(alloc.Request{Bytes: n})
			addr, want := plain.allocate(fmt.Sprint(s), n)
			if ok != want || b.Address != addr {
				t.Fatalf("seed %d, step %d: %d bytes on stream %d: %x %v, the plain arena %x %v", seed, step, n, s, b.Address, ok, addr, want)
			}
			if ok {
				live = append(live, addr)
			}
		}
	}
}
