package runtime

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
)

// Body is what a function does. Its arguments are those of the call, with
// tensors replaced by values of the graph while it is traced.
type Body func(args ...any) ([]*Tensor, error)

// Function is a tf.function: its body is traced into a graph once for each
// kind of arguments, and the graph then runs as a whole, with pruning and
// buffers taken over in place.
//
// Kinds are told apart by type and shape of tensors, by which variable it is,
// and by the value of numbers, strings and bools; slices, and maps with string
// keys, by what is in them; anything else by identity. The device scope, too,
// counts.
type Function struct {
	rt   *Runtime
	name string
	body Body
	// ReduceRetracing lets a call that differs from an earlier one in shapes
	// only trace a function for which the extents that differ are unknown, so
	// that later shapes need no trace.
	ReduceRetracing bool

	concrete []*concrete
	called   bool
	traces   int
	detector detector
}

// concrete is a concrete function: one trace.
type concrete struct {
	kind   string          // everything but the tensors' shapes
	shapes []program.Shape // -1: unknown
	graphs map[string]*graph
	pairs  map[string]*pair // for calls under a tape
}

// Function makes a function of a body. Nothing is traced before its first
// call.
func (rt *Runtime) Function(name string, body Body) *Function {
	return &Function{rt: rt, name: name, body: body}
}

// Traces is how many times calls led to a trace: as many as there are concrete
// functions.
func (f *Function) Traces() int { return f.traces }

// Signatures lists the concrete functions' arguments, in order of tracing; an
// unknown extent is None.
func (f *Function) Signatures() []string {
	var out []string
	for _, c := range f.concrete {
		out = append(out, c.String())
	}
	return out
}

// String writes the kinds with the shapes, as in (float32[None,3], 2).
func (c *concrete) String() string {
	s := c.kind
	for _, shape := range c.shapes {
		s = strings.Replace(s, "\x00", strings.ReplaceAll(shape.String(), "-1", "None"), 1)
	}
	return s
}

// Release lets go of all graphs with their constants.
func (f *Function) Release() {
	c := f.rt.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.run == nil {
		return
	}
	for _, x := range f.concrete {
		for _, key := range slices.Sorted(maps.Keys(x.graphs)) {
			c.releaseGraph(x.graphs[key])
		}
		for _, key := range slices.Sorted(maps.Keys(x.pairs)) {
			c.releaseGraph(x.pairs[key].forward)
			c.releaseGraph(x.pairs[key].backward)
		}
	}
	f.concrete = nil
}

// Call runs the function, tracing it first if no trace fits. The results are
// the caller's to release; the arguments stay the caller's.
func (f *Function) Call(args ...any) ([]*Tensor, error) {
	rt := f.rt
	if rt.trace != nil || rt.config.General.RunFunctionsEagerly {
		return f.body(args...) // inlined, or op by op
	}
	var s signature
	s.request(rt)
	for _, a := range args {
		s.add(a)
		s.text.WriteString(", ")
	}
	for _, t := range s.tensors {
		if err := rt.usable(t, f.name); err != nil {
			return nil, err
		}
		if t.h.err != nil {
			return nil, t.h.err
		}
	}
	c, err := f.find(&s, args)
	if err != nil {
		return nil, err
	}
	return f.run(c, &s, args)
}

// find is the concrete function for a call: the most specific that fits, or a
// new one.
func (f *Function) find(s *signature, args []any) (*concrete, error) {
	kind := strings.TrimSuffix(s.text.String(), ", ")
	var best *concrete
	for _, c := range f.concrete {
		if c.kind == kind && c.fits(s.tensors) && (best == nil || c.unknown() < best.unknown()) {
			best = c
		}
	}
	if best != nil {
		f.detector.hit()
		return best, nil
	}
	c := &concrete{kind: kind, graphs: map[string]*graph{}, pairs: map[string]*pair{}}
	for _, t := range s.tensors {
		c.shapes = append(c.shapes, slices.Clone(t.shape))
	}
	if f.ReduceRetracing {
		f.relax(c)
	}
	if _, err := f.graph(c, s, args); err != nil {
		return nil, err
	}
	f.concrete = append(f.concrete, c)
	f.traces++
	rt := f.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if f.detector.traced() {
		rt.warn(fmt.Sprintf("%d of the last %d calls to %s made a new trace, which is slow and keeps one graph each: pass tensors instead of numbers, "+
			"or set ReduceRetracing for changing shapes", frequent, history, f.name))
	}
	return c, nil
}

// relax makes those extents unknown in which earlier traces of the same kind
// differ.
func (f *Function) relax(c *concrete) {
	for _, o := range f.concrete {
		if o.kind != c.kind || !slices.EqualFunc(o.shapes, c.shapes, func(a, b program.Shape) bool { return len(a) == len(b) }) {
			continue
		}
		for i := range c.shapes {
			for d := range c.shapes[i] {
				if o.shapes[i][d] != c.shapes[i][d] {
					c.shapes[i][d] = -1
				}
			}
		}
	}
}

func (c *concrete) fits(in []*Tensor) bool {
	return slices.EqualFunc(c.shapes, in, func(s program.Shape, t *Tensor) bool {
		return slices.EqualFunc(s, t.shape, func(a, b int64) bool { return a == b || a < 0 })
	})
}

func (c *concrete) unknown() int {
	n := 0
	for _, s := range c.shapes {
		for _, d := range s {
			if d < 0 {
				n++
			}
		}
	}
	return n
}

// graph is the concrete function's program for these very shapes.
func (f *Function) graph(c *concrete, s *signature, args []any) (*graph, error) {
	key := s.shapes()
	if g, ok := c.graphs[key]; ok {
		return g, nil
	}
	if err := f.initialize(); err != nil {
		return nil, err
	}
	first := !f.called
	g, made, err := f.traceOnce(args, first)
	if err != nil {
		return nil, err
	}
	f.called = true
	if made > 0 { // again, now that the variables are there
		f.forget(g)
		if g, _, err = f.traceOnce(args, false); err != nil {
			return nil, err
		}
	}
	c.graphs[key] = g
	return g, nil
}

func (f *Function) initialize() error {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	return f.rt.start()
}

func (f *Function) forget(g *graph) {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	g.t.release()
}

func (f *Function) traceOnce(args []any, create bool) (g *graph, made int, err error) {
	t, err := f.trace(args, create, func(t *trace, results []*Tensor, n int) (err error) {
		g, err = t.finish(results, n)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return g, t.made, nil
}

// trace runs the body on values of a new graph and lets finish complete it.
func (f *Function) trace(args []any, create bool, finish func(t *trace, results []*Tensor, args int) error) (*trace, error) {
	rt := f.rt
	t := newTrace(rt, f, create)
	rt.trace = t
	defer func() { rt.trace = nil }()
	var p placer
	in := make([]any, len(args))
	for i, a := range args {
		in[i] = p.replace(a, t)
	}
	results, err := f.body(in...)
	if err == nil {
		err = finish(t, results, p.n)
	}
	if err != nil {
		rt.mu.Lock()
		t.release()
		rt.mu.Unlock()
		return nil, err
	}
	return t, nil
}

// placer puts values of the graph in the place of tensors.
type placer struct{ n int }

func (p *placer) replace(a any, t *trace) any {
	switch x := a.(type) {
	case *Tensor:
		if x == nil {
			return x
		}
		p.n++
		return t.argument(p.n-1, x.dtype, x.shape)
	case []*Tensor:
		out := make([]*Tensor, len(x))
		for i, e := range x {
			out[i] = p.replace(e, t).(*Tensor)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = p.replace(e, t)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for _, k := range slices.Sorted(maps.Keys(x)) {
			out[k] = p.replace(x[k], t)
		}
		return out
	}
	return a
}

// run calls a concrete function, and lets the open tapes see it.
func (f *Function) run(c *concrete, s *signature, args []any) ([]*Tensor, error) {
	g, err := f.graph(c, s, args)
	if err != nil {
		return nil, err
	}
	in := make([]*handle, len(s.tensors))
	for i, t := range s.tensors {
		in[i] = t.h
	}
	rt := f.rt
	if rt.watched(g, in) {
		return f.underTape(c, s, args, in)
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	out, err := rt.callGraph(g, in, c)
	if err != nil {
		return nil, err
	}
	return rt.ownAll(out), nil
}

func (rt *Runtime) ownAll(hs []*handle) []*Tensor {
	ts := make([]*Tensor, len(hs))
	for i, h := range hs {
		ts[i] = rt.own(h)
	}
	return ts
}

// callGraph runs a graph on arguments that are held for the whole call; what
// says in the timeline what is traced when it is made ready.
func (rt *Runtime) callGraph(g *graph, args []*handle, what fmt.Stringer) ([]*handle, error) {
	at := make([]event.DeviceID, len(args))
	var key []byte
	for i, h := range args {
		at[i] = rt.run.Memory(h.mem).Device
		key = appendInt(key, int64(at[i]))
	}
	in := g.ready[string(key)]
	if in == nil {
		rt.run.Annotate("tracing: " + g.name + "(" + what.String() + ")")
		var err error
		if in, err = rt.instantiate(g, at); err != nil {
			return nil, err
		}
		g.ready[string(key)] = in
	}
	for i, h := range args {
		if in.used[i] {
			rt.run.Hold(h.mem)
			rt.run.Bind(in.args[i], h.mem)
		}
	}
	mem, err := rt.run.Call(in.plan)
	for i := range args {
		if in.used[i] {
			rt.run.Drop(rt.run.Unbind(in.args[i]))
		}
	}
	if err != nil {
		return nil, rt.wrap(g.name, 0, rt.largest(g), err)
	}
	for _, v := range g.writes {
		rt.uid++
		v.uid = rt.uid
	}
	out := make([]*handle, len(mem))
	for i, m := range mem {
		out[i] = rt.newHandle(m, rt.run.Memory(m).Device, g.outputs[i].dtype, g.outputs[i].shape)
	}
	return out, nil
}

// releaseGraph lets go of what a graph holds.
func (c *core) releaseGraph(g *graph) {
	for _, key := range slices.Sorted(maps.Keys(g.ready)) {
		in := g.ready[key]
		c.run.Forget(in.plan)
		for _, id := range in.captures {
			c.run.Drop(c.run.Unbind(id))
		}
	}
	g.ready = nil
	g.t.release()
}

// largest finds, for the message of a failure, the value that had no room.
func (rt *Runtime) largest(g *graph) *program.Value {
	oom := rt.run.OOM()
	if oom == nil {
		return nil
	}
	for i := range g.p.Values {
		if v := &g.p.Values[i]; v.Bytes() == oom.Requested && v.Name == oom.Tensor {
			return v
		}
	}
	return nil
}

// signature is the trace type of a call: its kind, with a mark for each
// tensor's shape, and the tensors in order.
type signature struct {
	text    strings.Builder
	tensors []*Tensor
}

func (s *signature) request(rt *Runtime) {
	if want := rt.request(); want != device.Anywhere {
		s.text.WriteString("in " + want.String() + ": ")
	}
	if !rt.SoftPlacement() {
		s.text.WriteString("hard placement: ")
	}
}

func (s *signature) shapes() string {
	var b []byte
	for _, t := range s.tensors {
		b = appendInts(b, t.shape)
	}
	return string(b)
}

func (s *signature) add(a any) {
	switch x := a.(type) {
	case nil:
		s.text.WriteString("None")
	case *Tensor:
		if x == nil {
			s.text.WriteString("None")
			return
		}
		s.text.WriteString(x.dtype.String() + "\x00")
		s.tensors = append(s.tensors, x)
	case *Variable:
		fmt.Fprintf(&s.text, "variable %d", x.id)
	case bool, string, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, float32, float64:
		fmt.Fprintf(&s.text, "%T %#v", x, x)
	case []*Tensor:
		s.text.WriteString("[")
		for _, e := range x {
			s.add(e)
			s.text.WriteString(" ")
		}
		s.text.WriteString("]")
	case []any:
		s.text.WriteString("[")
		for _, e := range x {
			s.add(e)
			s.text.WriteString(" ")
		}
		s.text.WriteString("]")
	case map[string]any:
		s.text.WriteString("{")
		for _, k := range slices.Sorted(maps.Keys(x)) {
			fmt.Fprintf(&s.text, "%q: ", k)
			s.add(x[k])
			s.text.WriteString(" ")
		}
		s.text.WriteString("}")
	default:
		fmt.Fprintf(&s.text, "%T %p", x, x)
	}
}

// detector finds functions that are traced too often.
type detector struct {
	calls    int
	per      []int // calls since each trace that still counts
	warnings int
}

const (
	history  = 10 // calls that count
	frequent = 5  // traces among them that are too many
	mostWarn = 2  // warnings of one function
)

func (d *detector) hit() {
	d.calls++
	if n := len(d.per); n > 0 {
		d.per[n-1]++
	}
}

// traced notes a call that traced, and says whether to warn.
func (d *detector) traced() bool {
	d.calls++
	d.per = append(d.per, 1)
	for d.calls > history {
		d.calls -= d.per[0]
		d.per = d.per[1:]
	}
	if len(d.per) < frequent || d.warnings == mostWarn {
		return false
	}
	d.warnings++
	return true
}
