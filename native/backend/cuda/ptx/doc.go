// Package ptx makes the kernels of the CUDA backend as text in NVIDIA's
// intermediate language, PTX, which the driver compiles for whatever card is
// there. No CUDA compiler takes part: a small builder emits the instructions,
// so that the source of every kernel is in this repository and the text is the
// same everywhere.
//
// A kernel is written once for all cards: no tensor cores, no asynchronous
// copies, plain float32 with the accuracy of a float32. Products of matrices go
// through a tile in shared memory, which is decent but no match for cuBLAS; the
// backend takes that instead where it is found.
//
// The package only makes text and says how each kernel is called. It loads and
// launches nothing.
package ptx
