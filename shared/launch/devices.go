package launch

import (
	"fmt"
	"strconv"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/system"
	"tideline/shared/device"
	"tideline/shared/exec"
)

// Where the address spaces of a process begin. Numbers of this size are what
// drivers hand out; nothing depends on them but that they do not overlap.
const (
	pinnedBase = 0x6000_0000_0000
	gpuBase    = 0x7000_0000_0000
	gpuStride  = 1 << 38
)

// pinnedLimit is TensorFlow's limit of gpu_host_bfc.
const pinnedLimit = 131072 << 20

// hardware is what a run holds on the machine's cards.
type hardware struct {
	logical []*device.Logical
	holds   []hold
	found   []int64 // by device of the workload: what other runs held on its card
}

type hold struct {
	card  *device.Card
	bytes int64
}

// assemble makes the run's devices: first the contexts on all cards, then the
// limits from what is free after that, as TensorFlow does.
func assemble(w *api.Workload, m *device.Machine) (*hardware, error) {
	h := &hardware{logical: []*device.Logical{{Name: device.Local("CPU", 0), Model: device.HostModel()}}}
	cards := make([]*device.Card, len(w.Devices))
	for i := range w.Devices {
		c, err := h.card(&w.Devices[i], m)
		if err != nil {
			h.release()
			return nil, fmt.Errorf("devices.%d: %w", i, err)
		}
		cards[i] = c
	}
	for i := range w.Devices {
		h.add(&w.Devices[i], cards[i])
	}
	return h, nil
}

// card finds the card and takes off it what others hold and what this run's
// driver context needs.
func (h *hardware) card(d *api.Device, m *device.Machine) (*device.Card, error) {
	p, ok := m.Find(d.Preset)
	if !ok {
		return nil, fmt.Errorf("unknown device preset %q", d.Preset)
	}
	c, err := m.Card(d.Card, p)
	if err != nil {
		return nil, err
	}
	found := int64(0)
	if !h.contextOf(c) {
		found = c.Total() - c.Free()
	}
	h.found = append(h.found, found)
	if err := h.hold(c, d.Held, "what other processes hold"); err != nil {
		return nil, err
	}
	return c, h.context(c)
}

func (h *hardware) hold(c *device.Card, bytes int64, what string) error {
	if bytes == 0 {
		return nil
	}
	if !c.Hold(bytes) {
		return fmt.Errorf("card %s has %s free, too little for %s (%s)", c.Name, event.FormatBytes(c.Free()), what, event.FormatBytes(bytes))
	}
	h.holds = append(h.holds, hold{c, bytes})
	return nil
}

// context makes the run's driver context on a card, once.
func (h *hardware) context(c *device.Card) error {
	if h.contextOf(c) {
		return nil
	}
	bytes := c.Preset.Context.Value
	if err := h.hold(c, bytes, "a driver context"); err != nil {
		return err
	}
	h.holds = append(h.holds, hold{c, contextMark})
	return nil
}

// contextMark stands in hardware.holds for "this card has its context".
const contextMark = -1

func (h *hardware) contextOf(c *device.Card) bool {
	for _, x := range h.holds {
		if x.card == c && x.bytes == contextMark {
			return true
		}
	}
	return false
}

// settings is the workload with what other runs held on the cards written
// down, so that a rerun elsewhere begins with the same free memory.
func (h *hardware) settings(w *api.Workload) *api.Workload {
	s := w.Clone()
	for i, held := range h.found {
		s.Devices[i].Held += held
	}
	return s
}

// add makes the logical devices of one entry of the workload.
func (h *hardware) add(d *api.Device, c *device.Card) {
	free := c.Free()
	context := c.Preset.Context.Value
	held := max(0, c.Total()-free-context)
	limits, reserve := d.Logical, int64(0)
	alone := func(limit int64) int64 { return limit }
	switch {
	case len(limits) > 0:
	case d.MemoryLimit > 0:
		limits = []int64{d.MemoryLimit}
	default:
		limits = []int64{device.DefaultLimit(free, c.Reserve(free))}
		reserve = free - limits[0]
		alone = func(int64) int64 { return device.DefaultLimit(free+held, c.Reserve(free+held)) }
	}
	for _, limit := range limits {
		h.logical = append(h.logical, &device.Logical{
			Name: device.Local("GPU", len(h.logical)-1), Card: c, Model: c.Preset.Model(), Limit: limit, Alone: alone(limit),
			Growth: d.Growth, FreeNow: free, Context: context, Reserve: reserve, Held: held,
		})
	}
}

// release gives back everything that the run held outside its allocators.
func (h *hardware) release() {
	for _, x := range h.holds {
		if x.bytes != contextMark {
			x.card.Hold(-x.bytes)
		}
	}
	h.holds = nil
}

// tell emits the facts of every device.
func (h *hardware) tell(rt *exec.Runtime, strings *event.Strings) {
	for i, l := range h.logical {
		e := event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(i), Text: strings.ID(facts(l).Encode()), Step: event.NoStep}
		rt.Emit(&e)
		if !l.IsHost() {
			rt.Log(event.DeviceID(i), 0, fmt.Sprintf("Created device %s with %d MB memory: card %s, %s, compute capability %d.%d",
				l.Name, l.Limit>>20, l.Card.Name, l.Card.Preset.Title, l.Card.Preset.Major, l.Card.Preset.Minor))
		}
	}
}

// facts are the fields of a DeviceFacts event. Every figure of a preset comes
// with where it is from, under its key and ".source".
func facts(l *device.Logical) event.Fields {
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	f := event.Fields{{Key: "name", Value: "/device:" + l.Name.Type + ":" + strconv.Itoa(l.Name.ID)}, {Key: "full_name", Value: l.Name.String()}}
	if l.IsHost() {
		return append(f, event.Field{Key: "kind", Value: "cpu"}, event.Field{Key: "title", Value: "Host"})
	}
	p := l.Card.Preset
	f = append(
		f,
		event.Field{Key: "kind", Value: "gpu"},
		event.Field{Key: "title", Value: p.Title},
		event.Field{Key: "preset", Value: p.Name},
		event.Field{Key: "card", Value: l.Card.Name},
		event.Field{Key: "compute_capability", Value: strconv.Itoa(p.Major) + "." + strconv.Itoa(p.Minor)},
		event.Field{Key: "free", Value: num(l.FreeNow)},
		event.Field{Key: "limit", Value: num(l.Limit)},
		event.Field{Key: "held", Value: num(l.Held)},
		event.Field{Key: "growth", Value: strconv.FormatBool(l.Growth)},
		event.Field{Key: "reserve", Value: num(l.Card.Reserve(l.FreeNow))},
	)
	for _, x := range []struct {
		key string
		fig device.Figure
	}{
		{"total", p.Total},
		{"context", p.Context},
		{"flops", p.FLOPS},
		{"mem_bandwidth", p.MemBandwidth},
		{"h2d", p.H2D},
		{"d2h", p.D2H},
		{"peer", p.Peer},
	} {
		f = append(f, event.Field{Key: x.key, Value: num(x.fig.Value)}, event.Field{Key: x.key + ".source", Value: x.fig.From.String()})
	}
	return f
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
	if err != nil || len(h.logical) == 1 {
		return err
	}
	failures := new(alloc.FailureLog)
	pinned, err := alloc.NewSpace(alloc.SpaceOptions{Base: pinnedBase})
	if err != nil {
		return err
	}
	err = rt.Attach(0, true, func(o alloc.Observer) (alloc.Allocator, error) {
		return bfc.New(back(0, true, pinned), bfc.Options{Name: "gpu_host_bfc", Limit: pinnedLimit, Growth: true, Observer: o, Failures: failures})
	}, bfcFacts("gpu_host_bfc", true))
	if err != nil {
		return err
	}
	for i, l := range h.logical[1:] {
		space, err := l.Card.Space(gpuBase + uint64(i)*gpuStride)
		if err != nil {
			return err
		}
		name := "GPU_" + strconv.Itoa(i) + "_bfc"
		err = rt.Attach(event.DeviceID(i+1), false, func(o alloc.Observer) (alloc.Allocator, error) {
			return bfc.New(back(event.DeviceID(i+1), false, space), bfc.Options{
				Name: name, Limit: l.Limit, Growth: l.Growth, GarbageCollection: true, Observer: o, Failures: failures,
			})
		}, bfcFacts(name, l.Growth))
		if err != nil {
			return fmt.Errorf("allocator of %s: %w", l.Name.Short(), err)
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
