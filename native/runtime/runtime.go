package runtime

import (
	"slices"
	"strconv"
	"sync"

	"tideline/native/backend/vgpu"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// Runtime is a context: what one goroutine works in.
type Runtime struct {
	*core
	scopes []*Scope // device scopes, outermost first
	policy CopyPolicy
	tapes  []*Tape
	tidies []*tidy
	trace  *trace // set while a function's body is traced
}

// core is what all contexts of a process share.
type core struct {
	mu      sync.Mutex
	o       Options
	config  *device.Config
	process *device.Process
	strings *event.Strings

	// Set by initialisation.
	devices []*device.Logical
	run     *exec.Runtime
	order   []event.DeviceID // candidates for an op, best first
	kernels map[string]*kernel
	key     []byte // scratch for the keys of kernels
	scalars map[scalar]*handle

	variables []program.Variable // by exec's id, arguments of functions among them
	uid       uint64
	warnings  []string
	garbage   garbage
	queue     queue
	closed    bool
}

// New returns a fresh context. Nothing is initialised: settings may be changed
// until the first op or list of logical devices.
func New(o Options) (*Runtime, error) {
	hw, err := o.cards()
	if err != nil {
		return nil, err
	}
	if o.Strings == nil {
		o.Strings = new(event.Strings)
	}
	if o.Backend == nil {
		o.Backend = vgpu.New()
	}
	if o.Process == nil {
		o.Process = new(device.Process)
	}
	c := &core{
		o: o, config: device.NewConfig(hw, o.Env), process: o.Process, strings: o.Strings,
		kernels: map[string]*kernel{}, scalars: map[scalar]*handle{},
	}
	if err := c.config.SetIntraOp(o.IntraOp); err != nil {
		return nil, err
	}
	if err := c.config.SetInterOp(o.InterOp); err != nil {
		return nil, err
	}
	return &Runtime{core: c, policy: o.CopyPolicy}, nil
}

// Fork is another context of the same process, for another goroutine: without
// open scopes or tapes, with the same copy policy.
func (rt *Runtime) Fork() *Runtime { return &Runtime{core: rt.core, policy: rt.policy} }

// WithCopyPolicy is a Fork with another policy.
func (rt *Runtime) WithCopyPolicy(p CopyPolicy) *Runtime { return &Runtime{core: rt.core, policy: p} }

// CopyPolicy is this context's policy; SetCopyPolicy changes it, at any time.
func (rt *Runtime) CopyPolicy() CopyPolicy { return rt.policy }

// SetCopyPolicy changes this context's policy and no other's.
func (rt *Runtime) SetCopyPolicy(p CopyPolicy) { rt.policy = p }

// Close ends the process: all memory goes back to the cards. Tensors must not
// be used afterwards.
func (rt *Runtime) Close() {
	c := rt.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.run == nil {
		return
	}
	c.run.End(event.EndDone, "")
	c.run.Close()
	if a, err := c.config.Initialize(c.process); err == nil {
		a.Release()
	}
}

// Where the address spaces of a process begin, as in any other run.
const (
	pinnedBase = 0x6000_0000_0000
	gpuBase    = 0x7000_0000_0000
	gpuStride  = 1 << 38
)

// start initialises the runtime at its first use.
func (c *core) start() error {
	if c.closed {
		return &Error{Kind: device.FailedPrecondition, Setting: "runtime", Message: "is closed: make another with New"}
	}
	if c.run != nil {
		c.sweep()
		return nil
	}
	a, err := c.config.Initialize(c.process)
	if err != nil {
		return err
	}
	run, err := exec.New(exec.Config{
		Mode: exec.Graph, Devices: a.Devices, Backend: c.o.Backend, Strings: c.strings, Sink: c.o.Sink, Seed: c.o.Seed,
		ForceGPUCompatible: c.config.Options.ForceGPUCompatible, DeferredDeletion: c.config.Options.DeferredBytes,
	})
	if err != nil {
		return err
	}
	c.devices = a.Devices
	for i, l := range c.devices {
		run.Emit(&event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(i), Text: c.strings.ID(l.Facts().Encode()), Step: event.NoStep})
	}
	for _, text := range a.Log {
		run.Log(0, 0, text)
	}
	c.run = run
	for _, text := range a.Warnings {
		c.warn(text)
	}
	c.rank()
	return c.attach(a)
}

func (c *core) warn(text string) {
	c.warnings = append(c.warnings, text)
	c.run.Log(0, event.Warning, text)
}

// Warnings are what the runtime warned of so far.
func (rt *Runtime) Warnings() []string {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return slices.Clone(rt.warnings)
}

// rank sorts the devices that run ops: GPUs before CPUs, then by full name as
// text, so that GPU:10 comes before GPU:2.
func (c *core) rank() {
	c.order = c.order[:0]
	for i, l := range c.devices {
		if l.Name.Type != "TPU" { // takes compiled programs only
			c.order = append(c.order, event.DeviceID(i))
		}
	}
	slices.SortStableFunc(c.order, func(a, b event.DeviceID) int {
		x, y := c.devices[a], c.devices[b]
		switch {
		case x.IsHost() != y.IsHost():
			if y.IsHost() {
				return -1
			}
			return 1
		case x.Name.String() < y.Name.String():
			return -1
		}
		return 1
	})
}

// attach gives every device its allocators.
func (c *core) attach(a *device.Assembly) error {
	back := func(_ event.DeviceID, _ bool, s alloc.SubAllocator) alloc.SubAllocator { return s }
	if d, ok := c.o.Backend.(exec.Driver); ok {
		back = d.Back
	}
	err := c.run.Attach(0, false, func(o alloc.Observer) (alloc.Allocator, error) {
		return system.New(system.Options{Observer: o}), nil
	}, event.Fields{{Key: "name", Value: "cpu"}, {Key: "kind", Value: "system"}})
	if err != nil {
		return err
	}
	c.run.ShareHost()
	if len(a.Of("GPU")) == 0 {
		return nil
	}
	failures := new(alloc.FailureLog)
	pinned, err := alloc.NewSpace(alloc.SpaceOptions{Base: pinnedBase})
	if err != nil {
		return err
	}
	err = c.run.Attach(0, true, func(o alloc.Observer) (alloc.Allocator, error) {
		return bfc.New(back(0, true, pinned), bfc.Options{Name: "gpu_host_bfc", Limit: a.HostLimit, Growth: a.HostGrowth, Observer: o, Failures: failures})
	}, bfcFacts("gpu_host_bfc", a.HostGrowth))
	if err != nil {
		return err
	}
	for i, l := range c.devices {
		if l.Name.Type != "GPU" {
			continue
		}
		space, err := l.Space(gpuBase + uint64(l.Name.ID)*gpuStride)
		if err != nil {
			return err
		}
		name := "GPU_" + strconv.Itoa(l.Name.ID) + "_bfc"
		err = c.run.Attach(event.DeviceID(i), false, func(o alloc.Observer) (alloc.Allocator, error) {
			return bfc.New(back(event.DeviceID(i), false, space), bfc.Options{
				Name: name, Limit: l.Limit, Growth: l.Growth, GarbageCollection: true, Observer: o, Failures: failures,
			})
		}, bfcFacts(name, l.Growth))
		if err != nil {
			return err
		}
	}
	return nil
}

func bfcFacts(name string, growth bool) event.Fields {
	return event.Fields{
		{Key: "name", Value: name},
		{Key: "kind", Value: "bfc"},
		{Key: "profile", Value: bfc.Current.String()},
		{Key: "growth", Value: strconv.FormatBool(growth)},
	}
}
