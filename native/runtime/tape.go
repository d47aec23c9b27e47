package runtime

import (
	"fmt"
	"slices"

	"tideline/shared/device"
	"tideline/shared/program"
)

// Tape records what happens to watched values, so that gradients can be
// computed. It holds just what the gradients of the recorded ops read: both
// inputs of a product, the output of a rectifier, nothing of a sum. A plain
// tape gives one set of gradients and lets go; a persistent one holds until
// Release.
type Tape struct {
	rt         *Runtime
	persistent bool
	recording  bool
	done       bool
	tracked    map[uint64]bool
	entries    []entry
	variables  []watched
	graph      *trace // of a tape within a function
}

// watched is a variable's value that was read under the tape.
type watched struct {
	v   *Variable
	uid uint64
}

// entry is one op on the tape, or a function that was called.
type entry struct {
	op      program.Op
	attrs   program.Attrs
	in, out []recorded
	pair    *pair
	saved   []recorded // of a function: what its backward graph reads
}

// recorded is a value of an entry; h is set when the tape holds it.
type recorded struct {
	uid   uint64
	dtype program.DType
	shape program.Shape
	h     *handle
}

// saved says which values of a kernel its gradient reads.
type saved struct {
	none    bool // there is no gradient
	in, out []bool
}

// Tape opens a tape, which records until Stop, Gradient (unless it is
// persistent) or Release. Trainable variables are watched when they are read.
func (rt *Runtime) Tape(persistent bool) *Tape {
	t := &Tape{rt: rt, persistent: persistent, recording: true, tracked: map[uint64]bool{}, graph: rt.trace}
	if t.graph == nil {
		rt.tapes = append(rt.tapes, t)
	}
	return t
}

// Stop ends the recording.
func (t *Tape) Stop() {
	t.recording = false
	t.rt.tapes = slices.DeleteFunc(t.rt.tapes, func(o *Tape) bool { return o == t })
}

// Release ends the recording and lets go of all that the tape holds.
func (t *Tape) Release() {
	t.Stop()
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	t.release()
}

func (t *Tape) release() {
	t.done = true
	for i := range t.entries {
		t.entries[i].release(t.rt.core)
	}
	t.entries = nil
}

func (e *entry) release(c *core) {
	for _, list := range [][]recorded{e.in, e.out, e.saved} {
		for i := range list {
			if h := list[i].h; h != nil {
				list[i].h = nil
				c.drop(h)
			}
		}
	}
}

// Watch records what happens to a tensor from now on.
func (t *Tape) Watch(x *Tensor) {
	if x != nil && x.h != nil {
		t.tracked[x.h.uid] = true
	}
}

func (t *Tape) readVariable(v *Variable) {
	if v.frozen || !v.dtype.Float() {
		return
	}
	t.tracked[v.uid] = true
	if w := (watched{v, v.uid}); !slices.Contains(t.variables, w) {
		t.variables = append(t.variables, w)
	}
}

// record notes an op if it depends on something watched.
func (t *Tape) record(k *kernel, op program.Op, a *program.Attrs, in, out []*handle) {
	if !slices.ContainsFunc(in, func(h *handle) bool { return t.tracked[h.uid] }) || op == program.OpStopGradient {
		return
	}
	s := k.gradient()
	if s.none {
		return
	}
	e := entry{op: op, attrs: *a}
	note := func(list []*handle, keep []bool) []recorded {
		var r []recorded
		for i, h := range list {
			x := recorded{uid: h.uid, dtype: h.dtype, shape: h.shape}
			if keep[i] {
				h.refs++
				x.h = h
			}
			r = append(r, x)
		}
		return r
	}
	e.in, e.out = note(in, s.in), note(out, s.out)
	for _, h := range out {
		if h.dtype.Float() {
			t.tracked[h.uid] = true
		}
	}
	t.entries = append(t.entries, e)
}

// gradient works out, once a kernel, what its gradient reads: it derives the
// op by itself and looks at the backward nodes.
func (k *kernel) gradient() *saved {
	if k.saved != nil {
		return k.saved
	}
	s := &saved{none: true, in: make([]bool, len(k.node.Inputs)), out: make([]bool, len(k.outs))}
	for o := range k.outs {
		for i, v := range k.node.Inputs {
			if k.outs[o].dtype.Float() && k.p.Values[v].DType.Float() && k.derive(s, o, i) {
				s.none = false
			}
		}
	}
	k.saved = s
	return s
}

// derive notes what the gradient of output o by input i reads, and says
// whether there is one.
func (k *kernel) derive(s *saved, o, i int) bool {
	b := program.NewBuilder("gradient", 1)
	var in []program.ValueID
	for n, v := range k.node.Inputs {
		x := &k.p.Values[v]
		in = append(in, b.Input(fmt.Sprintf("in%d", n), x.DType, x.Shape))
	}
	out := b.Node(k.node.Op, k.node.Attrs, in...)
	b.Derive(b.Op(program.OpSum, plain, out[o]), program.None, in[i:i+1])
	p, err := b.Build()
	if err != nil {
		return false
	}
	for _, n := range p.Nodes {
		if n.Phase != program.Backward || n.Of != 0 {
			continue
		}
		for _, v := range n.Inputs {
			if at := slices.Index(in, v); at >= 0 {
				s.in[at] = true
			}
			if p.Values[v].Producer == 0 {
				s.out[p.Values[v].Index] = true
			}
		}
	}
	return true
}

// Source is what a gradient can be taken of: a *Tensor or a *Variable.
type Source interface{ source() }

func (*Tensor) source()   {}
func (*Variable) source() {}

// Gradient gives the gradient of a target (summed up, if it is no scalar) by
// each source, nil where the target does not depend on it. RuntimeError: a
// tape that is not persistent was asked before.
func (t *Tape) Gradient(target *Tensor, sources ...Source) ([]*Tensor, error) {
	if t.graph != nil {
		return t.graph.gradient(target, sources)
	}
	if err := t.rt.usable(target, "gradient"); err != nil {
		return nil, err
	}
	if !t.persistent {
		t.Stop()
	}
	t.rt.mu.Lock()
	defer t.rt.mu.Unlock()
	if t.done {
		return nil, &Error{Kind: device.RuntimeError, Op: "gradient", Message: "a tape that is not persistent gives gradients once: open it with Tape(true)"}
	}
	out, err := t.gradient(target, sources)
	if !t.persistent {
		t.release()
	}
	return out, err
}

func (t *Tape) gradient(target *Tensor, sources []Source) ([]*Tensor, error) {
	g := gradients{tape: t, target: target, grads: map[uint64]*handle{}}
	return g.run(sources)
}

// uids are the values of a source that the tape saw.
func (t *Tape) uids(s Source) []uint64 {
	switch x := s.(type) {
	case *Tensor:
		if x != nil && x.h != nil {
			return []uint64{x.h.uid}
		}
	case *Variable:
		var ids []uint64
		for _, w := range t.variables {
			if w.v == x {
				ids = append(ids, w.uid)
			}
		}
		return ids
	}
	return nil
}

// reachable lists the values that the target depends on.
func (t *Tape) reachable(target uint64) map[uint64]bool {
	need := map[uint64]bool{target: true}
	for i := len(t.entries) - 1; i >= 0; i-- {
		e := &t.entries[i]
		if slices.ContainsFunc(e.out, func(r recorded) bool { return need[r.uid] }) {
			for _, r := range e.in {
				need[r.uid] = true
			}
		}
	}
	return need
}
