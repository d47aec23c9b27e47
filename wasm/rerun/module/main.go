//go:build js && wasm

// Command module is the browser's second module: package rerun, exported to
// JavaScript by pointer and length, as the viewer's module is.
package main

import (
	"unsafe"

	"tideline/wasm/rerun"
)

var (
	session rerun.Session
	input   []byte
	output  []byte
)

func main() { select {} }

func answer(s string) int32 {
	output = append(output[:0], s...)
	return int32(len(output))
}

// tlInput makes room for n bytes and returns where to write them.
//
//go:wasmexport tl_input
func tlInput(n int32) unsafe.Pointer {
	if cap(input) < int(n) {
		input = make([]byte, max(int(n), 4096))
	}
	return unsafe.Pointer(unsafe.SliceData(input))
}

// tlAnswer is where the last answer lies.
//
//go:wasmexport tl_answer
func tlAnswer() unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(output)) }

// tlInfo answers what there is to choose from.
//
//go:wasmexport tl_info
func tlInfo() int32 { return answer(session.Info()) }

// tlCheck says what is wrong with the fields in the input.
//
//go:wasmexport tl_check
func tlCheck(n int32) int32 { return answer(session.Check(string(input[:n]))) }

// tlStart begins a run of the fields in the input.
//
//go:wasmexport tl_start
func tlStart(n int32) int32 { return answer(session.Start(string(input[:n]))) }

// tlWork goes on with the run: 1 when more is left to do.
//
//go:wasmexport tl_work
func tlWork(budget int32) int32 {
	if session.Work(int(budget)) {
		return 1
	}
	return 0
}

// tlFlush closes the block begun.
//
//go:wasmexport tl_flush
func tlFlush() { session.Flush() }

// tlDrain hands over what was encoded: its length; it lies in the answer.
//
//go:wasmexport tl_drain
func tlDrain() int32 {
	output = append(output[:0], session.Drain()...)
	return int32(len(output))
}

// tlEnd finishes the run and says how it went.
//
//go:wasmexport tl_end
func tlEnd() int32 { return answer(session.End()) }

// tlAsk begins to find out what would have helped a run of the fields in the
// input.
//
//go:wasmexport tl_ask
func tlAsk(n int32) int32 { return answer(session.Ask(string(input[:n]))) }

// tlNext goes on with it; nothing when it is over.
//
//go:wasmexport tl_next
func tlNext() int32 { return answer(session.Next()) }
