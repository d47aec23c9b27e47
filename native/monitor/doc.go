// Package monitor sees the NVIDIA cards of this machine from outside: how much
// of their memory is used, by which processes, and how busy they are. It takes
// NVML, the library that comes with NVIDIA's driver, in programs built with the
// tag cuda, and /proc for the names and the memory of processes.
//
// It holds no memory of a card and starts no context, so that looking changes
// nothing. Where the library is not there it says why in one line.
package monitor
