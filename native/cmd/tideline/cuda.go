//go:build cuda

package main

import (
	"tideline/native/backend/cuda"
	"tideline/shared/launch"
)

// openCards opens the machine's NVIDIA cards.
func openCards() *cards {
	d, err := cuda.Open()
	if err != nil {
		return virtualOnly(err.Error())
	}
	m, err := d.Machine(nil)
	if err != nil {
		d.Close()
		return virtualOnly(err.Error())
	}
	return &cards{
		machine: m, close: d.Close,
		use: func(o *launch.Options) {
			b := d.Backend(nil)
			o.Backend = b
			if o.Sink != nil {
				o.Sink = b.Timed(o.Sink)
			}
		},
	}
}
