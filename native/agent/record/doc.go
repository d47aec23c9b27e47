// Package record keeps a run's timeline while it is made: it encodes the
// events into blocks, writes them to a file, and lets any number of readers
// follow that file as it grows.
//
// Readers never meet the run: they read what was written, by an index in
// memory, each at its own pace. A kill at any moment loses at most the block
// that was being filled. When the disk is full the run goes on and the
// recording says what it lacks.
//
// It does not know HTTP or runs (package agent), nor the format of a block
// (protocol/block).
package record
