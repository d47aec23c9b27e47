// Package pprof reads the device memory profiles of JAX
// (jax.profiler.save_device_memory_profile), which are gzip-packed profiles of
// the pprof format: what is alive on the devices, by the stack that made it.
//
// Other profiles of the format are read too, as long as one of their values is
// in bytes (heap profiles of Go and others). A profile is an instant: it has no
// time in it, and says nothing of the peak.
package pprof
