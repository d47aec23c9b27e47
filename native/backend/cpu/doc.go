// Package cpu is the backend that computes on the host: real memory off the Go
// heap, real arithmetic, a real clock. It drives /CPU:0 alone.
//
// Its Memory and its way to run a kernel also serve the virtual GPU (package
// vgpu), which differs only in that its clock is modelled.
package cpu
