//go:build js && wasm

// Command module is the browser's third module: package reader, exported to
// JavaScript by pointer and length, as the other two are.
package main

import (
	"unsafe"

	"tideline/wasm/reader"
)

var (
	session reader.Session
	input   []byte
	output  []byte
)

func main() { select {} }

// tlInput makes room for n bytes and returns where to write them. The room must
// not be used again before the session is hungry.
//
//go:wasmexport tl_input
func tlInput(n int32) unsafe.Pointer {
	if cap(input) < int(n) {
		input = make([]byte, max(int(n), 4096))
	}
	return unsafe.Pointer(unsafe.SliceData(input))
}

// tlStart begins a file, whose name is in the input.
//
//go:wasmexport tl_start
func tlStart(n int32) int32 { return int32(session.Start(string(input[:n]))) }

// tlStartUnpacked begins one that is packed by gzip and that the browser unpacks.
//
//go:wasmexport tl_start_unpacked
func tlStartUnpacked(n int32) int32 { return int32(session.StartUnpacked(string(input[:n]))) }

// tlFeed gives the input as the next bytes of the file; last is 1 when none
// follow. It returns what the session waits for.
//
//go:wasmexport tl_feed
func tlFeed(n, last int32) int32 { return int32(session.Feed(input[:n], last != 0)) }

// tlWork goes on, and returns what the session waits for then.
//
//go:wasmexport tl_work
func tlWork() int32 { return int32(session.Work()) }

// tlDrain hands over what was encoded: its length; it lies in the answer.
//
//go:wasmexport tl_drain
func tlDrain() int32 {
	output = session.Drain()
	return int32(len(output))
}

// tlTold hands over what is known: its length; it lies in the answer.
//
//go:wasmexport tl_told
func tlTold() int32 {
	output = session.Answer()
	return int32(len(output))
}

// tlAnswer is where what was handed over lies.
//
//go:wasmexport tl_answer
func tlAnswer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(output)) }
