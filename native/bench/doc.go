// Package bench measures Tideline's own speeds on this machine: the command's
// "bench". What runs in a browser too is in shared/yardstick; here is what only
// a process has, which is a clock, kernels, recorded traces, and Node to run
// WebAssembly with.
//
// All tasks run in turn, round after round, so that a moment in which the
// machine is busy falls on all of them alike, and the fastest round of each
// counts. Traces of allocators are timed in stretches of which each counts at
// its fastest (yardstick.Stopwatch), natively and as WebAssembly, so that the
// ratios are steady on a machine that others use too. Most tasks have a
// yardstick: a plain implementation of the same thing, or someone else's, at
// the same moment.
package bench
