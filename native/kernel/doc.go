// Package kernel computes the ops of package program on host memory.
//
// float32 and float64 are computed as they are. float16 and bfloat16 are for
// storage: a kernel widens them to float32, computes, and rounds the result to
// the nearest, ties to even; elementwise ops do so a tile at a time, others
// tensor by tensor in pooled scratch. Integers and bools are computed where
// labels, indices, counters and comparisons need them.
//
// A kernel gets its buffers ready made and allocates nothing once its pools
// are filled. Large calls are shared among the cores, always by cutting the
// outputs into independent pieces, so that a result does not depend on how
// many cores there are; sums go in one order, in double precision where they
// may be long. Kernels of ops that program declares Forwardable are right when
// the output is the input's own memory. What is random depends on the call's
// seed, step and node alone, not on the host.
//
// NaN is never hidden: it wins in Relu, Maximum, Max, ArgMax, TopK and MaxPool.
// Call.CheckNumerics makes it an error.
//
// Matrix products, and with them convolutions, go through gonum's BLAS; with
// the build tag cblas (and cgo) through the C interface of a BLAS library, some
// ten times as fast; with GOEXPERIMENT=simd on amd64 through vectors of our
// own, some three times as fast. The three round differently.
//
// Which memory, when and on which device is not decided here.
package kernel
