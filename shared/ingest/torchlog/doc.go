// Package torchlog reads what PyTorch says about its memory as text: the
// out-of-memory message of every version and device type, the table of
// memory_summary(), and the printed form of memory_snapshot().
//
// People paste the message wrapped by a terminal, even within a word, with the
// prefix of a rank or a collector on each line, so it is read with its blanks
// removed. The package reports what is written; package analysis/foreign says
// what it means. Snapshot files, which are pickles, are not its matter.
package torchlog
