// Package kernel computes the ops of package program on host memory: float32
// arithmetic, with integers and bools where labels and comparisons need them.
//
// A kernel gets its buffers ready made and allocates nothing, but for the
// goroutines that share a large matrix product; scratch for transposed filters
// is pooled. Results do not depend on the number of cores. Kernels of ops that program declares Forwardable are right
// when the output is the input's own memory.
//
// Which memory, when and on which device is not decided here.
package kernel
