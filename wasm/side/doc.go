// Package side is what the page sums files up with that are shown side by side: it
// takes one timeline after the other, keeps what package ranks makes of each, and
// answers with the table so far.
//
// It is exported by the rerun module, which holds a store as the viewer does and
// has room; the page runs it in a worker of its own that ends with the last file.
// It draws nothing and reads timelines only: the reader makes them of other
// programs' files.
package side
