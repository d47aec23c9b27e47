// Package contest replays one program's requests for memory through any
// allocator and measures what came of it: peaks, fragmentation, failures,
// driver calls, side by side.
//
// The requests come from a run's events (Recorder) or from an allocation trace
// (FromTrace). What is replayed are sizes and order, nothing of where the
// original allocator put them. A request that fails is counted and left out:
// the program would have ended there, so figures behind a first failure are of
// a run that never was. Times are not modelled.
//
// It is pure: the command and the browser module both run it.
package contest
