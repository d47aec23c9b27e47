// Package bfc is TensorFlow's best-fit-with-coalescing allocator, exact to the
// address, to the handle and to the letter of its out-of-memory text.
//
// Regions are taken from a driver (alloc.SubAllocator) and tiled by chunks.
// Free chunks lie in sets ordered by size and address; a request takes the
// smallest that fits, ties going to the lowest address, and splits it only if
// the rest is worth keeping. A free merges with its free neighbours at once.
//
// Two profiles exist. Classic is all of TensorFlow up to the TSL code of 2024;
// Current is OpenXLA's TSL of 2026: alignments above 256 are honoured, a
// region can be partitioned between two ends, a shrinking region request
// always shrinks, and the texts read differently.
//
// What is not here: waiting (the alloc.Observer owns the clock), locking, and
// the serialised memory map, which is the subpackage memdump's so that the
// browser module does not carry a protobuf encoder.
//
// # Where the time goes
//
// Chunks are records of one cache line in one slice, named by index (the
// handle, which upstream prints too). Free chunks lie in lists through their
// own records, one list per sixteenth of a power of two, found through a
// bitmap; a chunk that grows or is cut mostly keeps its place. A list that is
// walked for too long becomes a tree of sorted leaves, so that no sequence of
// requests makes the walk the cost. Only blocks in use are looked up by
// address, in a table of chains instead of upstream's array with one slot per
// 256 bytes of region, which costs 16 MiB of memory per GiB of pool. Nothing is
// allocated per operation once the tables have their size.
//
// An allocator without stamps and partitions, asked for no more than natural
// alignment, goes a short way of its own (plain.go); all others share a general
// one, and both keep the same tables. Replay goes the short way for a whole
// batch, for those who play one trace many times.
package bfc
