package draw

import (
	"tideline/protocol/event"
	"tideline/shared/store"
)

// Image is a picture of W x H pixels, four bytes each: red, green, blue and
// alpha, not premultiplied and always opaque where something was drawn.
type Image struct {
	Pix    []byte
	W, H   int
	Stride int // bytes from one row to the next
}

// NewImage makes a picture of that size.
func NewImage(w, h int) *Image {
	return &Image{Pix: make([]byte, 4*w*h), W: w, H: h, Stride: 4 * w}
}

// Rect is a piece of a picture in pixels.
type Rect struct{ X, Y, W, H int }

// LaneKind says what a lane shows.
type LaneKind uint8

// The kinds of lane.
const (
	MemoryLane   LaneKind = iota // a pool's bytes, stacked by category
	AddressLane                  // a pool's addresses by time
	OpLane                       // a device's ops, a row for each stream
	TransferLane                 // copies, a row for each direction
	InputLane                    // the input pipeline: stalls, queues, stages
	MinimapLane                  // the whole run, with the view's window marked
)

// Lane is one strip of a view.
type Lane struct {
	Kind   LaneKind
	Pool   int            // MemoryLane, AddressLane, MinimapLane: index into Pools
	Device event.DeviceID // OpLane
	Y, H   int            // pixels
	// Top is the value at the lane's upper edge, in bytes; 0 means that the
	// lane chooses: see Scale. MemoryLane only.
	Top int64
	// Low and High bound the part of the compact layout that an AddressLane
	// shows, in bytes; both 0 mean all of it.
	Low, High int64
}

// View is what a frame shows.
type View struct {
	T0, T1 int64 // nanoseconds, T0 < T1
	W, H   int   // pixels of the picture
	DPR    int   // device pixels for each CSS pixel, 1 or more: widths of lines; 0 means 1
	Theme  *Theme
	Lanes  []Lane
	// Base is the run to compare with, drawn as a ghost line; nil for none.
	Base *store.Timeline
	// Hide has a bit for each event.Category that is not to be drawn.
	Hide uint32
}

// Color is red, green, blue, alpha.
type Color [4]byte
