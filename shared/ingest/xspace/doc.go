// Package xspace reads the profiles of TensorFlow and JAX (XSpace messages,
// files *.xplane.pb, packed or not), and what the profiler's memory page was
// made into (memory_profile.json).
//
// Of a profile it takes what concerns memory: the allocations and frees of the
// host threads with their statistics, the copies of the device planes, and the
// steps and ops as spans, which are the host's where a program has no device.
// Everything else is counted and passed over. Texts are kept once, and no
// length in the file is believed.
//
// Copies are taken from device planes alone: the host's launch of a copy has
// the same name, and counting both would double it. Times are picoseconds, a
// line's timestamp plus the event's offset.
package xspace
