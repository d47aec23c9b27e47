// Package workfile reads and writes workloads as text: YAML, and JSON, which
// is YAML's flow style. Every problem it reports carries the line.
//
// It is apart from package api so that the browser module carries no YAML
// reader. What a field means and which values are possible is api's; this
// package knows only how text becomes the flat fields that api.Workload.Set
// takes.
package workfile
