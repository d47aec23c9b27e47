// Package blame says who holds the memory of a recorded program, and who keeps
// more of it with every step: by the stack, the op or at least the size of the
// blocks, from the events that any input tells.
//
// It needs no steps: few recorded programs have any. What repeats is seen from
// the use itself, which falls and rises, and what grows from what is left at
// the low points. A trace that is too short for that says so.
//
// It keeps a few bytes for each allocation and free, not the events, and draws
// and replays nothing. Runs of our own, which have steps and categories, are
// judged by package finding.
package blame
