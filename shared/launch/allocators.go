package launch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/system"
	"tideline/shared/alloc/torch"
	"tideline/shared/device"
	"tideline/shared/exec"
)

// bfcKind is the allocator that devices have unless the workload says another.
const bfcKind = api.DefaultAllocator

// served is what a logical device's memory is served by.
type served struct {
	kind     *kinds.Kind // nil for a TPU, whose memory has an allocator of its own
	settings []kinds.Setting
	// limited says that the workload names a limit.
	limited bool
}

// checkAllocators finds settings that a device's allocator cannot have.
func checkAllocators(w *api.Workload) (out api.Problems) {
	for i := range w.Devices {
		d := &w.Devices[i]
		if d.Type() != "GPU" {
			continue
		}
		if _, err := kinds.ByName(cmp.Or(d.Allocator, bfcKind)); err != nil {
			continue // Validate says so of the allocator; its options may be right
		}
		path := "devices." + strconv.Itoa(i) + ".allocator_options"
		s, err := serving(d)
		if err == nil {
			err = s.kind.Check(s.settings)
		}
		if err != nil {
			out = append(out, api.Problem{Path: path, Message: err.Error()})
			continue
		}
		for _, x := range s.settings {
			if s.kind.Name == bfcKind && strings.EqualFold(x.Name, "growth") {
				out = append(out, api.Problem{Path: path, Message: "growth of bfc is a field of the device: write growth: " + x.Value + " there"})
			}
		}
	}
	return out
}

// serving reads what a GPU's entry says of its allocator.
func serving(d *api.Device) (*served, error) {
	name := d.Allocator
	if name == "" {
		name = bfcKind
	}
	s := &served{limited: d.MemoryLimit > 0 || len(d.Logical) > 0 || d.Virtual > 1 || d.Fraction > 0}
	var err error
	if s.kind, err = kinds.ByName(name); err != nil {
		return nil, fmt.Errorf("choose an allocator: %w", err)
	}
	for _, o := range d.AllocatorOptions {
		x, err := s.kind.ParseExact(o)
		if err != nil {
			return nil, err //nolint:wrapcheck // it names the allocator and the option
		}
		s.settings = append(s.settings, x)
	}
	return s, nil
}

// serve finds for every logical device what serves it. What TensorFlow leaves
// to libraries only TensorFlow leaves: under another framework's allocator a
// device without a limit has all that is free.
func (h *hardware) serve(w *api.Workload) {
	h.served = make([]*served, len(h.Devices))
	for i, l := range h.Devices {
		if l.IsHost() {
			continue
		}
		h.served[i] = &served{}
		d := &w.Devices[slices.Index(h.cards, l.Card)]
		if d.Type() != "GPU" {
			continue
		}
		s, err := serving(d)
		if err != nil {
			continue // Validate has refused it
		}
		h.served[i] = s
		if s.kind.Name != bfcKind && s.kind.Name != "async" && !s.limited {
			l.Limit, l.Reserve = l.FreeNow, 0
			l.Alone = max(l.Alone, l.Limit)
		}
	}
}

// title is a device's name as allocators' names begin: GPU_0.
func title(l *device.Logical) string { return l.Name.Type + "_" + strconv.Itoa(l.Name.ID) }

// bfc sets of the options what the workload's settings say.
func (s *served) bfc(o *bfc.Options) {
	for _, x := range s.settings {
		switch strings.ToLower(x.Name) { // values were checked
		case "garbage_collection":
			o.GarbageCollection = !slices.Contains([]string{"false", "0", "off", "no"}, strings.ToLower(x.Value))
		case "fragmentation_fraction":
			o.Fragmentation, _ = strconv.ParseFloat(x.Value, 64)
		case "profile":
			if x.Value == bfc.Classic.String() {
				o.Profile = bfc.Classic
			}
		}
	}
}

// told adds to an allocator's facts what was set of it.
func (s *served) told(f event.Fields) event.Fields {
	for _, x := range s.settings {
		f = append(f, event.Field{Key: "option." + x.Name, Value: x.Value})
	}
	return f
}

// attach gives a device memory under an allocator that is not TensorFlow's.
func (s *served) attach(rt *exec.Runtime, b exec.Backend, id event.DeviceID, l *device.Logical, base uint64) error {
	if s.kind == nil || s.kind.Name == "system" {
		return s.attachHeap(rt, b, id, l, base)
	}
	card := alloc.CardOver(l.Card)
	if l.Unified {
		card = alloc.NewCard(0)
	}
	e := kinds.Env{Name: title(l) + "_" + s.kind.Name, Card: card, Device: l.Name.ID, Driver: driver(b, id, torch.NewDevice(card, base))}
	// PyTorch, ONNX Runtime and RMM's pool go on until the driver refuses; the
	// others divide up, or keep within, what they are told.
	if s.limited || l.Unified || s.kind.Name == "rmm-arena" || s.kind.Name == "async" {
		e.Limit = l.Limit
	}
	facts := event.Fields{{Key: "name", Value: e.Name}, {Key: "kind", Value: s.kind.Name}}
	if t := s.kind.Label(); t != "" {
		facts = append(facts, event.Field{Key: "modelled", Value: t})
	}
	return rt.Attach(id, false, func(o alloc.Observer) (alloc.Allocator, error) {
		e.Observer = o
		return s.kind.New(e, s.settings)
	}, s.told(facts))
}

// attachHeap gives a device memory as one heap: what a TPU's programs find,
// whose own allocator is not public, or what the workload asks for.
func (s *served) attachHeap(rt *exec.Runtime, b exec.Backend, id event.DeviceID, l *device.Logical, base uint64) error {
	if _, hasDriver := b.(exec.Driver); hasDriver {
		return errors.New("a heap has no driver behind it, so that a real card cannot serve it: choose another allocator")
	}
	card := alloc.CardOver(l.Card)
	facts := event.Fields{{Key: "name", Value: title(l) + "_hbm"}, {Key: "kind", Value: "tpu"}, {Key: "modelled", Value: "modelled: a TPU's allocator is not public"}}
	if s.kind != nil {
		facts = event.Fields{{Key: "name", Value: title(l) + "_system"}, {Key: "kind", Value: s.kind.Name}}
		if l.Unified {
			card = alloc.NewCard(0)
		}
	}
	if err := reserve(b, id, base, l.Limit); err != nil {
		return err
	}
	return rt.Attach(id, false, func(o alloc.Observer) (alloc.Allocator, error) {
		return system.New(system.Options{Name: facts.Text("name"), Base: base, Limit: l.Limit, Card: card, Observer: o}), nil
	}, facts)
}

// driver is what regions come from: the model, with a Backend's real driver or
// real memory behind it.
func driver(b exec.Backend, id event.DeviceID, model *torch.Device) alloc.SubAllocator {
	switch b := b.(type) {
	case exec.Driver:
		return b.Back(id, false, model)
	case exec.Reserver:
		return &reserving{model, b, id}
	}
	return model
}

func reserve(b exec.Backend, id event.DeviceID, base uint64, bytes int64) error {
	if r, ok := b.(exec.Reserver); ok {
		return r.Reserve(id, base, bytes) //nolint:wrapcheck // it names what and why
	}
	return nil
}

// reserving tells a Backend with real memory of addresses behind which pages
// will come and go.
type reserving struct {
	*torch.Device
	b  exec.Reserver
	id event.DeviceID
}

func (r *reserving) Reserve(bytes int64) (addr uint64, ok bool) {
	addr, ok = r.Device.Reserve(bytes)
	return addr, ok && r.b.Reserve(r.id, addr, bytes) == nil
}

func (r *reserving) Unreserve(addr uint64, bytes int64) {
	r.Device.Unreserve(addr, bytes)
	r.b.Unreserve(r.id, addr, bytes)
}
