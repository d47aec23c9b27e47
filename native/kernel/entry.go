package kernel

import (
	"fmt"
	"sync"

	"tideline/shared/program"
)

// entry is how an op is computed: phase after phase, each of which may be
// shared among the cores.
type entry struct {
	// check looks at what the inputs hold, before anything is written.
	check  func(c *Call) error
	phases []phase
	// raw kernels look at the types themselves. The others compute in one
	// type; halves are widened for them.
	raw bool
	// writes is how many of the leading inputs the op changes.
	writes int
	// skip says that there is nothing to do.
	skip func(c *Call) bool

	// The functions of elementwise ops, by type.
	unary  unary
	binary binary
}

// body computes units [from, to) of a phase.
type body func(c *Call, from, to int)

// phase is a step of a kernel.
type phase struct {
	// units is the number of pieces that can be computed apart; nil is for one.
	units func(c *Call) int
	// weight is the nanoseconds that an element takes, roughly; 0 counts as 1.
	weight int
	// The bodies by type. A raw kernel has only f32.
	f32, f64, i32, i64 body
}

// compute runs the phases in the type that the op's values ask for.
func (c *Call) compute() error {
	if c.entry.skip != nil && c.entry.skip(c) {
		return nil
	}
	if c.entry.raw {
		return c.run(program.Float32)
	}
	t, half, err := c.computeType()
	if err != nil {
		return err
	}
	if half {
		return c.widened()
	}
	return c.run(t)
}

// computeType is float32 or float64 when any value is floating, and else the
// type of the first.
func (c *Call) computeType() (t program.DType, half bool, err error) {
	var seen [program.Bool + 1]bool
	for _, v := range c.Node.Inputs {
		seen[c.Program.Values[v].DType] = true
	}
	for _, v := range c.Node.Outputs {
		seen[c.Program.Values[v].DType] = true
	}
	half = seen[program.Float16] || seen[program.BFloat16]
	switch {
	case seen[program.Float64] && (half || seen[program.Float32]):
		return 0, false, fmt.Errorf("float64 mixed with other floating types")
	case seen[program.Float64]:
		return program.Float64, false, nil
	case half || seen[program.Float32]:
		return program.Float32, half, nil
	case len(c.Node.Inputs) > 0:
		return c.inValue(0).DType, false, nil
	}
	return c.outValue(0).DType, false, nil
}

// run computes all phases in one type.
func (c *Call) run(t program.DType) error {
	for i := range c.entry.phases {
		ph := &c.entry.phases[i]
		var f body
		switch t {
		case program.Float32:
			f = ph.f32
		case program.Float64:
			f = ph.f64
		case program.Int32:
			f = ph.i32
		case program.Int64:
			f = ph.i64
		default:
		}
		if f == nil {
			return fmt.Errorf("no kernel for %s", t)
		}
		if ph.units == nil {
			f(c, 0, 1)
			continue
		}
		c.share(ph, f)
	}
	return nil
}

// share cuts a phase into pieces of some 20 microseconds.
func (c *Call) share(ph *phase, f body) {
	n := ph.units(c)
	if n == 0 {
		return
	}
	work := int64(n)
	for _, v := range c.Node.Inputs {
		work = max(work, c.Program.Values[v].Shape.Elements())
	}
	for _, v := range c.Node.Outputs {
		work = max(work, c.Program.Values[v].Shape.Elements())
	}
	work *= int64(max(1, ph.weight))
	pieces := work / pieceNanos
	if pieces < 2 || n < 2 {
		f(c, 0, n)
		return
	}
	j := takeJob()
	j.call.c, j.call.f = c, f
	j.split(&j.call, n, max(1, int(int64(n)/pieces)))
}

// pieceNanos is the least work that is given to a core. Tests make it small.
var pieceNanos int64 = 20_000

// callWork makes a phase the work of a job.
type callWork struct {
	c *Call
	f body
}

func (w *callWork) do(from, to int) { w.f(w.c, from, to) }

// Units of phases.

func outElements(c *Call) int { return int(c.outValue(0).Shape.Elements()) }
func inElements(c *Call) int  { return int(c.inValue(0).Shape.Elements()) }

// inRows is the number of rows along the last dimension of input 0.
func inRows(c *Call) int {
	v := c.inValue(0)
	return int(v.Shape.Elements()) / max(1, last(v))
}

// inLast is the extent of input 0's last dimension.
func inLast(c *Call) int { return last(c.inValue(0)) }

// shadow is a call in float32 that stands for one with halves.
type shadow struct {
	call    Call
	in, out [][]byte
	mem     []float32
}

var shadows = sync.Pool{New: func() any { return new(shadow) }}

// widened computes with float32 copies of the half-precision values, and
// rounds what it wrote.
func (c *Call) widened() error {
	s := shadows.Get().(*shadow)
	defer shadows.Put(s)
	need := int64(0)
	for _, v := range c.Node.Inputs {
		need += c.Program.Values[v].Shape.Elements()
	}
	for _, v := range c.Node.Outputs {
		need += c.Program.Values[v].Shape.Elements()
	}
	if int64(cap(s.mem)) < need {
		s.mem = make([]float32, need)
	}
	free := s.mem[:need]
	take := func(v *program.Value) []float32 {
		n := v.Shape.Elements()
		m := free[:n]
		free = free[n:]
		return m
	}
	s.call = *c
	s.in, s.out = s.in[:0], s.out[:0]
	for i, b := range c.In {
		if v := c.inValue(i); isHalf(v.DType) {
			m := take(v)
			widen(m, elements[uint16](b), v.DType)
			b = Bytes(m)
		}
		s.in = append(s.in, b)
	}
	for i, b := range c.Out {
		if v := c.outValue(i); isHalf(v.DType) {
			b = Bytes(take(v))
		}
		s.out = append(s.out, b)
	}
	s.call.In, s.call.Out = s.in, s.out
	if err := s.call.run(program.Float32); err != nil {
		return err
	}
	for i := range c.entry.writes {
		if v := c.inValue(i); isHalf(v.DType) {
			round(elements[uint16](c.In[i])[:v.Shape.Elements()], Floats(s.in[i]), v.DType)
		}
	}
	for i := range c.Out {
		if v := c.outValue(i); isHalf(v.DType) {
			round(elements[uint16](c.Out[i])[:v.Shape.Elements()], Floats(s.out[i]), v.DType)
		}
	}
	s.call = Call{}
	clear(s.in)
	clear(s.out)
	return nil
}
