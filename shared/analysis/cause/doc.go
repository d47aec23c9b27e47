// Package cause decides why a request for memory failed.
//
// It is one pure function over a handful of numbers, apart from the rest of
// the analysis so that an executor can call it at the moment of failure
// without pulling in readers or stores. The same function judges a failure
// read from another program's log. It looks at one instant: whether a change
// of settings would have helped is for a rerun to show, not for this package.
package cause
