// Package reference is PyTorch's caching allocator once more, written to be
// read: every pool is one plain list in its order, every search walks it from
// the start, and nothing is kept that can be counted. It exists as an oracle
// for package torch, with which it shares no code, and as the yardstick that
// torch's speed is measured against.
//
// It leaves out what moves no memory: the settings' text, snapshots, trace
// entries, messages, and captures, whose private pools it has.
package reference
