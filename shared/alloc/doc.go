// Package alloc is what every allocator of device memory has in common: the
// request, the block, the figures, the driver below and the observer beside
// it. The allocators themselves are its subpackages.
//
// An allocator here hands out addresses, not memory: an address is a number in
// the device's address space, and nothing is ever read or written there. The
// same code therefore serves a real card, a virtual one and a rerun in the
// browser, and gives the same addresses on all of them.
//
// Nothing in this package waits, reads a clock or starts a goroutine. Where an
// allocator would put its caller to sleep it tells the Observer, who owns the
// clock. No allocator is safe for concurrent use: the caller serialises.
package alloc
