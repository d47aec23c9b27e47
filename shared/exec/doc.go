// Package exec runs programs: it asks allocators for memory, orders work from
// a Backend, and tells everything as events. Eager, graph and planned execution
// differ here, and only here, in which tensor lives how long and in who finds
// its address.
//
// Order and addresses are decided on the host and never by how long work
// takes: a reference that a copy holds is dropped when the host next waits for
// the device, or for a swap after kernels of so much modelled time, not when a
// clock says so. The same program with the same settings therefore makes the
// same allocations, frees and transfers on every Backend, whether it computes or
// only counts time. (Config.Timestamps is the exception, and says so.)
//
// In planned mode the graph executor first runs the program on a Backend that
// does nothing. What it asks for and frees then are the lives for which package
// plan finds offsets, so that forwards, views and copies under way count as they
// really are.
//
// Programs that are not known ahead call ops one by one on Handles.
//
// What a program is (package program), where its ops go (package place), where
// a buffer lies in an arena (package plan) and what a kernel computes (the
// Backend) are not decided here.
package exec
