// Package snapshot reads PyTorch's memory snapshots: the pickles that
// torch.cuda.memory._dump_snapshot writes, and those of the older versions.
//
// A snapshot is what the caching allocator held at the end (segments tiled by
// blocks) and the last events that led there (the trace, a ring of bounded
// length). Reading it streams the pickle straight into columns: an event takes
// 40 bytes, a stack or a frame is kept once, and no tree of dicts is built. The
// Snapshot then gives a Reading (its numbers) and tells its events, from the
// state in which the trace begins to the one at the end.
//
// # Words
//
// Segment: memory from the driver. Block: a piece of a segment; active while in
// use or waiting for a stream, else inactive. Sizes of trace events are those
// asked for, sizes of blocks are rounded. A stack is a list of frames, the
// innermost first.
package snapshot
