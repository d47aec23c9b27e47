// Package synthetic makes PyTorch memory snapshots of any length, for
// measurements and tests: what the caching allocator's model does with a random
// sequence of requests, written as torch.cuda.memory._dump_snapshot would.
//
// The structure is the real one: segments tiled by blocks, a trace with one
// alloc entry and two entries a free, stacks shared through the memo, dicts
// filled and lists extended a thousand items at a time, pickle protocols 2 to
// 5. The addresses are those of the model, so replaying the trace gives them
// again. What the program did is made up: sizes and lifetimes say nothing of
// real models, and the functions in the stacks have no code.
package synthetic
