// Package device is what the runtime knows of hardware: device names, the
// presets of real cards with the source of every figure, the model of time,
// the memory budget that TensorFlow would give a logical device, and the
// physical cards that runs share.
//
// It allocates nothing for tensors (shared/alloc) and runs nothing
// (shared/exec). All times are integers, so that a model gives the same
// nanoseconds on every host.
package device
