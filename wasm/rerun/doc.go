// Package rerun is what the page's second module does, without a browser: it
// tells which models, cards and demos there are, checks workloads, and runs
// them on the modelled backend, handing out the timeline as bytes.
//
// It is a module of its own, in a worker of its own, so that the module that
// shows timelines stays small and a rerun never holds up a picture. What it
// makes is a .tideline; the viewer takes it as it takes a file. Answers are
// event.Fields in text form: key=value, one a line.
package rerun
