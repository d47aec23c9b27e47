// Package ingest opens what other programs left behind: it recognises what a
// file is and turns it into the events of a timeline, so that the page shows a
// foreign file with the same store and the same drawing as a run of our own.
//
// The readers themselves are its subpackages and know no events; what a file
// means is package analysis. Nothing is invented on the way: what a file does
// not tell is said to be missing, in the timeline itself.
package ingest
