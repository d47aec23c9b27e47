// Command gpu-check runs on a machine with an NVIDIA card what cannot be tested
// without one: numbers against the CPU's, training, the rates of the host link,
// two programs on one card. It prints what it finds and puts the figures into
// docs/measured.md with the date and the card. `go run ./build gpu-check` builds
// and runs it. Without the tag cuda it says so and fails.
package main
