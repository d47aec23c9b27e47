// Package cuda is the backend of NVIDIA cards, for programs built with the tag
// cuda; without the tag it is empty.
//
// A Driver is the cards of a machine. Each has one goroutine, locked to its
// thread, that alone speaks to the card: work is handed to it through a queue,
// so that the run's own goroutine does not wait for the driver, and errors come
// back later, as CUDA's own do. A Backend is one run on them: per logical device
// a stream each for kernels and for the copies up, down and across.
//
// The allocators of a run hand out the addresses of an abstract space, the same
// ones that a virtual card would give; behind every region of it lies memory
// that cuMemAlloc or cuMemHostAlloc gave. Where the driver refuses, the region
// is refused. A run therefore makes the same allocations, frees and transfers
// at the same addresses on a real card as on a virtual one, which is what makes
// a rerun of it elsewhere mean something.
//
// Times on the lanes of ops and transfers are the card's own, from events
// around every piece of work. They are known only when the work is done, later
// than the executor tells of it; the sink of Backend.Timed holds events back
// until then.
//
// Nothing here decides what lives where or when: that is package exec's.
package cuda
