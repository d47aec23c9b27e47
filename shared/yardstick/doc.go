// Package yardstick holds the tasks by which the core's own speed is told:
// allocators on traces, modelled steps, dispatch, static planning. Where there
// is a plain implementation of the same thing, a task names it, so that a speed
// becomes a ratio within one run, which means the same on another machine.
//
// There is no clock here: the command times the tasks natively, wasm/bench
// times the same ones as WebAssembly.
package yardstick
