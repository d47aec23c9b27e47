// Package export is what the writers for other programs' formats have in
// common: the names of a timeline's devices and allocators, and how a block's
// owner is told as a stack.
//
// The writers are packages of their own: chrome for Perfetto and
// chrome://tracing, pprof for go tool pprof, xspace for TensorFlow's profiler, csv
// for tables. Each is an event.Sink that writes as it is fed and keeps what lives
// at the moment, never the timeline, but for xspace, whose messages carry their
// lengths in front. They invent nothing: what a format has no place for is left
// out, and docs/guide/convert.md says so.
package export
