// Package rmm is three resources of the RAPIDS memory manager, exact to the
// address: the pool, a coalescing best fit with a free list per stream; bins of
// fixed block sizes over the pool; and the arena, first fit in superblocks that
// belong to a stream each. The limiting adaptor goes over any of them.
//
// Sources: RMM's headers. Exact:
// sizes, addresses within what the driver gives, the order of the searches,
// expansion, what waits for what. Modelled: the driver's addresses, and the
// order in which the pool goes through other streams' lists, which RMM takes
// from the addresses of its events; here it is the order of first use.
// Sizes that halving an expansion leaves crooked are rounded up to 256, as all
// sizes are, where RMM would leave them. An arena whose request fails gets back
// the superblocks that are wholly free; RMM 25.02 takes those with blocks in
// use back, too, so that what comes after lies elsewhere.
//
// A caller's thread is what RMM's arena knows default streams by. Here a
// stream's number stands for either.
//
// It does not run the adaptors for logging and statistics: they change no
// layout of the resource below, and who listens (alloc.Observer) knows more.
package rmm

// Granule is the multiple of every address and size, in bytes.
const Granule = 256

// roundUp is to a whole granule; n must leave room for it.
func roundUp(n int64) int64 { return (n + Granule - 1) &^ (Granule - 1) }
