// Package program is the intermediate representation of a model's step: a
// graph of ops over tensors with static shapes, and the table of op definitions
// (shape inference, cost, gradients, memory behaviour). The models themselves
// are package zoo's.
//
// It says what is to be computed and what that costs, never where (package
// place), in which order or with which memory (package exec), nor how to
// compute it (native/kernel).
package program
