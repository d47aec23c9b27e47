package main

import (
	"fmt"
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/shared/device"
	"tideline/shared/launch"
)

// cards are the machine's own cards beside the virtual ones.
type cards struct {
	machine *device.Machine
	// problem is why there is none, in one line; "" where there are some, or
	// where this build does not look for any.
	problem string
	// use gives a run that asks for real cards its backend; nil without any.
	use   func(o *launch.Options)
	close func()
}

// virtualOnly is a machine without cards of its own.
func virtualOnly(problem string) *cards {
	return &cards{machine: device.NewMachine(nil), problem: problem, close: func() {}}
}

// realPrefix begins the presets that are this machine's own cards.
const realPrefix = "cuda:"

// realNames are the presets that may be asked for by that name; whether the
// card is there shows when the run starts.
func realNames() []string {
	const most = 16
	var out []string
	for i := range most {
		out = append(out, realPrefix+strconv.Itoa(i))
	}
	return out
}

// asksForReal says whether a workload names a card of this machine.
func asksForReal(w *api.Workload) bool {
	for _, d := range w.Devices {
		if strings.HasPrefix(d.Preset, realPrefix) {
			return true
		}
	}
	return false
}

// errNoCard is the error of a workload that asks for a card that is not there.
func (c *cards) errNoCard() error {
	why := c.problem
	if why == "" {
		why = "this program was built without the tag cuda; see docs/guide/cuda.md"
	}
	return fmt.Errorf("the workload asks for a card of this machine: %s", why)
}
