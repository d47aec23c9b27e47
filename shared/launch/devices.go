package launch

import (
	"fmt"
	"slices"
	"strconv"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/device/jax"
	"tideline/shared/exec"
)

// Where the address spaces of a process begin. Numbers of this size are what
// drivers hand out; nothing depends on them but that they do not overlap.
const (
	pinnedBase = 0x6000_0000_0000
	gpuBase    = 0x7000_0000_0000
	gpuStride  = 1 << 38
	// othersStride holds what drivers that map pages set aside for one device.
	othersStride = 1 << 42
)

// hardware is what a run holds on the machine's cards.
type hardware struct {
	*device.Assembly
	cards []*device.Card // by device of the workload
	found []int64        // by device of the workload: what other runs held on its card
	held  []int64        // by device of the workload: what it says that others hold
	// collect says whether pools give empty regions back under pressure.
	collect bool
	jax     bool      // the process is one of JAX's
	served  []*served // by logical device; nil for the host
}

// assemble makes the run's devices as TensorFlow does: what is there, what of
// that is visible, contexts on all visible cards, and the limits from what is
// free after that.
func assemble(w *api.Workload, m *device.Machine) (*hardware, error) {
	h := &hardware{Assembly: new(device.Assembly), collect: true}
	env := device.Env(w.Variable)
	if v, ok := env("TF_ENABLE_GPU_GARBAGE_COLLECTION"); ok && v == "false" {
		h.collect = false
	}
	asked, err := h.asJAX(w, m)
	if err != nil {
		return nil, err
	}
	w = asked
	if err := h.find(w, m); err != nil {
		h.release()
		return nil, err
	}
	c, err := h.configure(w, env)
	if err == nil {
		h.Assembly, err = c.Initialize(nil)
	}
	if err != nil {
		h.Assembly = new(device.Assembly)
		h.release()
		return nil, err
	}
	h.serve(w)
	return h, nil
}

// find gets the cards and takes off them what others hold.
func (h *hardware) find(w *api.Workload, m *device.Machine) error {
	for i := range w.Devices {
		d := &w.Devices[i]
		bad := func(err error) error { return fmt.Errorf("devices.%d: %w", i, err) }
		p, ok := m.Find(d.Preset)
		if d.Kind == "tpu" {
			p, ok = device.FindTPU(d.Preset)
		}
		if !ok {
			return bad(fmt.Errorf("unknown %s preset %q", d.Kind, d.Preset))
		}
		c, err := m.Card(d.Card, p)
		if err != nil {
			return bad(err)
		}
		found := c.Total() - c.Free()
		if !c.Hold(d.Held) {
			return bad(fmt.Errorf("card %s has %s free, too little for what other processes hold (%s)", c.Name, event.FormatBytes(c.Free()), event.FormatBytes(d.Held)))
		}
		h.cards, h.found, h.held = append(h.cards, c), append(h.found, found), append(h.held, d.Held)
	}
	return nil
}

// configure says of the cards what the workload says, in the calls that a
// program would make.
func (h *hardware) configure(w *api.Workload, env device.Env) (*device.Config, error) {
	var hw device.Hardware
	for i, c := range h.cards {
		if w.Devices[i].Kind == "tpu" {
			hw.TPUs = append(hw.TPUs, c)
		} else {
			hw.GPUs = append(hw.GPUs, c)
		}
	}
	c := device.NewConfig(hw, env)
	for _, k := range []struct {
		typ   string
		cards []*device.Card
	}{{"GPU", device.CUDAVisible(hw.GPUs, env)}, {"TPU", hw.TPUs}} {
		var visible []device.Physical
		for i, card := range k.cards {
			d := &w.Devices[slices.Index(h.cards, card)]
			if d.Hidden {
				continue
			}
			visible = append(visible, device.Physical{Name: device.PhysicalName(k.typ, i), Type: k.typ})
			if v, _ := env("TF_FORCE_UNIFIED_MEMORY"); v == "1" || v == "true" {
				unified := *d
				unified.Unified = true
				d = &unified
			}
			if err := set(c, visible[len(visible)-1], d); err != nil {
				return nil, err
			}
		}
		if err := c.SetVisible(k.typ, visible...); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// set says of one GPU what its entry says. What TensorFlow has once for a
// process is the same in all entries.
func set(c *device.Config, p device.Physical, d *api.Device) error {
	if p.Type != "GPU" {
		return nil
	}
	limits := d.Logical
	if d.MemoryLimit > 0 {
		limits = []int64{d.MemoryLimit}
	}
	if len(limits) > 0 {
		cuts := make([]device.LogicalConfig, len(limits))
		for i, l := range limits {
			cuts[i].Limit = l
		}
		if err := c.SetLogical(p, cuts...); err != nil {
			return err
		}
	} else if err := c.SetMemoryGrowth(p, d.Growth); err != nil {
		return err
	}
	o := &c.Options
	o.Fraction, o.UseUnifiedMemory, o.NumVirtualPerGPU = d.Fraction, d.Unified, d.Virtual
	if d.ReserveRule == "tf2.1" {
		o.ReserveRule = device.ReserveTF21
	}
	switch d.Peer {
	case "nvlink":
		o.Interconnect = device.NVLink
	case "pcie":
		o.Interconnect = device.PCIe
	}
	return nil
}

// settings is the workload with what other runs held on the cards written
// down, so that a rerun elsewhere begins with the same free memory.
func (h *hardware) settings(w *api.Workload) *api.Workload {
	s := w.Clone()
	for i, found := range h.found {
		s.Devices[i].Held += found
	}
	return s
}

// release gives back everything that the run held outside its allocators.
func (h *hardware) release() {
	h.Release()
	for i, bytes := range h.held {
		h.cards[i].Hold(-bytes)
	}
	h.held = nil
}

// tell emits the facts of every device.
func (h *hardware) tell(rt *exec.Runtime, strings *event.Strings) {
	for i, l := range h.Devices {
		e := event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(i), Text: strings.ID(l.Facts().Encode()), Step: event.NoStep}
		rt.Emit(&e)
	}
	for _, line := range h.Log {
		dev := slices.IndexFunc(h.Devices, func(l *device.Logical) bool { return !l.IsHost() && l.Created() == line })
		rt.Log(event.DeviceID(max(0, dev)), 0, line)
	}
	for _, line := range h.Warnings {
		rt.Log(0, event.Warning, line)
	}
}

// attach gives every device its allocators.
func (h *hardware) attach(rt *exec.Runtime, b exec.Backend) error {
	back := func(_ event.DeviceID, _ bool, s alloc.SubAllocator) alloc.SubAllocator { return s }
	if d, ok := b.(exec.Driver); ok {
		back = d.Back
	}
	err := rt.Attach(0, false, func(o alloc.Observer) (alloc.Allocator, error) {
		return system.New(system.Options{Observer: o}), nil
	}, event.Fields{{Key: "name", Value: "cpu"}, {Key: "kind", Value: "system"}})
	if err != nil || len(h.Devices) == 1 {
		return err
	}
	failures := new(alloc.FailureLog)
	pinned, err := alloc.NewSpace(alloc.SpaceOptions{Base: pinnedBase})
	if err != nil {
		return err
	}
	host := "gpu_host_bfc"
	if h.jax {
		host, h.HostLimit, h.HostGrowth = jax.HostName, jax.HostLimit, true
	}
	err = rt.Attach(0, true, func(o alloc.Observer) (alloc.Allocator, error) {
		return bfc.New(back(0, true, pinned), bfc.Options{Name: host, Limit: h.HostLimit, Growth: h.HostGrowth, Observer: o, Failures: failures})
	}, bfcFacts(host, bfc.Current, h.HostGrowth))
	if err != nil {
		return err
	}
	base := uint64(gpuBase)
	for i, l := range h.Devices[1:] {
		id := event.DeviceID(i + 1)
		s := h.served[id]
		if s.kind == nil || s.kind.Name != bfcKind {
			if err := s.attach(rt, b, id, l, base); err != nil {
				return fmt.Errorf("allocator of %s: %w", l.Name.Short(), err)
			}
			base += othersStride
			continue
		}
		space, err := l.Space(base)
		if err != nil {
			return err
		}
		base += gpuStride * uint64(1+l.Limit/gpuStride) // a unified pool may be larger than any card
		o := bfc.Options{
			Name: title(l) + "_bfc", Limit: l.Limit, Growth: l.Growth, GarbageCollection: h.collect, Failures: failures,
		}
		s.bfc(&o)
		err = rt.Attach(id, false, func(obs alloc.Observer) (alloc.Allocator, error) {
			o.Observer = obs
			return bfc.New(back(id, false, space), o)
		}, s.told(bfcFacts(o.Name, o.Profile, l.Growth)))
		if err != nil {
			return fmt.Errorf("allocator of %s: %w", l.Name.Short(), err)
		}
	}
	return nil
}

func bfcFacts(name string, profile bfc.Profile, growth bool) event.Fields {
	return event.Fields{
		{Key: "name", Value: name},
		{Key: "kind", Value: bfcKind},
		{Key: "profile", Value: profile.String()},
		{Key: "growth", Value: strconv.FormatBool(growth)},
	}
}
