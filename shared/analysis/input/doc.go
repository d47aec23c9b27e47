// Package input says whether a run waits for its input, by the rules of
// TensorFlow's profiler: where the time of its steps goes, a verdict with the
// profiler's thresholds, what the host did meanwhile, and which stage of the
// input pipeline is the bottleneck.
//
// All of it are functions of times. What would help is said as advice and not
// tried: a rerun with changed settings tells.
package input
