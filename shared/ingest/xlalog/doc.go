// Package xlalog reads what XLA prints when a program does not fit: the byte
// count and device of a failed request, the statistics of the buffer
// assignment with its list of the largest buffers, and the compile-time report
// of a TPU.
//
// The allocator's own lines beside them are read by bfclog; package
// analysis/foreign joins the two and judges. Log collectors may have removed
// the indentation and put a prefix before each line, so nothing depends on
// either. Parts that a text lacks stay unknown.
package xlalog
