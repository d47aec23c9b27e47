// Package pipeline is the input pipeline: from_slices, map, shuffle, batch and
// prefetch with the semantics of tf.data, as a modelled schedule. It answers
// when each batch is ready, which elements it holds, what the buffers hold
// meanwhile, and which stage to blame when a step has to wait.
//
// Everything is a pure function of the settings and of the times at which
// batches are asked for: the same questions get the same answers on every
// host. Nothing is read or computed here; a batch is a list of element
// indices, which native/feed turns into pixels with real goroutines in the
// same order.
//
// # Order
//
// The source gives elements 0 to n-1, epoch after epoch. The shuffle stage
// repeats the source itself (shuffle and repeat fused), so epochs follow each
// other without a new fill and without mixing. Its random numbers come from
// splitmix64, started with the seed; a draw below n is the number modulo n.
//
// # Time
//
// Without prefetch all stages run in the thread that asks, so a step takes
// input plus training; with prefetch a producer runs beside, and a step takes
// the longer of the two. A parallel map has a runner of its own that fetches
// one input after the other and keeps at most as many results, done or
// pending, as it has calls.
package pipeline
