//go:build js && wasm

// Command wasm is Tideline's viewer: the browser module that shows timelines.
// It runs in a Web Worker and exports package bridge to JavaScript by pointer
// and length.
//
// An export returns at once and never waits for the host: what takes long is
// asked for in slices by the worker. No export uses a callback into Go, which
// would cost a thousand times what an export does.
package main

import (
	"unsafe"

	"tideline/wasm/bridge"
)

var (
	session = bridge.NewSession()
	input   []byte
	output  []byte
	rects   []int32
)

func main() {
	session.Hurry()
	select {}
}

// address is where a slice lies, for JavaScript to look at; 0 when empty.
func address(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// tlInput makes room for n bytes and returns where to write them.
//
//go:wasmexport tl_input
func tlInput(n int32) unsafe.Pointer {
	input = session.Input(int(n))
	return address(input)
}

// tlAnswer is where the last answer lies.
//
//go:wasmexport tl_answer
func tlAnswer() unsafe.Pointer { return address(output) }

// tlAsk answers the question in the input and returns the answer's length.
//
//go:wasmexport tl_ask
func tlAsk(n int32) int32 {
	output = session.Ask(string(input[:n]))
	return int32(len(output))
}

// tlFeed gives the input to a slot: 0, or minus the length of what is wrong.
//
//go:wasmexport tl_feed
func tlFeed(slot, n int32) int32 {
	if err := session.Feed(int(slot), input[:n]); err != nil {
		output = []byte(err.Error())
		return -int32(len(output))
	}
	return 0
}

// tlDraw draws a picture and returns how many pieces changed; they lie in the
// answer as x, y, width and height.
//
//go:wasmexport tl_draw
func tlDraw(picture, w, h, dpr int32, t0, t1 float64, theme int32) int32 {
	rects = rects[:0]
	list := session.Draw(int(picture), int(w), int(h), int(dpr), int64(t0), int64(t1), int(theme))
	for _, r := range list {
		rects = append(rects, int32(r.X), int32(r.Y), int32(r.W), int32(r.H))
	}
	if len(rects) > 0 {
		output = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(rects))), 4*len(rects))
	}
	return int32(len(list))
}

// tlPending is 1 when the last tl_draw of a picture left some of it for the
// next.
//
//go:wasmexport tl_pending
func tlPending(picture int32) int32 {
	if session.Pending(int(picture)) {
		return 1
	}
	return 0
}

// tlPixels is where a picture's pixels lie.
//
//go:wasmexport tl_pixels
func tlPixels(picture int32) unsafe.Pointer { return address(session.Pixels(int(picture))) }

// tlInvalidate makes the next drawing of a picture a whole one.
//
//go:wasmexport tl_invalidate
func tlInvalidate(picture int32) { session.Invalidate(int(picture)) }
