package feed

import "sync"

// element is an element on its way, of one or, after a batch, several of the
// source.
type element struct {
	Batch
	epoch int
	kept  bool // a cache holds it: it is read only and not used again
}

// pool has elements that are not in use.
type pool struct {
	pixels int
	mu     sync.Mutex
	spare  []*element
}

// get makes room for n of the source's elements.
func (p *pool) get(n int) *element {
	p.mu.Lock()
	var e *element
	// Single elements and batches take turns; the last that is large enough
	// is near the end.
	for i := len(p.spare) - 1; i >= 0; i-- {
		if cap(p.spare[i].Indices) >= n && (n > 1 || cap(p.spare[i].Indices) == 1) {
			e = p.spare[i]
			last := len(p.spare) - 1
			p.spare[i] = p.spare[last]
			p.spare = p.spare[:last]
			break
		}
	}
	p.mu.Unlock()
	if e == nil {
		e = &element{Batch: Batch{Images: make([]float32, 0, n*p.pixels), Labels: make([]int64, 0, n)}}
		e.Indices = make([]int32, 0, n)
	}
	e.epoch, e.kept = 0, false
	e.Indices, e.Labels, e.Images = e.Indices[:0], e.Labels[:0], e.Images[:0]
	return e
}

// one is an element of the source, without content.
func (p *pool) one(index int32) *element {
	e := p.get(1)
	e.Indices, e.Labels, e.Images = append(e.Indices, index), e.Labels[:1], e.Images[:p.pixels]
	e.Labels[0] = 0
	return e
}

// put takes back an element that nobody reads any more.
func (p *pool) put(e *element) {
	if e.kept {
		return
	}
	p.mu.Lock()
	p.spare = append(p.spare, e)
	p.mu.Unlock()
}

// add appends a copy of another element.
func (e *element) add(x *element) {
	e.Indices = append(e.Indices, x.Indices...)
	e.Images = append(e.Images, x.Images...)
	e.Labels = append(e.Labels, x.Labels...)
}

// own is the element itself, or a copy of one that a cache holds.
func (p *pool) own(e *element) *element {
	if !e.kept {
		return e
	}
	c := p.get(len(e.Indices))
	c.add(e)
	c.epoch = e.epoch
	return c
}
