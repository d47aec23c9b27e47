package torch

import (
	"fmt"
	"slices"
	"sort"
)

// PoolOptions are what a private pool can be opened with.
type PoolOptions struct {
	NoSplit bool // its blocks are never split
	OnOOM   bool // it may serve requests that would fail otherwise
}

type capture struct {
	pool   PoolID
	stream Stream
	any    bool // all streams are captured
}

func (a *Allocator) privateAt(id PoolID) int {
	return sort.Search(len(a.privates), func(i int) bool {
		p := a.privates[i].id
		return p.A > id.A || p.A == id.A && p.B >= id.B
	})
}

func (a *Allocator) lookup(id PoolID) *private {
	if i := a.privateAt(id); i < len(a.privates) && a.privates[i].id == id {
		return a.privates[i]
	}
	return nil
}

// private finds the pool, or opens it with one user. A pool without users gets
// one again, lest it vanish under the request.
func (a *Allocator) private(id PoolID) *private {
	if p := a.lookup(id); p != nil {
		if p.users == 0 {
			p.users = 1
			a.freeable = slices.DeleteFunc(a.freeable, func(o *private) bool { return o == p })
		}
		return p
	}
	p := &private{id: id, users: 1}
	for k := small; k <= large; k++ {
		p.pools[k] = &pool{kind: k, owner: p}
	}
	i := a.privateAt(id)
	a.privates = append(a.privates, nil)
	copy(a.privates[i+1:], a.privates[i:])
	a.privates[i] = p
	return p
}

// OpenPool makes a private pool, or adds a user to one.
func (a *Allocator) OpenPool(id PoolID, o PoolOptions) error {
	if id.Default() {
		return fmt.Errorf("allocator %s: pool (0, 0) is the default pool and always open", a.o.Name)
	}
	p := a.lookup(id)
	switch {
	case p == nil:
		p = a.private(id)
	case p.users == 0:
		p = a.private(id)
	default:
		p.users++
	}
	p.pools[small].noSplit = p.pools[small].noSplit || o.NoSplit
	p.pools[large].noSplit = p.pools[large].noSplit || o.NoSplit
	p.onOOM = p.onOOM || o.OnOOM
	return nil
}

// ReleasePool takes a user away. A pool without users gives its idle segments
// back like the default pool, and vanishes with the last of them.
func (a *Allocator) ReleasePool(id PoolID) error {
	p := a.lookup(id)
	if p == nil || p.users == 0 {
		return fmt.Errorf("allocator %s: pool (%d, %d) has no user to give it up", a.o.Name, id.A, id.B)
	}
	if p.users--; p.users == 0 {
		a.freeable = append(a.freeable, p)
	}
	return nil
}

// forget drops a pool that holds nothing.
func (a *Allocator) forget(p *private) {
	for k := small; k <= large; k++ {
		for _, ar := range p.pools[k].arenas {
			for len(ar.unmapped) > 0 { // reserved, but never mapped
				a.unreserve(ar.unmapped[0])
			}
			ar.pool = a.pools[k]
			a.spareArenas = append(a.spareArenas, ar)
		}
	}
	i := a.privateAt(p.id)
	a.privates = append(a.privates[:i], a.privates[i+1:]...)
}

// BeginCapture sends the requests of a stream to a private pool, which gains a
// user, until EndCapture. While any capture lasts no event is asked for and no
// cached memory is given back on a failure.
func (a *Allocator) BeginCapture(id PoolID, s Stream) error {
	return a.begin(capture{pool: id, stream: s})
}

// BeginCaptureAll is BeginCapture for every stream.
func (a *Allocator) BeginCaptureAll(id PoolID) error { return a.begin(capture{pool: id, any: true}) }

func (a *Allocator) begin(c capture) error {
	for _, other := range a.captures {
		if other.pool == c.pool {
			return fmt.Errorf("allocator %s: a capture into pool (%d, %d) is under way already", a.o.Name, c.pool.A, c.pool.B)
		}
	}
	if err := a.OpenPool(c.pool, PoolOptions{}); err != nil {
		return err
	}
	a.captures = append(a.captures, c)
	return nil
}

// EndCapture ends the capture into a pool. The pool keeps its user: what was
// captured uses the addresses until ReleasePool.
func (a *Allocator) EndCapture(id PoolID) error {
	for i, c := range a.captures {
		if c.pool == id {
			a.captures = append(a.captures[:i], a.captures[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("allocator %s: no capture into pool (%d, %d) is under way", a.o.Name, id.A, id.B)
}

// captureOf is the pool that a stream is captured into.
func (a *Allocator) captureOf(s Stream) PoolID {
	for _, c := range a.captures {
		if c.any || c.stream == s {
			return c.pool
		}
	}
	return PoolID{}
}
