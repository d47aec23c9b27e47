// Package launch turns a workload into a running executor: it validates,
// makes the devices and their allocators, builds programs, places them, and
// steps. The agent, the command line and the browser all start runs here.
//
// It opens no file and no socket and reads no clock; what a run computes with
// is the Backend it is given.
package launch
