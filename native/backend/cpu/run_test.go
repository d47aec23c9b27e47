package cpu

import (
	"errors"
	"strings"
	"testing"

	"tideline/native/kernel"
	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// oneOp is a memory of one page, and a kernel of op from its first bytes to
// the second half.
func oneOp(t *testing.T, op program.Op, at program.Attrs, n int64) (*Memory, *exec.Kernel) {
	t.Helper()
	b := program.NewBuilder("t", 1)
	b.Op(op, at, b.Input("x", program.Float32, program.Shape{n}))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := new(Memory)
	m.Open(1)
	t.Cleanup(m.Close)
	if err := m.Map(0, 0x10000, 1<<16); err != nil {
		t.Fatal(err)
	}
	k := &exec.Kernel{Program: p, Node: &p.Nodes[0], In: []exec.Ref{{Address: 0x10000, Bytes: 4 * n}}}
	for i, v := range p.Nodes[0].Outputs {
		k.Out = append(k.Out, exec.Ref{Address: 0x10000 + uint64(i+1)<<14, Bytes: p.Values[v].Bytes()})
	}
	return m, k
}

func TestCheckNumericsEndsAtTheFirstNaN(t *testing.T) {
	m, k := oneOp(t, program.OpLog, program.Attrs{}, 3)
	copy(kernel.Floats(m.Bytes(k.In[0])), []float32{1, -1, 0})
	if err := m.Run(k); err != nil {
		t.Fatal("without the check:", err)
	}
	m.Arithmetic.CheckNumerics = true
	err := m.Run(k)
	if !errors.Is(err, kernel.ErrNotFinite) || !strings.Contains(err.Error(), "node Log: Log: output 0: element 1 of float32[3] is NaN") {
		t.Errorf("error %v", err)
	}
}

func TestDropoutGoesBySeedAndStep(t *testing.T) {
	m, k := oneOp(t, program.OpDropout, program.Attrs{Value: 0.5}, 1000)
	mask := func(seed uint64, step int32) string {
		m.Arithmetic.Seed, k.Step = seed, step
		if err := m.Run(k); err != nil {
			t.Fatal(err)
		}
		return string(m.Bytes(k.Out[1]))
	}
	first := mask(1, 0)
	if first != mask(1, 0) {
		t.Error("the same step draws another mask")
	}
	if first == mask(1, 1) || first == mask(2, 0) {
		t.Error("another step or seed draws the same mask")
	}
}

func TestAFailingKernelEndsTheRunCleanly(t *testing.T) {
	m, k := oneOp(t, program.OpTanh, program.Attrs{}, 8)
	// A node that does not fit its values, as only a wrong program has it,
	// makes the kernel reach too far.
	node := *k.Node
	node.Op, node.Attrs.Axes = program.OpTranspose, []int64{99}
	k.Node = &node
	err := m.Run(k)
	if err == nil || !strings.Contains(err.Error(), "node Tanh: Transpose: the kernel failed") {
		t.Errorf("error %v", err)
	}
	b := New(nil)
	b.Set(Arithmetic{Seed: 3})
	b.memory.Open(1)
	defer b.Close()
	k.In[0].Device = event.DeviceID(0)
	if _, err := b.Launch(k); err == nil || !strings.Contains(err.Error(), "are not mapped") {
		t.Errorf("error %v", err)
	}
}
