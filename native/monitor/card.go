package monitor

import (
	"errors"

	"tideline/protocol/event"
)

// ErrUnavailable is wrapped by Open's error where cards cannot be seen. Its
// text says why in one line.
var ErrUnavailable = errors.New("NVIDIA cards cannot be seen")

// Unknown stands for a figure that the driver does not give.
const Unknown = -1

// Card is one physical card at an instant. Bytes; percent of the last sampling
// period; Unknown where the driver does not say.
type Card struct {
	Index       int    `json:"index"` // NVML's, by PCI bus id; CUDA may count otherwise
	Name        string `json:"name"`
	PCI         string `json:"pci"` // bus id, as 0000:3b:00.0
	UUID        string `json:"uuid,omitempty"`
	Total       int64  `json:"total"`
	Used        int64  `json:"used"` // by all processes, the driver's own part included
	Free        int64  `json:"free"`
	Utilisation int    `json:"utilisation"`        // time in which a kernel ran
	MemoryBusy  int    `json:"memory_utilisation"` // time in which memory was read or written

	// Processes hold memory of the card; those of other users and containers
	// may be missing, so that their sum can be below Used.
	Processes []Process `json:"processes"`
}

// Process is a program that holds memory of a card.
type Process struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`  // "" where /proc does not tell
	Bytes int64  `json:"bytes"` // Unknown where the driver does not say
}

// Held is what other processes than self hold of the card: what is used less
// what the driver says self has. Without a figure for self it is all of Used.
func (c *Card) Held(self int) int64 {
	held := c.Used
	for _, p := range c.Processes {
		if p.PID == self && p.Bytes > 0 {
			held -= p.Bytes
		}
	}
	return max(0, held)
}

// The series of a card's samples.
const (
	SeriesUsed        = "card memory used"
	SeriesUtilisation = "card utilisation"
)

// Emit tells a card's figures as Sample events of a device at time t: the
// memory used of all there is in bytes, and the utilisation of 100 percent.
func (c *Card) Emit(sink event.Sink, strings *event.Strings, dev event.DeviceID, t int64) {
	e := event.Event{Kind: event.Sample, Time: t, Device: dev, Op: strings.ID(SeriesUsed), Size: c.Used, Requested: c.Total, Step: event.NoStep}
	sink.Emit(&e)
	if c.Utilisation == Unknown {
		return
	}
	e.Op, e.Size, e.Requested = strings.ID(SeriesUtilisation), int64(c.Utilisation), 100
	sink.Emit(&e)
}
