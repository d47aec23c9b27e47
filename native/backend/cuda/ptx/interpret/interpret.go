package interpret

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Memory is the device's memory: one piece, from an address on.
type Memory struct {
	Base  uint64
	Bytes []byte
}

func (m *Memory) at(addr uint64, n int) ([]byte, error) {
	if addr < m.Base || addr-m.Base > uint64(len(m.Bytes)) || uint64(len(m.Bytes))-(addr-m.Base) < uint64(n) {
		return nil, fmt.Errorf("illegal address: %d bytes at %#x", n, addr)
	}
	if addr%uint64(n) != 0 {
		return nil, fmt.Errorf("misaligned address: %d bytes at %#x", n, addr)
	}
	return m.Bytes[addr-m.Base:][:n], nil
}

// thread is the state of one thread: its registers by class, and where it is.
type thread struct {
	block      *block
	pc         int
	b32        []uint32
	b64        []uint64
	f32        []float32
	pred       []bool
	tid        [2]uint32
	done, wait bool
	err        error
}

type block struct {
	mem     *Memory
	shared  Memory
	args    []uint64
	ctaid   [2]uint32
	ntid    [2]uint32
	entry   *entry
	threads []thread
}

// maxSteps bounds how many instructions a thread runs, so that a loop that does
// not end fails instead.
const maxSteps = 50_000_000

// Launch runs an entry point over a grid of blocks.
func (m *Module) Launch(mem *Memory, name string, grid, threads [2]uint32, args []uint64) error {
	e := m.entries[name]
	if e == nil {
		return fmt.Errorf("the module has no entry %s", name)
	}
	if len(args) != len(e.params) {
		return fmt.Errorf("%s takes %d parameters, not %d", name, len(e.params), len(args))
	}
	n := int(threads[0] * threads[1])
	if n == 0 || n > 1024 || grid[0] == 0 || grid[1] == 0 || grid[1] > 65535 {
		return fmt.Errorf("%s: invalid extents %v x %v", name, grid, threads)
	}
	b := &block{mem: mem, args: args, ntid: threads, entry: e, threads: make([]thread, n)}
	b.shared.Bytes = make([]byte, e.shared)
	for i := range b.threads {
		t := &b.threads[i]
		t.block = b
		t.tid = [2]uint32{uint32(i) % threads[0], uint32(i) / threads[0]}
		t.b32, t.b64 = make([]uint32, e.regs['r']+1), make([]uint64, e.regs['d']+1)
		t.f32, t.pred = make([]float32, e.regs['f']+1), make([]bool, e.regs['p']+1)
	}
	for y := range grid[1] {
		for x := range grid[0] {
			b.ctaid = [2]uint32{x, y}
			if err := b.run(); err != nil {
				return fmt.Errorf("%s, block %v: %w", name, b.ctaid, err)
			}
		}
	}
	return nil
}

// run takes all threads from barrier to barrier.
func (b *block) run() error {
	for i := range b.shared.Bytes {
		b.shared.Bytes[i] = 0xA5 // nobody may count on zeros
	}
	for i := range b.threads {
		t := &b.threads[i]
		t.pc, t.done, t.wait = 0, false, false
	}
	for {
		waiting := 0
		for i := range b.threads {
			t := &b.threads[i]
			t.wait = false
			if err := t.run(); err != nil {
				return fmt.Errorf("thread %v, instruction %d: %w", t.tid, t.pc, err)
			}
			if t.wait {
				waiting++
			}
		}
		if waiting == 0 {
			return nil
		}
		for i := range b.threads {
			if b.threads[i].done {
				return fmt.Errorf("%d threads wait at a barrier that thread %v has left behind", waiting, b.threads[i].tid)
			}
		}
	}
}

func (t *thread) run() error {
	for steps := 0; !t.done && !t.wait; steps++ {
		if steps > maxSteps {
			return fmt.Errorf("still running after %d instructions", steps)
		}
		if t.pc >= len(t.block.entry.code) {
			return fmt.Errorf("ran off the end")
		}
		f := t.block.entry.code[t.pc]
		t.pc++
		f(t)
		if t.err != nil {
			err := t.err
			t.err = nil
			return err
		}
	}
	return nil
}

// space gives bytes of global or shared memory; a failed access ends the run.
func (t *thread) space(shared bool, addr uint64, n int) []byte {
	m := t.block.mem
	if shared {
		m = &t.block.shared
	}
	b, err := m.at(addr, n)
	if err != nil {
		t.err = err
		return make([]byte, n)
	}
	return b
}

func load(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	default:
		return binary.LittleEndian.Uint64(b)
	}
}

func save(b []byte, v uint64) {
	switch len(b) {
	case 1:
		b[0] = byte(v)
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

func bitsOf(f float32) uint64  { return uint64(math.Float32bits(f)) }
func floatOf(v uint64) float32 { return math.Float32frombits(uint32(v)) }
