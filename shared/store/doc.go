// Package store keeps a timeline in memory so that any part of it can be
// looked at at once: columns of plain numbers, with min/max pyramids above
// them.
//
// A Timeline is fed with decoded events, live or from a file, and can be asked
// at any moment in between. No question about a window of time costs more than
// the window has pixels, however many events lie below: that is what the
// pyramids, the checkpoints of the live bytes and the address tiles are for.
// Columns live in chunks of fixed length; a full chunk is packed to the width
// that its values need, so an event costs well under 32 bytes.
//
// It draws nothing (package draw), judges nothing (package analysis), and
// holds no events: what no question needs is not kept.
//
// # Words
//
// A Pool is one allocator on one device, with the history of its bytes and
// blocks. A Track is one row of spans: the ops of a stream, the transfers from
// one device to another, the stalls of a device. A Series is a number over
// time: a queue's depth, a sample, a metric. All are numbered in the order in
// which the timeline first told of them.
package store
