// Package shard holds the published formulas of what each device of several
// holds, where the state of training or the layers of a transformer are divided
// over them: sharded optimizers in their stages, tensor and sequence parallelism,
// recomputation.
//
// These are estimates, and whoever shows them must say so. Nothing is run: of
// state they count neither activations nor what an allocator wastes, and of a
// layer they count what is kept for the backward pass, in 16 bits. What can be
// run is package fit's.
package shard
