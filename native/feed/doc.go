// Package feed is the input pipeline for real: goroutines that read and map
// elements in parallel, shuffle, cache, batch and prefetch them in real time.
//
// Settings, chains of stages, order of elements and rules are package
// pipeline's, so a Feed delivers the very batches that a pipeline.Model
// delivers; what differs is that times, waits and the stage to blame are
// measured. Where the data comes from is the caller's functions.
//
// A stage with goroutines guards its state with a gate. Its goroutines end with
// the pass over the data that they are of, or with Close; a function of the
// caller's that panics, or with a timeout does not come back, is an error that
// names the stage and the element.
package feed
