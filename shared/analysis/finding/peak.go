package finding

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// Composition is what a pool holds at its peak, with the tensors of a planned
// arena in the place of the one block that the arena is to its allocator.
type Composition struct {
	Time       int64
	Step       int32 // -1 outside of steps
	InUse      int64
	Reserved   int64
	ByCategory store.Categories // with Arena they sum to InUse
	Arena      int64            // bytes of planned arenas that no tensor needs at their fullest
	Holders    []Holder         // by op and category, the largest first
}

// At is what a pool holds at its peak.
func At(tl *store.Timeline, p *store.Pool) Composition {
	_, last := tl.Span()
	pk := p.Peak(0, last+1, 0)
	at, _ := p.PeakPoint(0, last+1)
	return compose(tl, p, p.Fullest(at), pk.State)
}

// inside is the pool that tells what lies in a pool's planned arenas; nil for
// most.
func inside(tl *store.Timeline, p *store.Pool) *store.Pool {
	for _, in := range tl.Pools() {
		if in.Device == p.Device && in.Facts.Text("within") == p.Name && in.Allocs() > 0 {
			return in
		}
	}
	return nil
}

// compose takes apart what a pool holds at a moment. For a planned arena that
// is its content when it is fullest, while the same arena is held: the arena is
// asked for before anything is put into it.
func compose(tl *store.Timeline, p *store.Pool, m store.Moment, s store.State) Composition {
	c := Composition{Time: m.Time, Step: -1, InUse: s.InUse, Reserved: s.Reserved, ByCategory: s.ByCategory.Plain()}
	if st, ok := tl.StepAt(m.Time); ok && (st.End == store.Alive || m.Time <= st.End) {
		c.Step = st.Step
	}
	in := inside(tl, p)
	var ids, arenas []int32
	for _, id := range p.LiveIn(nil, m) {
		if in != nil && arena(in, p.Alloc(int(id))) {
			arenas = append(arenas, id)
		} else {
			ids = append(ids, id)
		}
	}
	c.add(tl, p, ids)
	for _, id := range arenas {
		c.open(tl, in, p.Alloc(int(id)))
	}
	sorted := make([]Holder, 0, len(c.Holders))
	for _, i := range order(len(c.Holders), func(i int) int64 { return c.Holders[i].Bytes }) {
		sorted = append(sorted, c.Holders[i])
	}
	c.Holders = sorted
	return c
}

func (c *Composition) add(tl *store.Timeline, p *store.Pool, ids []int32) {
	for _, t := range p.TotalsByOp(ids, 0) {
		c.Holders = append(c.Holders, Holder{orUnnamed(tl.Text(t.Op)), t.Category.Plain(), t.Bytes, int64(t.Count)})
	}
}

// arena says whether a block is one: a region of the inner pool while the block
// is held.
func arena(in *store.Pool, a store.Allocation) bool {
	if a.Category != event.Temporary {
		return false
	}
	for i, r := range in.Regions() {
		if r.Address == a.Address && in.AddedWithin(i, a.Birth, a.Death) {
			return true
		}
	}
	return false
}

// open puts the tensors of an arena in its place.
func (c *Composition) open(tl *store.Timeline, in *store.Pool, a store.Allocation) {
	_, end := tl.Span()
	end = min(end, a.Death) // at the end of the arena nothing lies in it any more
	at, _ := in.PeakPoint(a.Birth, end+1)
	m := in.Fullest(at)
	st := in.In(m)
	c.ByCategory[a.Category] -= a.Size
	for k, n := range st.ByCategory.Plain() {
		c.ByCategory[k] += n
	}
	c.Arena += a.Size - st.InUse
	c.add(tl, in, in.LiveIn(nil, m))
}

// Fixed is what is there whatever the batch: weights, their gradients and the
// optimizer's state.
func (c *Composition) Fixed() int64 {
	return c.ByCategory[event.Parameter] + c.ByCategory[event.OptimizerState] + c.ByCategory[event.Gradient] + c.ByCategory[event.Constant]
}

// Scales is what grows with the batch.
func (c *Composition) Scales() int64 {
	return c.ByCategory[event.Input] + c.ByCategory[event.Activation] + c.ByCategory[event.ActivationGradient] + c.ByCategory[event.Output]
}

// Highest says what the fullest accelerator's peak consists of.
func Highest(tl *store.Timeline) (Finding, bool) {
	var best *store.Pool
	var c Composition
	for _, p := range acceleratorPools(tl) {
		if x := At(tl, p); best == nil || x.InUse > c.InUse {
			best, c = p, x
		}
	}
	if best == nil || c.InUse == 0 {
		return Finding{}, false
	}
	f := Finding{ID: Peak, Title: "What the peak consists of", Device: short(tl, best.Device)}
	f.put("peak_bytes", c.InUse, Bytes)
	f.put("reserved_bytes", c.Reserved, Bytes)
	if best.Limit > 0 {
		f.put("limit_bytes", best.Limit, Bytes)
	}
	for k, n := range c.ByCategory {
		if n > 0 {
			f.put(strings.ReplaceAll(event.Category(k).String(), " ", "_")+"_bytes", n, Bytes)
		}
	}
	if c.Arena > 0 {
		f.put("arena_unused_bytes", c.Arena, Bytes)
	}
	f.say(best.Name + " holds at most " + size(c.InUse) + ": " + parts(&c) + ".")
	if len(c.Holders) > 0 {
		f.Culprit = c.Holders[0].Name
	}
	f.Holders = c.Holders[:min(len(c.Holders), 12)]
	return f, true
}

// parts names what a composition consists of, the largest first.
func parts(c *Composition) string {
	var words []string
	for _, k := range order(event.NumCategories, func(i int) int64 { return c.ByCategory[i] })[:4] {
		if c.ByCategory[k] > 0 {
			words = append(words, event.Category(k).String()+" "+size(c.ByCategory[k]))
		}
	}
	if c.Arena > 0 {
		words = append(words, "unused in the arena "+size(c.Arena))
	}
	return strings.Join(words, ", ")
}
