// Package runtime is TensorFlow's programming surface in Go, on virtual GPUs
// whose memory is exact: devices and their settings (tf.config), eager tensors
// that live as long as the program holds them, variables, gradient tapes, and
// functions that are traced into graphs (tf.function). Everything runs on
// shared/exec with the allocators, placement rules and events of any other
// run, so an event.Sink gives a timeline that the viewer can show.
//
// A Runtime is a context: settings of the process are shared by all that
// derive from it with Fork, while device scopes, the copy policy and open tapes
// belong to one Runtime, and a Runtime to one goroutine. Ops of several
// goroutines are serialised, as one process has one runtime.
//
// Python frees a tensor when the last name for it goes; Go has no such moment,
// so a Tensor is released by Release or by the Tidy that it was made in. One
// that nobody can reach any more is released when Go's collector finds it, as
// Python's does with cycles; until then it is held by garbage, which Garbage
// counts and the timeline remarks on.
//
// It computes on host memory with native/kernel; what a model is (shared/zoo)
// and how a workload file is run (shared/launch) are not decided here. Not
// there: functions whose graph keeps unknown dimensions (a relaxed signature is
// one trace, but each shape that it is called with gets a plan of its own).
package runtime
