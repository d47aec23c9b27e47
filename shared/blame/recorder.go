package blame

import (
	"strings"

	"tideline/protocol/event"
)

// Recorder takes a recording's events and keeps what is needed to say who holds
// what. It is an event.Sink.
type Recorder struct {
	strs   *event.Strings
	pools  []*pool
	at     map[place]*pool
	last   *pool // of the event before
	lastAt place
	stacks []uint8 // by string: whether it is a stack; 0 for not yet looked at
	copies traffic
}

// NewRecorder keeps nothing yet. The strings are those of the events.
func NewRecorder(strs *event.Strings) *Recorder {
	return &Recorder{strs: strs, at: map[place]*pool{}, copies: traffic{open: map[uint64]event.Event{}}}
}

type place struct {
	device event.DeviceID
	alloc  event.AllocatorID
}

// who is what blocks are grouped by.
type who struct {
	op    event.StringID
	stack event.StringID // 0 where the tensor's text is no stack
	size  int64          // of those without an op: what was asked for, or 0
	early bool           // was there before the recording
}

type change struct {
	bytes int64 // negative for a free
	key   int32
}

type block struct {
	bytes int64
	key   int32
}

const chunkLen = 8192

// pool is one allocator with the changes of its use.
type pool struct {
	name, kind string
	keys       []who
	numbers    map[who]int32
	sizes      int // keys that stand for a size
	live       map[uint64]block
	chunks     [][]change
	n          int

	begun       bool
	first, last int64 // times
	base        int   // changes at the first time
	inUse, most int64
	peak        int // changes up to the peak
	peakTime    int64
}

// maxSizes bounds the sizes that blocks without an op are told apart by.
const maxSizes = 4096

// Emit implements event.Sink.
func (r *Recorder) Emit(e *event.Event) {
	switch e.Kind {
	case event.Alloc:
		p := r.pool(e)
		p.free(e.Address, e.Time)
		if e.Size <= 0 {
			return // holds nothing
		}
		b := block{e.Size, p.key(r.who(e, p))}
		p.live[e.Address] = b
		p.change(b.bytes, b.key, e.Time)
	case event.Free:
		r.pool(e).free(e.Address, e.Time)
	case event.Forward:
		r.forward(e)
	case event.AllocatorFacts:
		f, _ := event.ParseFields(r.strs.At(e.Text))
		p := r.pool(e)
		p.kind = f.Text("kind")
		if n := f.Text("name"); n != "" {
			p.name = n
		}
	default:
		r.copies.add(e)
	}
}

func (r *Recorder) pool(e *event.Event) *pool {
	k := place{e.Device, e.Allocator}
	if r.last != nil && r.lastAt == k {
		return r.last
	}
	p := r.at[k]
	if p == nil {
		p = &pool{numbers: map[who]int32{}, live: map[uint64]block{}, name: "the allocator"}
		r.at[k] = p
		r.pools = append(r.pools, p)
	}
	r.last, r.lastAt = p, k
	return p
}

// forward is a block that another tensor takes over.
func (r *Recorder) forward(e *event.Event) {
	p := r.pool(e)
	if b, ok := p.live[e.Address]; ok {
		p.free(e.Address, e.Time)
		b.key = p.key(r.who(e, p))
		p.live[e.Address] = b
		p.change(b.bytes, b.key, e.Time)
	}
}

// unnamed are the ops that stand for none: what a reader made up for bytes of
// which the file only has the sum.
func unnamed(op string) bool {
	return op == "" || op == "before the window" || op == "before the trace"
}

func (r *Recorder) who(e *event.Event, p *pool) who {
	if !unnamed(r.strs.At(e.Op)) {
		w := who{op: e.Op}
		if r.isStack(e.Tensor) {
			w.stack = e.Tensor
		}
		return w
	}
	w := who{early: e.Op != 0 || !p.begun || e.Time == p.first}
	if e.Op == 0 && p.sizes < maxSizes { // what stands for a sum is of no size
		w.size = e.Requested
	}
	return w
}

// isStack says whether a tensor's text is the stack that allocated it: frames,
// one a line, each with a file and line.
func (r *Recorder) isStack(id event.StringID) bool {
	if id == 0 {
		return false
	}
	if int(id) >= len(r.stacks) {
		r.stacks = append(r.stacks, make([]uint8, max(r.strs.Len(), int(id)+1)-len(r.stacks))...)
	}
	if r.stacks[id] == 0 {
		r.stacks[id] = 1
		if s := r.strs.At(id); strings.Contains(s, "\n") || isFrame(s) {
			r.stacks[id] = 2
		}
	}
	return r.stacks[id] == 2
}

// isFrame: "name file:12".
func isFrame(s string) bool {
	i := strings.LastIndexByte(s, ':')
	return i > 0 && i+1 < len(s) && strings.Trim(s[i+1:], "0123456789") == "" && strings.Contains(s[:i], " ")
}

func (p *pool) key(w who) int32 {
	n, ok := p.numbers[w]
	if !ok {
		n = int32(len(p.keys))
		p.numbers[w] = n
		p.keys = append(p.keys, w)
		if w.op == 0 {
			p.sizes++
		}
	}
	return n
}

func (p *pool) free(addr uint64, at int64) {
	if b, ok := p.live[addr]; ok {
		delete(p.live, addr)
		p.change(-b.bytes, b.key, at)
	}
}

func (p *pool) change(bytes int64, key int32, at int64) {
	if p.n%chunkLen == 0 {
		p.chunks = append(p.chunks, make([]change, 0, chunkLen))
	}
	c := &p.chunks[len(p.chunks)-1]
	*c = append(*c, change{bytes, key})
	p.n++
	if !p.begun {
		p.begun, p.first = true, at
	}
	if p.last = at; at == p.first {
		p.base = p.n
	}
	p.inUse += bytes
	if p.inUse > p.most {
		p.most, p.peak, p.peakTime = p.inUse, p.n, at
	}
}

// changes visits changes [from,to) in order.
func (p *pool) changes(from, to int, visit func(i int, c change)) {
	for i := from; i < to; i++ {
		visit(i, p.chunks[i/chunkLen][i%chunkLen])
	}
}
