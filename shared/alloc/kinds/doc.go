// Package kinds is the one place that knows all allocators by name, with their
// options as name=value texts: what the command's --allocator and --set, a
// workload's devices[].allocator and the browser's rerun go by.
//
// A Kind makes an Instance over an Env: the limit, the card and those who
// listen. The same Env serves every kind, so that a trace can be replayed
// through all of them under equal terms.
//
// It knows no files and no workloads, and decides nothing about memory.
package kinds
