//go:build cuda

package monitor

import (
	"fmt"
	"os"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Monitor sees the cards. Not safe for concurrent use.
type Monitor struct {
	lib    nvml.Interface
	driver string
}

// Open loads NVML. TIDELINE_NVML in the environment names another library.
func Open() (*Monitor, error) {
	var o []nvml.LibraryOption
	name := "libnvidia-ml.so.1"
	if s := os.Getenv("TIDELINE_NVML"); s != "" {
		name = s
		o = append(o, nvml.WithLibraryPath(s))
	}
	lib := nvml.New(o...)
	switch r := lib.Init(); r {
	case nvml.SUCCESS:
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("%w: %s of NVIDIA's driver is not on this machine", ErrUnavailable, name)
	default:
		return nil, fmt.Errorf("%w: %s does not start: %s", ErrUnavailable, name, lib.ErrorString(r))
	}
	m := &Monitor{lib: lib}
	if v, r := lib.SystemGetDriverVersion(); r == nvml.SUCCESS {
		m.driver = v
	}
	return m, nil
}

// Driver is the driver's version, such as 550.54.15, or "".
func (m *Monitor) Driver() string { return m.driver }

// Cards reads all cards, in the order of their bus ids.
func (m *Monitor) Cards() ([]Card, error) {
	n, r := m.lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, m.failed("count cards", r)
	}
	out := make([]Card, 0, n)
	for i := range n {
		c, err := m.card(i)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func (m *Monitor) card(i int) (Card, error) {
	c := Card{Index: i, Utilisation: Unknown, MemoryBusy: Unknown}
	d, r := m.lib.DeviceGetHandleByIndex(i)
	if r != nvml.SUCCESS {
		return c, m.failed(fmt.Sprintf("open card %d", i), r)
	}
	memory, r := d.GetMemoryInfo()
	if r != nvml.SUCCESS {
		return c, m.failed(fmt.Sprintf("read the memory of card %d", i), r)
	}
	c.Total, c.Used, c.Free = int64(memory.Total), int64(memory.Used), int64(memory.Free)
	// What follows some cards and containers do not tell.
	if s, r := d.GetName(); r == nvml.SUCCESS {
		c.Name = s
	}
	if s, r := d.GetUUID(); r == nvml.SUCCESS {
		c.UUID = s
	}
	if p, r := d.GetPciInfo(); r == nvml.SUCCESS {
		c.PCI = fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device)
	}
	if u, r := d.GetUtilizationRates(); r == nvml.SUCCESS {
		c.Utilisation, c.MemoryBusy = int(u.Gpu), int(u.Memory)
	}
	c.Processes = processes(d)
	return c, nil
}

// processes are those that compute on a card and those that draw on it; one
// that does both is told once.
func processes(d nvml.Device) []Process {
	var out []Process
	seen := map[uint32]bool{}
	for _, list := range []func() ([]nvml.ProcessInfo, nvml.Return){d.GetComputeRunningProcesses, d.GetGraphicsRunningProcesses} {
		infos, r := list()
		if r != nvml.SUCCESS {
			continue
		}
		for _, p := range infos {
			if seen[p.Pid] {
				continue
			}
			seen[p.Pid] = true
			bytes := int64(p.UsedGpuMemory)
			if bytes < 0 { // all bits set: not available
				bytes = Unknown
			}
			out = append(out, Process{PID: int(p.Pid), Name: System.Name(int(p.Pid)), Bytes: bytes})
		}
	}
	return out
}

func (m *Monitor) failed(what string, r nvml.Return) error {
	return fmt.Errorf("%s: %s", what, strings.ToLower(m.lib.ErrorString(r)))
}

// Close lets the library go.
func (m *Monitor) Close() { m.lib.Shutdown() }
