//go:build cuda

package cuda

/*
#cgo CFLAGS: -I${SRCDIR}/driver/include
#cgo LDFLAGS: -lcuda -ldl
#include <cuda.h>

// Of driver/shim/shim.c: why there is no driver, or empty.
const char *tideline_driver_problem(void);
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"gorgonia.org/cu"

	"tideline/protocol/event"
)

// ErrNoDriver is wrapped by Open's error on a machine where no card can be
// used. Its text says why in one line.
var ErrNoDriver = errors.New("no CUDA card")

// Card is what a driver says of one card.
type Card struct {
	Ordinal         int    // the driver's number
	Name            string // as the maker names it
	PCI             string // bus id, as 0000:3b:00.0
	Major, Minor    int    // compute capability
	Multiprocessors int
	Clock           int64 // of the multiprocessors, Hz
	MemoryBandwidth int64 // bytes per second by clock and bus width; 0 where the driver does not say
	Total, Free     int64 // bytes, once the program's context was there
}

// String is the card as TensorFlow's log names it.
func (c Card) String() string {
	return fmt.Sprintf("%s, pci bus id: %s, compute capability: %d.%d", c.Name, c.PCI, c.Major, c.Minor)
}

// Unused is a card that TensorFlow would not use, and why.
type Unused struct {
	Card   Card
	Reason string
}

// Driver is the cards of this machine, ready to work. Safe for concurrent use.
type Driver struct {
	devices []*gpu
	unused  []Unused

	mu     sync.Mutex
	closed bool
}

// Problem is why there is no driver on this machine, in one line, or "".
func Problem() string { return C.GoString(C.tideline_driver_problem()) }

// Open makes the contexts of all cards that can be used, in the driver's order,
// which TensorFlow keeps too. It fails with ErrNoDriver where there are none.
func Open() (*Driver, error) {
	if p := Problem(); p != "" {
		return nil, fmt.Errorf("%w: %s", ErrNoDriver, p)
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("%w: count cards: %w", ErrNoDriver, err)
	}
	var cards []Card
	for i := range n {
		c, err := describe(i)
		if err != nil {
			return nil, fmt.Errorf("card %d: %w", i, err)
		}
		cards = append(cards, c)
	}
	d := &Driver{}
	var usable []Card
	usable, d.unused = choose(cards, minMultiprocessors(os.Getenv("TF_MIN_GPU_MULTIPROCESSOR_COUNT"), cards))
	for _, c := range usable {
		dev, err := openDevice(c)
		if err != nil {
			d.Close()
			return nil, fmt.Errorf("card %d, %s: %w", c.Ordinal, c.Name, err)
		}
		d.devices = append(d.devices, dev)
	}
	if len(d.devices) == 0 {
		reason := "the driver knows of none"
		if len(d.unused) > 0 {
			reason = d.unused[0].Card.Name + ": " + d.unused[0].Reason
		}
		return nil, fmt.Errorf("%w: %s", ErrNoDriver, reason)
	}
	return d, nil
}

// The oldest compute capability that the kernels are made for.
const leastMajor, leastMinor = 5, 0

// fewMultiprocessors is the number that a card needs to be used, or as many as
// the largest has if that is fewer; TensorFlow's rule.
const fewMultiprocessors = 8

func minMultiprocessors(env string, cards []Card) int {
	if n, err := strconv.Atoi(env); err == nil && n > 0 {
		return n
	}
	most := 0
	for _, c := range cards {
		most = max(most, c.Multiprocessors)
	}
	return min(fewMultiprocessors, most)
}

// choose leaves out what TensorFlow would leave out, and keeps the order.
func choose(cards []Card, multiprocessors int) (usable []Card, unused []Unused) {
	for _, c := range cards {
		switch {
		case c.Major < leastMajor || c.Major == leastMajor && c.Minor < leastMinor:
			unused = append(unused, Unused{c, fmt.Sprintf("compute capability %d.%d is below %d.%d", c.Major, c.Minor, leastMajor, leastMinor)})
		case c.Multiprocessors < multiprocessors:
			unused = append(unused, Unused{c, fmt.Sprintf(
				"%d multiprocessors are fewer than %d; TF_MIN_GPU_MULTIPROCESSOR_COUNT changes that", c.Multiprocessors, multiprocessors)})
		default:
			usable = append(usable, c)
		}
	}
	return usable, unused
}

func describe(ordinal int) (Card, error) {
	c := Card{Ordinal: ordinal}
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return c, err
	}
	if c.Name, err = d.Name(); err != nil {
		return c, err
	}
	if c.Total, err = d.TotalMem(); err != nil {
		return c, err
	}
	var domain, bus, slot, kHz int
	for _, x := range []struct {
		to   *int
		what cu.DeviceAttribute
	}{
		{&c.Major, cu.ComputeCapabilityMajor},
		{&c.Minor, cu.ComputeCapabilityMinor},
		{&c.Multiprocessors, cu.MultiprocessorCount},
		{&kHz, cu.ClockRate},
		{&domain, cu.PciDomainID},
		{&bus, cu.PciBusID},
		{&slot, cu.PciDeviceID},
	} {
		if *x.to, err = d.Attribute(x.what); err != nil {
			return c, fmt.Errorf("attribute %d: %w", x.what, err)
		}
	}
	c.Clock = int64(kHz) * 1000
	c.PCI = fmt.Sprintf("%04x:%02x:%02x.0", domain, bus, slot)
	// Newer drivers may not answer these two any more.
	memoryKHz, err1 := d.Attribute(cu.MemoryClockRate)
	bits, err2 := d.Attribute(cu.GlobalMemoryBusWidth)
	if err1 == nil && err2 == nil {
		c.MemoryBandwidth = 2 * int64(memoryKHz) * 1000 * int64(bits) / 8
	}
	return c, nil
}

// Cards are the cards in use, in the order in which they become GPU:0, GPU:1.
func (d *Driver) Cards() []Card {
	out := make([]Card, len(d.devices))
	for i, dev := range d.devices {
		out[i] = dev.card
	}
	return out
}

// Unused are the cards left out, and why.
func (d *Driver) Unused() []Unused { return d.unused }

// Version is the CUDA version that the driver supports, as 12.4.
func Version() string {
	v := cu.Version()
	return strconv.Itoa(v/1000) + "." + strconv.Itoa(v%1000/10)
}

// Close gives everything back. No Backend may be in use.
func (d *Driver) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	for _, dev := range d.devices {
		dev.close()
	}
}

// summary is a card's memory for messages.
func (c Card) summary() string {
	return fmt.Sprintf("%s, %s of %s free", c.Name, event.FormatBytes(c.Free), event.FormatBytes(c.Total))
}
