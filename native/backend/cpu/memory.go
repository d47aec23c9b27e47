package cpu

import (
	"fmt"
	"slices"

	"tideline/native/kernel"
	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// Memory backs the address spaces of devices with host memory outside of the
// Go heap. Pages are committed when they are first touched, so a region of
// 14 GiB of which little is used costs little. The zero value is empty.
// Not safe for concurrent use.
type Memory struct {
	// Arithmetic may be set before the first Run.
	Arithmetic Arithmetic

	regions [][]region // by device, ascending by address
	call    kernel.Call
	// scratch serves kernels that were denied a workspace or run on the host,
	// which has none to ask for. Without any, a convolution would be computed
	// element by element, which takes this machine minutes where the modelled
	// one takes milliseconds.
	scratch []uint64
}

// Arithmetic is what kernels go by beside their inputs.
type Arithmetic struct {
	// Seed is the run's: dropout and its kin depend on it.
	Seed uint64
	// CheckNumerics ends the run at the first op that gives a NaN or an
	// infinity. The error names node, op, output and element, and wraps
	// kernel.ErrNotFinite. Every output is read once more for it.
	CheckNumerics bool
}

type region struct {
	addr uint64
	mem  []byte // what is mapped; its capacity is what was reserved
	// aside: addresses that were set aside, within which pages come and go.
	aside bool
}

func (r region) end() uint64 { return r.addr + uint64(len(r.mem)) }

// Open prepares for so many devices.
func (m *Memory) Open(devices int) { m.regions = make([][]region, devices) }

// host is the device whose allocator is one heap that grows: a block there
// may lie across two of its regions, so these must be one piece of memory.
const host event.DeviceID = 0

// Map backs bytes at addr.
func (m *Memory) Map(dev event.DeviceID, addr uint64, bytes int64) error {
	i := m.after(dev, addr)
	if i > 0 && m.regions[dev][i-1].aside && m.regions[dev][i-1].end() > addr {
		return nil
	}
	if dev == host && i > 0 && m.regions[dev][i-1].end() == addr {
		return m.extend(&m.regions[dev][i-1], bytes)
	}
	mem, err := m.reserve(bytes)
	if err != nil {
		return err
	}
	m.regions[dev] = slices.Insert(m.regions[dev], i, region{addr: addr, mem: mem})
	return nil
}

// Reserve sets addresses aside: what Map then puts behind them is one piece of
// memory, of which only what is touched costs anything.
func (m *Memory) Reserve(dev event.DeviceID, addr uint64, bytes int64) error {
	mem, err := m.reserve(bytes)
	if err == nil {
		m.regions[dev] = slices.Insert(m.regions[dev], m.after(dev, addr), region{addr, mem, true})
	}
	return err
}

// Unreserve gives up what Reserve set aside.
func (m *Memory) Unreserve(dev event.DeviceID, addr uint64, bytes int64) {
	m.remove(dev, addr, bytes, true)
}

func (m *Memory) reserve(bytes int64) ([]byte, error) {
	mem, err := reserve(bytes)
	if err != nil {
		return nil, fmt.Errorf("reserve %s of host memory: %w", event.FormatBytes(bytes), err)
	}
	return mem, nil
}

// extend makes a region longer, moving it when its reservation is used up.
func (m *Memory) extend(r *region, bytes int64) error {
	n := len(r.mem) + int(bytes)
	if n <= cap(r.mem) {
		r.mem = r.mem[:n]
		return nil
	}
	mem, err := m.reserve(2 * int64(n))
	if err != nil {
		return err
	}
	copy(mem, r.mem)
	release(r.mem[:cap(r.mem)])
	r.mem = mem[:n]
	return nil
}

// Unmap gives the memory of a region, or of several that touch, back to the
// system.
func (m *Memory) Unmap(dev event.DeviceID, addr uint64, bytes int64) {
	m.remove(dev, addr, bytes, false)
}

func (m *Memory) remove(dev event.DeviceID, addr uint64, bytes int64, aside bool) {
	end := addr + uint64(bytes)
	m.regions[dev] = slices.DeleteFunc(m.regions[dev], func(r region) bool {
		if r.addr < addr || r.end() > end || r.aside != aside {
			return false
		}
		release(r.mem[:cap(r.mem)])
		return true
	})
}

// Close gives everything back.
func (m *Memory) Close() {
	for _, list := range m.regions {
		for _, r := range list {
			release(r.mem[:cap(r.mem)])
		}
	}
	m.regions, m.scratch = nil, nil
}

// after is the index of the first region above addr.
func (m *Memory) after(dev event.DeviceID, addr uint64) int {
	i, _ := slices.BinarySearchFunc(m.regions[dev], addr, func(r region, a uint64) int {
		if r.addr <= a {
			return -1
		}
		return 1
	})
	return i
}

// Bytes is the memory of a Ref, or nil when it is not mapped as a whole.
func (m *Memory) Bytes(r exec.Ref) []byte {
	i := m.after(r.Device, r.Address)
	if i == 0 || r.Bytes == 0 {
		return nil
	}
	g := m.regions[r.Device][i-1]
	off := r.Address - g.addr
	if off > uint64(len(g.mem)) || uint64(r.Bytes) > uint64(len(g.mem))-off {
		return nil
	}
	return g.mem[off : off+uint64(r.Bytes) : off+uint64(r.Bytes)]
}

// Run computes a kernel. A panic in it is an error that names node and op.
func (m *Memory) Run(k *exec.Kernel) error {
	c := &m.call
	c.Program, c.Node, c.Temp = k.Program, k.Node, nil
	c.Seed, c.Step, c.CheckNumerics = m.Arithmetic.Seed, int64(k.Step), m.Arithmetic.CheckNumerics
	var err error
	if c.In, err = m.all(c.In[:0], k.In, k.Node.Name); err != nil {
		return err
	}
	if c.Out, err = m.all(c.Out[:0], k.Out, k.Node.Name); err != nil {
		return err
	}
	if k.Workspace.Bytes > 0 {
		c.Temp = m.Bytes(k.Workspace)
	} else if d, err := program.Lookup(k.Node.Op); err == nil && d.Workspace != nil {
		c.Temp = m.temporary(d.Workspace(k.Program, k.Node))
	}
	return kernel.Run(c)
}

func (m *Memory) temporary(bytes int64) []byte {
	if n := int(bytes+7) / 8; len(m.scratch) < n {
		m.scratch = make([]uint64, n)
	}
	return bytesOf(m.scratch)[:bytes]
}

func (m *Memory) all(dst [][]byte, refs []exec.Ref, op string) ([][]byte, error) {
	for _, r := range refs {
		b := m.Bytes(r)
		if b == nil && r.Bytes > 0 {
			return dst, fmt.Errorf("op %s: %d bytes at %#x of device %d are not mapped", op, r.Bytes, r.Address, r.Device)
		}
		dst = append(dst, b)
	}
	return dst, nil
}

// Copy moves the bytes of a transfer.
func (m *Memory) Copy(c *exec.Copy) error {
	from, to := m.Bytes(c.From), m.Bytes(c.To)
	if from == nil || len(from) != len(to) {
		return fmt.Errorf("copy of %d bytes from %#x of device %d to %#x of device %d: not mapped",
			c.From.Bytes, c.From.Address, c.From.Device, c.To.Address, c.To.Device)
	}
	copy(to, from)
	return nil
}
