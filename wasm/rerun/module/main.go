//go:build js && wasm

// Command module is the browser's second module: packages rerun and side, exported
// to JavaScript by pointer and length, as the viewer's module is.
package main

import (
	"strings"
	"unsafe"

	"tideline/wasm/rerun"
	"tideline/wasm/side"
)

var (
	session rerun.Session
	beside  side.Session
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

// tlSideBegin makes room for a timeline that is summed up beside others.
//
//go:wasmexport tl_side_begin
func tlSideBegin() { beside.Begin() }

// tlSideFeed gives bytes of it from the input: 0, or the length of what is wrong
// with them.
//
//go:wasmexport tl_side_feed
func tlSideFeed(n, last int32) int32 {
	if err := beside.Feed(input[:n], last != 0); err != nil {
		return answer(err.Error())
	}
	return 0
}

// tlSideEnd answers with the sums of all so far. The input has the file's name,
// what it is said to mean, why it was cut, and the bytes that a text tells of, a line
// each.
//
//go:wasmexport tl_side_end
func tlSideEnd(n int32) int32 {
	var w [7]string
	copy(w[:], strings.Split(string(input[:n]), "\n"))
	return answer(beside.End(w[0], w[1], w[2], [4]string(w[3:])))
}

// tlSideUnread does for a file that cannot be read; the input has its name and why.
//
//go:wasmexport tl_side_unread
func tlSideUnread(n int32) int32 {
	name, why, _ := strings.Cut(string(input[:n]), "\n")
	return answer(beside.Unread(name, why))
}

// tlRanked is 1 where the names in the input, a line each, tell ranks.
//
//go:wasmexport tl_ranked
func tlRanked(n int32) int32 {
	if side.Ranked(string(input[:n])) {
		return 1
	}
	return 0
}
