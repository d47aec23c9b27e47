// Package trace reads allocation traces ("bfc-trace 1") and answers them
// ("bfc-answer 1"): a trace is a list of allocator calls with the allocator's
// and the driver's options, the answers are what a BFC allocator gave to it,
// address for address. The same format carries the recorded answers of
// TensorFlow's own allocator.
//
// It reads text and drives shared/alloc/bfc. It knows no files and does not
// interpret the answers.
package trace
