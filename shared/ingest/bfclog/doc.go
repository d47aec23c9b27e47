// Package bfclog reads the out-of-memory text that allocators of the
// best-fit-with-coalescing family print: TensorFlow since 2016, and the short
// form that JAX prints.
//
// People paste such text cut, quoted, wrapped, with the prefixes of a log
// collector or with other programs' lines between, so the reader looks for
// what each line says and trusts no line numbers, no order and no
// completeness. Read returns one Dump per failure; whatever a text does not
// contain stays unknown in it, never zero. It reports what is written and does
// not judge: package analysis does.
//
// The layout is described in docs/formats/bfc-oom-log.md.
package bfclog
