// Package synthetic makes up timelines of any length for tests and
// measurements: a training run with facts, regions, parameters, forward and
// backward passes, transfers, an input pipeline with stalls, and memory laid
// out by a best-fit allocator that splits and merges.
//
// The same settings give the same events, byte for byte. They are plausible in
// shape and variety (names, sizes, reuse of addresses, jitter of times), and
// consistent: every free ends a live block, blocks do not overlap. They are no
// measurement of anything real, and nothing shown to people as a run's result
// may come from here.
package synthetic
