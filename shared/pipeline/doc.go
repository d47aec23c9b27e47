// Package pipeline is the input pipeline, with the semantics of tf.data, as a
// modelled schedule. It answers when each batch is ready, which elements it
// holds, what the buffers hold meanwhile, and which stage to blame when a step
// has to wait.
//
// A Dataset is a chain of stages: slices, a range or files, then interleave,
// map, shuffle, repeat, batch, cache, take, skip, shard, prefetch in any order and
// number. Settings describe the usual chain. Open makes a Model of it; the
// same chain runs for real in native/feed.
//
// Everything is a pure function of the chain and of the times at which
// batches are asked for: the same questions get the same answers on every
// host. Nothing is read or computed here; a batch is a list of element
// indices, which native/feed turns into pixels with real goroutines in the
// same order.
//
// # Order
//
// Which elements come in which order depends on the stages alone, never on
// time, calls or buffers (but for an unordered map). The usual chain repeats
// its source and shuffles epoch by epoch (shuffle and repeat fused), so epochs
// follow each other without a new fill and without mixing. Random numbers come
// from splitmix64, started with the seed; a draw below n is the number modulo
// n.
//
// # Time
//
// A stage without a thread of its own works in the thread that asks, so a step
// takes input plus training; with prefetch a producer runs beside, and a step
// takes the longer of the two. A parallel map has a runner of its own that
// fetches one input after the other and keeps at most as many results, done or
// pending, as it has calls. Since nothing that a thread beside does depends on
// what its consumer will ask, its future is worked out as soon as it is
// settled, and its events are told when their time comes.
//
// # Not here
//
// filter, concatenate, zip, window, padded and parallel batch and the
// slack option are not modelled.
package pipeline
