// Package profiler makes of allocation events what the memory page of
// TensorFlow's profiler shows of them: per allocator the peaks, at most a
// thousand points over time, and a table of what was alive at the peak.
//
// It follows that page to the number, so that a reader finds what the stock
// tool told, with its limits: the table knows the peak's step alone, and what
// it cannot explain becomes one row of "unused preallocated device memory".
// What Tideline knows beyond that is package finding's. Nothing here reads a
// file: events come from an importer, or from a run by Recorder.
package profiler
