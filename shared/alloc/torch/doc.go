// Package torch is PyTorch's caching allocator for CUDA devices, exact to the
// address: pools of small and large blocks per stream, splitting and its
// limits, rounding, expandable segments, private pools, garbage collection,
// blocks held back by other streams, the way it gives memory back before it
// fails, and the figures and records it shows.
//
// It follows c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.cpp
// of 2025 and 2026, whose older behaviour differs where a comment says so.
// Recorded runs and recorded snapshots confirm placement, splitting, giving
// back, the split limit and expandable segments. Garbage collection, private
// pools, captures and events follow the text of the sources alone.
//
// Segments come from a driver (alloc.SubAllocator); expandable segments also
// need one that maps pages (VirtualMemory). Device is a driver that is both.
// Which addresses a driver hands out is modelled, so addresses equal PyTorch's
// up to each segment's base. Snapshot, Rewind and Restore take a recorded run
// back to where its trace begins, with its real addresses.
//
// What it is not: it computes nothing, has no clock and no threads, and never
// waits. How far a stream has come is asked of a Streams; without one, work on
// other streams counts as done at the next request. The options that concern
// locks and host memory are read and kept, and change nothing here. The backend
// cudaMallocAsync is another allocator.
//
// The plain version in the package reference is the oracle of the tests.
package torch
