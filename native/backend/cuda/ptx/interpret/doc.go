// Package interpret runs the kernels of package ptx on the host, from their
// text, so that tests see what an NVIDIA card would compute without having
// one. It knows the instructions that package ptx emits and no others, checks
// every address, and runs the threads of a block one after the other from
// barrier to barrier. It is for tests: nothing else should be this slow.
package interpret
