// Package block is the unit in which events travel and are stored: a framed,
// checksummed piece of a timeline that holds up to 65,536 events column by
// column, and the strings that are new since the block before.
//
// The same bytes go over the WebSocket and into a .tideline file, so that the
// agent encodes an event once. Every block can be decoded without the ones
// before it: predictors start afresh, and only the string table carries over;
// AppendStrings writes that table for a reader who joins late.
//
// # How an event becomes four bytes
//
// What few events differ in (kind, device, allocator, peer, stream, category,
// cause, flags) is a row of a small table in the block, the heads; an event
// names its row with one byte. The row also says how each remaining field was
// coded: as predicted (no bytes), by a small cache, or as a number in the
// field's column. A free names the allocation it ends by distance, and an
// allocation is predicted from the last one of the same tensor. Which of the
// three models predicts is part of the row, so that a reader needs no
// knowledge of a kind to decode it. protocol/FORMAT.md has every detail.
//
// It does not know files, indexes or recovery (package timeline), and it does
// not interpret events.
package block
