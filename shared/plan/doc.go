// Package plan chooses offsets for buffers whose sizes and lifetimes are known
// beforehand, so that buffers alive at the same time do not overlap and the
// top of the highest one, the height, is least.
//
// The floor under every plan is the load: the largest sum of sizes alive at
// one instant. [Greedy] and [BestGreedy] answer at once; [Minimize] goes on
// from there, always with a valid plan in hand, until the plan is proven
// optimal, its budget is spent or it is told to stop. [Check] judges a plan by
// the rules alone and shares no code with the planners. [ReadCSV] and
// [WriteCSV] speak the table format that planners exchange.
//
// Time is half-open: a buffer lives in [Lower, Upper). The package starts no
// goroutines, reads no clock and draws no randomness of its own: the same
// problem and the same budget give the same plan, on every machine.
//
// It does not reorder a schedule: that changes the load itself and belongs to
// whoever makes the schedule.
package plan
