// Package chrome writes a timeline as the trace JSON that Perfetto and
// chrome://tracing open.
//
// A device is a process; its streams, copies and waiting are threads; memory in
// use and reserved are counters, an allocator each and a category each; steps,
// the pipeline, failures and remarks have places of their own. Every
// allocation and free is an instant with address, tensor and op, in the form
// that PyTorch's profiler writes, so that what reads those reads ours.
//
// Spans are written when they end, with their whole length. Spans of one track
// that overlap are put on lanes beside each other, since viewers nest what lies
// on one thread. Kept are open spans and living blocks, never the timeline.
package chrome
