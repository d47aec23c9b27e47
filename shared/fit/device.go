package fit

import (
	"strconv"
	"strings"

	"tideline/protocol/api"
)

// Entry is the place in a workload's devices of a device as runs name it,
// /GPU:1 or /device:GPU:1, and -1 for none. An entry may be several logical
// devices; a hidden one is none.
func Entry(w *api.Workload, device string) int {
	name := device[strings.LastIndexByte(device, '/')+1:]
	name = strings.TrimPrefix(name, "device:")
	kind, number, _ := strings.Cut(name, ":")
	n, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}
	for i := range w.Devices {
		d := &w.Devices[i]
		if d.Hidden || !strings.EqualFold(kindOf(d), kind) {
			continue
		}
		n -= max(1, len(d.Logical), d.Virtual)
		if n < 0 {
			return i
		}
	}
	return -1
}

func kindOf(d *api.Device) string {
	return strings.ToLower(d.Type())
}

// at is the path of a field of one device.
func at(entry int, field string) string { return "devices." + strconv.Itoa(entry) + "." + field }

// Unbounded is the workload without a bound on its memory: managed memory of
// many times the cards. It tells how much a run would need that does not fit.
// False where the devices do not allow it.
func Unbounded(w *api.Workload, known api.Known) (*api.Workload, bool) {
	x := w.Clone()
	some := false
	for i := range x.Devices {
		d := &x.Devices[i]
		if kindOf(d) != "gpu" || len(d.Logical) > 1 || d.Virtual > 0 {
			return nil, false
		}
		d.MemoryLimit, d.Logical, d.Growth, d.Unified, d.Fraction = 0, nil, false, true, api.MaxFraction
		some = true
	}
	return x, some && len(x.Validate(known)) == 0
}

// Need runs the workload without a bound on its memory.
func (p *Prober) Need(w *api.Workload, changes ...Change) (*Trial, bool) {
	x := w.Clone()
	for _, c := range changes {
		if x.Set(c.Field, c.Value) != nil {
			return nil, false
		}
	}
	x, ok := Unbounded(x, p.known())
	if !ok {
		return nil, false
	}
	x.Defaults()
	t, ok := p.run(x, changes)
	return t, ok && t.Passed
}
