package kernel_test

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"tideline/native/kernel"
	"tideline/shared/program"
)

func run(tb testing.TB, c *kernel.Call) {
	tb.Helper()
	if err := kernel.Run(c); err != nil {
		tb.Fatal(err)
	}
}

func TestEveryOpHasAKernelAndACase(t *testing.T) {
	have := map[program.Op]bool{}
	for i := range opCases {
		have[opCases[i].op] = true
	}
	ops := programOps(t)
	for _, o := range ops {
		if !kernel.Supported(o) {
			t.Errorf("%s has no kernel", o)
		}
		if !have[o] {
			t.Errorf("%s is in no case", o)
		}
	}
	if len(kernel.Ops()) != len(ops) {
		t.Errorf("%d kernels for %d ops", len(kernel.Ops()), len(ops))
	}
}

// everyCase calls f for all cases in all their types.
func everyCase(t *testing.T, f func(t *testing.T, oc *opCase, d program.DType)) {
	t.Helper()
	for i := range opCases {
		oc := &opCases[i]
		t.Run(oc.String(), func(t *testing.T) {
			for _, d := range oc.types() {
				t.Run(d.String(), func(t *testing.T) { f(t, oc, d) })
			}
		})
	}
}

func TestKernelsEqualTheSlowWay(t *testing.T) {
	everyCase(t, func(t *testing.T, oc *opCase, d program.DType) {
		t.Helper()
		r := oc.prepare(t, d)
		// A second run finds no zeros that a kernel forgot to write.
		for range 2 {
			r.fill()
			for i, b := range r.c.Out {
				if !r.aliased(i) {
					fillWith(b, 0xc7)
				}
			}
			for i := range r.c.Temp {
				r.c.Temp[i] = 0xff
			}
			want := oc.expect(r)
			run(t, r.c)
			if err := r.differs(want, tolerance(d)*max(1, oc.slack)); err != nil {
				t.Error(err)
			}
		}
	})
}

// aliased says whether output i is an input's or a variable's own memory.
func (r *ready) aliased(i int) bool {
	def, err := program.Lookup(r.c.Node.Op)
	return err != nil || def.Alias || r.p.Values[r.c.Node.Outputs[i]].Variable != program.None
}

func fillWith(b []byte, x byte) {
	for i := range b {
		b[i] = x
	}
}

// snapshot is all that a call leaves.
func (r *ready) snapshot() (all []byte) {
	for i, id := range r.c.Node.Outputs {
		all = append(all, r.c.Out[i][:r.p.Values[id].Bytes()]...)
	}
	for i, id := range r.ids {
		all = append(all, r.c.In[i][:r.p.Values[id].Bytes()]...)
	}
	return all
}

func TestResultsAreTheSameOnAnyNumberOfCores(t *testing.T) {
	everyCase(t, func(t *testing.T, oc *opCase, d program.DType) {
		t.Helper()
		r := oc.prepare(t, d)
		whole := func() []byte {
			defer kernel.LargePieces()()
			r.fill()
			run(t, r.c)
			return r.snapshot()
		}()
		defer kernel.SmallPieces()()
		for _, cores := range []int{1, 3} {
			was := runtime.GOMAXPROCS(cores)
			r.fill()
			run(t, r.c)
			runtime.GOMAXPROCS(was)
			if !bytes.Equal(r.snapshot(), whole) {
				t.Errorf("another result in small pieces on %d cores", cores)
			}
		}
	})
}

func TestForwardableKernelsAreRightInPlace(t *testing.T) {
	type way struct {
		op    program.Op
		input int
	}
	tried := map[way]bool{}
	everyCase(t, func(t *testing.T, oc *opCase, d program.DType) {
		t.Helper()
		def, err := program.Lookup(oc.op)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range def.Forwardable {
			r := oc.prepare(t, d)
			if i >= len(r.ids) {
				continue
			}
			in, out := &r.p.Values[r.ids[i]], &r.p.Values[r.c.Node.Outputs[def.ForwardOutput]]
			if in.DType != out.DType || in.Shape.Elements() != out.Shape.Elements() {
				continue // an executor would not forward it either
			}
			run(t, r.c)
			var want [][]byte
			for k, id := range r.c.Node.Outputs {
				want = append(want, slices.Clone(r.c.Out[k][:r.p.Values[id].Bytes()]))
			}
			r.fill()
			r.c.Out[def.ForwardOutput] = r.c.In[i]
			run(t, r.c)
			for k, id := range r.c.Node.Outputs {
				if !bytes.Equal(r.c.Out[k][:r.p.Values[id].Bytes()], want[k]) {
					t.Errorf("over its input %d, output %d is another", i, k)
				}
			}
			tried[way{oc.op, i}] = true
		}
	})
	for _, o := range programOps(t) {
		def, err := program.Lookup(o)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, i := range def.Forwardable {
			if !tried[way{o, i}] {
				t.Errorf("%s was not tried in place of its input %d", o, i)
			}
		}
		if def.Alias && len(def.Forwardable) > 0 {
			t.Errorf("%s both aliases and forwards", o)
		}
	}
}

func TestKernelsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("pools keep nothing for sure under the race detector")
	}
	for i := range opCases {
		oc := &opCases[i]
		for _, d := range oc.types() {
			r := oc.prepare(t, d)
			if n := testing.AllocsPerRun(5, func() { run(t, r.c) }); n > 0 {
				t.Errorf("%s %s: %v allocations", oc, d, n)
			}
		}
	}
}

func TestSharedKernelsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("pools keep nothing for sure under the race detector")
	}
	defer kernel.SmallPieces()()
	for i := range opCases {
		oc := &opCases[i]
		for _, d := range oc.types() {
			r := oc.prepare(t, d)
			// A goroutine that has not gone to rest makes the next one be new, and
			// a pool may be emptied: rarely.
			var n float64
			for range 3 {
				if n = testing.AllocsPerRun(20, func() { run(t, r.c) }); n == 0 {
					break
				}
			}
			if n > 0 {
				t.Errorf("%s %s: %v allocations", oc, d, n)
			}
		}
	}
}
