// Package rewrite changes a program's graph before it runs, as TensorFlow's
// Grappler does: it prunes, folds constants, merges what is computed twice,
// and trades memory: for time by recomputing activations (gradient
// checkpointing), for transfers by swapping them to host memory, for steps by
// taking a batch in parts whose gradients are accumulated.
//
// Every pass takes a *program.Program and gives another one; the one taken is
// never changed. A rewritten program computes the same numbers, to the bit (but
// for accumulated gradients): a rewrite that would round differently is left
// out, even where Grappler has it. Fetches, inputs, variables and the ops that change variables stay.
//
// What the op table cannot say is not done: fused convolutions and matrix
// products (Conv2D with bias and activation as one op), the change of layout
// to NCHW, loops and functions, which our programs do not have. Mixed
// precision is chosen when the model is built, not here.
package rewrite
