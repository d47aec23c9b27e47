// Package exec runs programs: it asks allocators for memory, orders work from
// a Backend, and tells everything as events. Eager and graph execution differ
// here, and only here, in which tensor lives how long.
//
// Order and addresses are decided on the host and never by how long work
// takes: a reference that a copy holds is dropped when the host next waits for
// the device, not when a clock says so. The same program with the same
// settings therefore makes the same allocations, frees and transfers on every
// Backend, whether it computes or only counts time.
//
// What a program is (package program), where its ops go (package place) and
// what a kernel computes (the Backend) are not decided here.
package exec
