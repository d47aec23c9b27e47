package runtime

import (
	"tideline/protocol/event"
	"tideline/shared/device"
)

// The settings of tf.config. See device.Config for which error comes when;
// here each takes effect for the whole process.

// PhysicalDevices lists the machine's devices of a type ("" for all), invisible
// ones too. It initialises nothing.
func (rt *Runtime) PhysicalDevices(typ string) []device.Physical {
	return rt.config.PhysicalDevices(typ)
}

// Visible lists what the program may see.
func (rt *Runtime) Visible(typ string) []device.Physical {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.Visible(typ)
}

// SetVisible lets the program see only these devices of a type.
func (rt *Runtime) SetVisible(typ string, devices ...device.Physical) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SetVisible(typ, devices...)
}

// MemoryGrowth is a GPU's setting.
func (rt *Runtime) MemoryGrowth(p device.Physical) (device.Growth, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.MemoryGrowth(p)
}

// SetMemoryGrowth lets a GPU's pool grow as needed.
func (rt *Runtime) SetMemoryGrowth(p device.Physical, on bool) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SetMemoryGrowth(p, on)
}

// Logical is how a device is to be cut.
func (rt *Runtime) Logical(p device.Physical) (list []device.LogicalConfig, ok bool, err error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.Logical(p)
}

// SetLogical cuts a device into logical ones.
func (rt *Runtime) SetLogical(p device.Physical, list ...device.LogicalConfig) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SetLogical(p, list...)
}

// SetLogicalCPUs cuts the CPU into n.
func (rt *Runtime) SetLogicalCPUs(n int) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SetLogicalCPUs(n)
}

// Details are what the driver says of a physical device.
func (rt *Runtime) Details(p device.Physical) (device.Details, error) { return rt.config.Details(p) }

// Threads are the numbers of threads within and between ops.
func (rt *Runtime) Threads() (intra, inter int) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.Threads()
}

// SetIntraOp sets the threads within an op, before initialisation.
func (rt *Runtime) SetIntraOp(n int) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SetIntraOp(n)
}

// SetInterOp sets the threads between ops, before initialisation.
func (rt *Runtime) SetInterOp(n int) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SetInterOp(n)
}

// SoftPlacement says whether an op may run elsewhere than asked.
func (rt *Runtime) SoftPlacement() bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.SoftPlacement(false)
}

// SetSoftPlacement may be called at any time; later ops and later traces of
// functions go by it.
func (rt *Runtime) SetSoftPlacement(on bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.config.SetSoftPlacement(on)
}

// SetLogPlacement makes the runtime log where each new kernel runs.
func (rt *Runtime) SetLogPlacement(on bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.config.General.LogPlacement = on
}

// RunFunctionsEagerly lets functions run op by op instead of being traced.
func (rt *Runtime) RunFunctionsEagerly(on bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.config.General.RunFunctionsEagerly = on
}

// SetOptimizer merges switches of the graph optimizer, by the names of
// tf.config.optimizer, into those set: for functions traced later.
func (rt *Runtime) SetOptimizer(options map[string]bool) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.config.SetOptimizer(options)
}

// EnableOpDeterminism makes random ops without a seed an error. Kernels here
// are deterministic in any case.
func (rt *Runtime) EnableOpDeterminism() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.config.General.Determinism = true
}

// GPUOptions gives access to the raw options below the settings: fraction,
// reserve rule, interconnect and the like. What is changed after
// initialisation has no effect.
func (rt *Runtime) GPUOptions() *device.Options { return &rt.config.Options }

// Import takes the settings of a ConfigProto, before initialisation.
func (rt *Runtime) Import(o device.Options) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.Import(o)
}

// Initialized says whether the devices were made.
func (rt *Runtime) Initialized() bool {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return rt.config.Initialized()
}

// LogicalDevices initialises the runtime and lists its devices of a type ("":
// all), CPUs first.
func (rt *Runtime) LogicalDevices(typ string) ([]*device.Logical, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.start(); err != nil {
		return nil, err
	}
	var out []*device.Logical
	for _, l := range rt.devices {
		if typ == "" || l.Name.Type == typ {
			out = append(out, l)
		}
	}
	return out, nil
}

// MemoryInfo are the bytes of a device's allocator: chunks, with what rounding
// and splitting waste.
type MemoryInfo struct{ Current, Peak int64 }

// MemoryInfo is get_memory_info: it initialises the runtime. ValueError: the
// name cannot be read, does not stand for one device, or for one without
// figures (a CPU, unless Options.CPUMemoryStats).
func (rt *Runtime) MemoryInfo(name string) (MemoryInfo, error) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	dev, err := rt.statistics(name)
	if err != nil {
		return MemoryInfo{}, err
	}
	st := rt.run.Stats(dev)
	return MemoryInfo{st.InUse, st.PeakInUse}, nil
}

// MemoryUsage is the deprecated get_memory_usage: the current bytes.
func (rt *Runtime) MemoryUsage(name string) (int64, error) {
	m, err := rt.MemoryInfo(name)
	return m.Current, err
}

// ResetPeak is reset_memory_stats: the peak becomes the current bytes, counts
// and the largest allocation 0. Errors as MemoryInfo.
func (rt *Runtime) ResetPeak(name string) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	dev, err := rt.statistics(name)
	if err == nil {
		rt.run.ClearStats(dev)
	}
	return err
}

func (c *core) statistics(name string) (event.DeviceID, error) {
	if err := c.start(); err != nil {
		return 0, err
	}
	i, err := device.FindOne(c.devices, name)
	if err != nil {
		return 0, err
	}
	dev := event.DeviceID(i)
	if (c.devices[i].IsHost() && !c.o.CPUMemoryStats) || !c.run.HasMemory(dev) {
		return 0, &Error{Kind: device.ValueError, Device: c.devices[i].Name.Short(), Setting: "memory info", Message: "the device's allocator keeps no statistics"}
	}
	return dev, nil
}
