// Package chrometrace reads the Chrome traces that TensorFlow, JAX and the
// PyTorch profiler write, packed or not: the copies between host and device,
// PyTorch's [memory] instants, and memory counters.
//
// The file is a stream of tokens to it; kernels and Python calls are counted
// and passed over, so a trace of a million events costs what its copies and
// memory events cost. Times are microseconds in the file, whatever its
// displayTimeUnit says, and nanoseconds here.
//
// TensorFlow writes each copy twice, on the device's stream and on the host
// thread that launched it. Only the device's rows are copies; the others are
// counted as duplicates.
package chrometrace
