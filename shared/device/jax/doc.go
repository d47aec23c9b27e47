// Package jax is how a JAX process divides up a card: what its environment
// variables come to, the limit that follows from them, and which variable to
// change to what for another limit.
//
// JAX's GPU client (XLA's) has one allocator a card. By default that is
// TensorFlow's BFC, which takes three quarters of the card's memory at once: of
// all of it, not of what is free, and without TensorFlow's reserve. Jaxlib before
// 0.4.1 took 90 % of what was free.
//
// It makes no device (package device) and no allocator (package kinds): it says
// what of theirs JAX would set. The newest policy, written 0.75+, by which the
// pool of ordinary buffers may go on growing to the whole card, is not modelled
// and refused by name.
package jax
