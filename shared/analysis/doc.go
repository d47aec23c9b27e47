// Package analysis says what a timeline or a foreign file means: how much was
// in use and free, how large the largest hole is, why a request failed, and
// what else stands out.
//
// A failure read from a log (FromDump) and one recorded by our own run
// (FromOutOfMemory) go through the same judgement, package cause, and come out
// as the same Reading. What the input does not contain is said to be unknown.
// The package interprets; it does not read files, draw, or promise that a
// remedy works: that takes a rerun.
package analysis
