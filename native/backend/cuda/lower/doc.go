// Package lower turns the ops of package program into what a card is told to
// do: launches of the kernels of package ptx, fills and moves of memory, and
// products of matrices, each with its arguments.
//
// It knows no driver and runs anywhere, so that a test can take an op through
// it and through an interpreter of the kernels' text and compare the result
// with the CPU's.
package lower
