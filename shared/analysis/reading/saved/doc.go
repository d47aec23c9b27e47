// Package saved is how a timeline keeps what the input meant that it was made
// of: the readings, as JSON in a block of their own, so that whoever opens the
// file has the words without the input.
//
// It writes and reads that JSON, whose fields protocol/FORMAT.md lists. It does
// not know blocks or files (package timeline) and words nothing (package
// reading). What it reads may come from anybody: it is bounded before it grows,
// and what control characters a text has are left out.
package saved
