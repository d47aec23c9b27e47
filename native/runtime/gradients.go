package runtime

import (
	"slices"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// gradients goes back over a tape: segments of ops and calls of functions in
// turn, the last first, adding up what arrives at each value.
type gradients struct {
	tape   *Tape
	target *Tensor
	need   map[uint64]bool // what the target depends on
	wanted map[uint64]bool // the sources
	made   map[uint64]int  // the entry that made a value
	grads  map[uint64]*handle
}

func (g *gradients) run(sources []Source) ([]*Tensor, error) {
	t := g.tape
	g.need, g.wanted, g.made = t.reachable(g.target.h.uid), map[uint64]bool{}, map[uint64]int{}
	for _, s := range sources {
		for _, uid := range t.uids(s) {
			g.wanted[uid] = uid != g.target.h.uid
		}
	}
	for i := range t.entries {
		for _, r := range t.entries[i].out {
			g.made[r.uid] = i
		}
	}
	defer g.release()
	for end := len(t.entries); ; {
		start := end
		for start > 0 && t.entries[start-1].pair == nil {
			start--
		}
		if err := g.ops(start, end); err != nil {
			return nil, err
		}
		if start == 0 {
			return g.collect(sources)
		}
		if err := g.function(&t.entries[start-1]); err != nil {
			return nil, err
		}
		end = start - 1
	}
}

func (g *gradients) release() {
	uids := make([]uint64, 0, len(g.grads))
	for uid := range g.grads {
		uids = append(uids, uid)
	}
	slices.Sort(uids) // frees happen in one order
	for _, uid := range uids {
		g.tape.rt.drop(g.grads[uid])
	}
	g.grads = nil
}

// collect gives each source the sum of what arrived at its values.
func (g *gradients) collect(sources []Source) ([]*Tensor, error) {
	out := make([]*Tensor, len(sources))
	for i, s := range sources {
		var in []*handle
		for _, uid := range g.tape.uids(s) {
			if h := g.grads[uid]; h != nil && g.wanted[uid] {
				in = append(in, h)
			}
		}
		switch len(in) {
		case 0:
		case 1:
			in[0].refs++
			out[i] = g.tape.rt.own(in[0])
		default: // a variable that changed under the tape
			h, err := g.sum(in)
			if err != nil {
				return nil, err
			}
			out[i] = g.tape.rt.own(h)
		}
	}
	return out, nil
}

func (g *gradients) sum(in []*handle) (*handle, error) {
	var out [maxOut]*handle
	_, err := g.tape.rt.dispatch(&call{op: program.OpAddN, attrs: &plain, phase: program.Backward, role: program.RoleGradient, in: in}, &out)
	return out[0], err
}

// arrive adds a gradient to what arrived at a value, and takes its reference.
func (g *gradients) arrive(uid uint64, h *handle) error {
	old := g.grads[uid]
	if old == nil {
		g.grads[uid] = h
		return nil
	}
	total, err := g.sum([]*handle{old, h})
	g.tape.rt.drop(h)
	if err != nil {
		return err
	}
	g.tape.rt.drop(old)
	g.grads[uid] = total
	return nil
}

// consume gives up what arrived at a value that is no source.
func (g *gradients) consume(uid uint64) {
	if h := g.grads[uid]; h != nil {
		delete(g.grads, uid)
		g.tape.rt.drop(h)
	}
}

// ops goes back over a segment without calls.
func (g *gradients) ops(start, end int) error {
	s := segment{tape: g.tape}
	inside := func(uid uint64) bool { i, ok := g.made[uid]; return ok && i >= start && i < end }
	var roots []root
	reach := map[uint64]bool{}
	for i := start; i < end; i++ {
		for _, r := range g.tape.entries[i].out {
			switch {
			case r.uid == g.target.h.uid:
				roots = append(roots, root{value: r})
			case g.grads[r.uid] != nil:
				roots = append(roots, root{r, g.grads[r.uid]})
			default:
				continue
			}
			reach[r.uid] = true
		}
	}
	if len(roots) == 0 {
		return nil
	}
	for i := end - 1; i >= start; i-- {
		e := &g.tape.entries[i]
		if slices.ContainsFunc(e.out, func(r recorded) bool { return reach[r.uid] }) {
			for _, r := range e.in {
				reach[r.uid] = true
			}
			s.entries = append(s.entries, *e)
		}
	}
	slices.Reverse(s.entries)
	var wrt []uint64
	want := func(r recorded) {
		_, made := g.made[r.uid]
		if (g.wanted[r.uid] || made && !inside(r.uid)) && r.uid != g.target.h.uid && g.tape.tracked[r.uid] && r.dtype.Float() && reach[r.uid] && !slices.Contains(wrt, r.uid) {
			wrt = append(wrt, r.uid)
		}
	}
	for i := range s.entries {
		for _, r := range s.entries[i].in {
			want(r)
		}
		for _, r := range s.entries[i].out {
			want(r)
		}
	}
	if len(wrt) == 0 {
		return nil
	}
	found, err := s.derive(roots, wrt)
	if err != nil {
		return err
	}
	for _, r := range roots { // what is still wanted comes anew
		g.consume(r.value.uid)
	}
	for i, uid := range wrt {
		if err := g.arrive(uid, found[i]); err != nil {
			return err
		}
	}
	return nil
}

// function goes back over a call: its backward graph runs on what the forward
// graph saved and on the gradients of its results.
func (g *gradients) function(e *entry) error {
	rt, p := g.tape.rt, e.pair
	arrived := false
	for _, i := range p.floats {
		arrived = arrived || e.out[i].uid == g.target.h.uid || g.grads[e.out[i].uid] != nil
	}
	if !arrived {
		return nil
	}
	var in, temporary []*handle
	defer func() {
		for _, h := range temporary {
			rt.drop(h)
		}
	}()
	for _, r := range e.saved {
		in = append(in, r.h)
	}
	for _, i := range p.floats {
		r := &e.out[i]
		h := g.grads[r.uid]
		if h == nil { // the target itself, or a result that leads nowhere
			x := 0.0
			if r.uid == g.target.h.uid {
				x = 1
			}
			var err error
			h, err = rt.fill("Const", g.target.h.device, r.dtype, r.shape, event.ActivationGradient, func(dst []byte) { exec.FillConst(dst, r.dtype, x) })
			if err != nil {
				return err
			}
			temporary = append(temporary, h)
		}
		in = append(in, h)
	}
	found, err := rt.callGraph(p.backward, in, text("gradients"))
	if err != nil {
		return err
	}
	for _, i := range p.floats {
		if !g.wanted[e.out[i].uid] {
			g.consume(e.out[i].uid)
		}
	}
	for i, r := range e.in {
		_, made := g.made[r.uid]
		if !g.tape.tracked[r.uid] || !made && !g.wanted[r.uid] {
			rt.drop(found[i])
			continue
		}
		if err := g.arrive(r.uid, found[i]); err != nil {
			return err
		}
	}
	return nil
}

// text is a word that says what is traced.
type text string

func (t text) String() string { return string(t) }
