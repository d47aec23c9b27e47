// Package ort is ONNX Runtime's arena for device memory, exact to the address
// and to the letter of what it logs: a cousin of TensorFlow's best-fit
// allocator with a first region and a growth of its own, shrinking on request,
// reservations outside of the arena, and streams as tags on its chunks.
//
// Sources: ONNX Runtime's bfc_arena.cc and its 2026 variant in the CUDA plugin, and the logs
// of three public reports. Exact: regions, addresses, splitting, refusals, the
// words of the log, statistics. Modelled: which addresses the driver gives,
// and how far streams have come, which stream.Order tells.
//
// Two profiles exist. Core is the arena of the runtime itself; Plugin is the
// variant of 2026, which gives the first region back, too, and holds
// reservations to the limit.
//
// It has no clock, no threads and no way to wait: a failed request fails at
// once, as upstream.
package ort
