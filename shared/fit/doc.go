// Package fit finds out, by running a workload again with modelled times, what
// makes it fit a card: which settings get it through, the largest batch, the
// smallest limit, and what the peak then consists of.
//
// Nothing here is guessed. Every change that is offered has run to the end
// under the very allocator, and every pair of changes is a run of its own. It
// reads no file and prints nothing; what there is to try comes from package
// finding and from the list of remedies here.
package fit
