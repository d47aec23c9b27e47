// Package feed is the input pipeline for real: goroutines that map elements in
// parallel, shuffle, batch and prefetch them in real time.
//
// Settings, order of elements and rules are package pipeline's, so a Feed
// delivers the very batches that a pipeline.Model delivers; what differs is
// that times, waits and the stage to blame are measured. Where the data comes
// from is the caller's map function.
package feed
