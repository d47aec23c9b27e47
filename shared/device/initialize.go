package device

import (
	"slices"
	"strconv"
	"strings"
)

// Initialize makes the devices by the settings, once; later calls give the
// same Assembly. Rules across devices are checked only here, and after an
// error the settings may be changed and Initialize tried again.
//
// ValueError: growth differs between visible GPUs, or priorities or ordinals
// are given for some logical devices of a GPU only. NotFound: the CPU is
// hidden. What Options.Create refuses: InvalidArgument, Unknown, Internal,
// AlreadyExists.
func (c *Config) Initialize(proc *Process) (*Assembly, error) {
	if c.assembly != nil {
		return c.assembly, nil
	}
	o, err := c.compose()
	if err != nil {
		return nil, err
	}
	hw := c.hw
	hw.TPUs = nil
	for _, p := range c.PhysicalDevices("TPU") {
		if slices.Contains(c.visible, p) {
			hw.TPUs = append(hw.TPUs, c.card(p))
		}
	}
	a, err := o.Create(hw, c.env, proc)
	if err != nil {
		return nil, err
	}
	c.assembly = a
	return a, nil
}

// compose turns the settings into the options of the device layer, as
// TensorFlow's Python does: GPUs in driver order whatever order was set.
func (c *Config) compose() (Options, error) {
	o := c.Options
	o.CPUs, o.GPUs, o.Virtual = 0, Some(0), nil
	if slices.Contains(c.visible, c.physical[0]) {
		o.CPUs = max(1, len(c.logical[c.physical[0]]))
	}
	var ids []string
	var growths []Growth
	for i, p := range c.PhysicalDevices("GPU") {
		if !slices.Contains(c.visible, p) {
			continue
		}
		ids = append(ids, strconv.Itoa(i))
		if g := c.growth[p]; !slices.Contains(growths, g) {
			growths = append(growths, g)
		}
		cuts := c.logical[p]
		o.GPUs.Value += max(1, len(cuts))
		if len(c.logical) > 0 {
			v, err := virtual(p, cuts)
			if err != nil {
				return o, err
			}
			o.Virtual = append(o.Virtual, v)
		}
	}
	o.VisibleDeviceList = strings.Join(ids, ",")
	if len(o.Virtual) > 0 {
		o.AllowGrowth = false // and for GPUs that are not cut, too
		return o, nil
	}
	if len(growths) > 1 {
		return o, &Error{
			Kind: ValueError, Device: deviceNames(ofType(c.visible, "GPU")), Setting: "memory growth", Cause: ErrGrowthDiffers,
			Message: "cannot differ between GPUs (unset and off differ, too): set it alike for all visible ones",
		}
	}
	if len(growths) == 1 && growths[0] != GrowthUnset {
		o.AllowGrowth = growths[0] == GrowthOn
	}
	return o, nil
}

// virtual is the entry of one GPU.
func virtual(p Physical, cuts []LogicalConfig) (VirtualDevices, error) {
	var v VirtualDevices
	for _, x := range cuts {
		v.Limits = append(v.Limits, x.Limit)
		if x.Priority.Set {
			v.Priorities = append(v.Priorities, x.Priority.Value)
		}
		if x.Ordinal.Set {
			v.Ordinals = append(v.Ordinals, x.Ordinal.Value)
		}
	}
	for _, k := range []struct {
		what string
		n    int
	}{{"priorities", len(v.Priorities)}, {"ordinals", len(v.Ordinals)}} {
		if k.n != 0 && k.n != len(v.Limits) {
			return v, &Error{
				Kind: ValueError, Device: p.Name, Setting: "logical devices",
				Message: k.what + " are given for some entries only: give them for all or none",
			}
		}
	}
	return v, nil
}
