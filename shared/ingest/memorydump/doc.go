// Package memorydump reads the memory maps that TensorFlow's BFC allocator
// writes at each failed attempt when TF_BFC_MEMORY_DUMP names a path: files
// PREFIX_ALLOCATOR.MICROSECONDS that hold one protobuf message, MemoryDump.
//
// A map has every chunk with its address, its size and what was asked for, the
// bins, and the statistics. It does not say how much the failing request asked
// for, nor the limit, nor where regions begin: those are unknown in the Dump
// that a map becomes, and a gap between addresses is what tells two regions
// apart. Join takes request and limit from a log of the same run.
//
// Builds with memory debugging add the op, the step and the count of actions of
// each chunk, and how many bytes were in use after each of the last actions.
//
// The message is written by shared/alloc/bfc/memdump.
package memorydump
