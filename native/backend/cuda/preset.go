//go:build cuda

package cuda

import (
	"strconv"

	"gorgonia.org/cu"

	"tideline/shared/device"
)

// Preset describes the card for a workload, which asks for it as cuda:0. What
// the driver says counts as measured; the rates that it does not say are worked
// out from clock and kind and count as assumed.
func (c Card) Preset(index int) *device.Preset {
	link := linkOf(c.Major)
	return &device.Preset{
		Name: presetPrefix + strconv.Itoa(index), Title: c.Name, Major: c.Major, Minor: c.Minor,
		Total:        device.Figure{Value: c.Total, From: device.Measured},
		Context:      device.Figure{From: device.Measured}, // among what Machine.Add is told to be held
		FLOPS:        device.Figure{Value: c.flops(), From: device.Assumed},
		MemBandwidth: device.Figure{Value: c.MemoryBandwidth, From: device.Assumed},
		H2D:          device.Figure{Value: link, From: device.Assumed},
		D2H:          device.Figure{Value: link, From: device.Assumed},
	}
}

// flops is the card's dense float32 peak: a multiply-add per core and clock.
func (c Card) flops() int64 {
	return 2 * c.Clock * int64(c.Multiprocessors) * coresPerMultiprocessor(c.Major, c.Minor)
}

// coresPerMultiprocessor is by the programming guide's table of capabilities.
func coresPerMultiprocessor(major, minor int) int64 {
	switch {
	case major == 7, major == 6 && minor == 0, major == 8 && minor == 0:
		return 64
	default:
		return 128
	}
}

// linkOf is the rate of a host link of 16 lanes as cards of that time have it.
func linkOf(major int) int64 {
	switch {
	case major < 8:
		return 12_200_000_000
	case major == 8:
		return 25_800_000_000
	default:
		return 52_000_000_000
	}
}

// Machine gives a machine with the driver's cards, as they are now, besides the
// virtual ones. lock serialises the runs that share it; nil is enough for one.
func (d *Driver) Machine(lock device.Locker) (*device.Machine, error) {
	m := device.NewMachine(lock)
	for i, dev := range d.devices {
		c := dev.card
		err := dev.do(func() (err error) {
			c.Free, c.Total, err = cu.MemInfo()
			return err
		})
		if err != nil {
			return nil, dev.fail("ask for free memory", err)
		}
		if err := m.Add(c.Preset(i), c.Total-c.Free); err != nil {
			return nil, err
		}
	}
	return m, nil
}
