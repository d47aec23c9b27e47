// Package tune finds, for the requests of a program, the smallest limit under
// which an allocator serves them and the allocator's best setting.
//
// More memory does not always help: an allocator that is refused later gives
// back later and may then be in a worse place. So the smallest limit is the
// least one from which on every larger one serves the requests, too. Where an
// allocator heeds its limit only when it is refused, a replay that reached r
// bytes under a limit of l is the replay of every limit from r to l: going down
// from no limit by such steps covers every number (Proven). Where the limit
// shapes the regions themselves it is found by bisection over multiples of a
// granule, and larger ones are tried, close by and at distances that double, up
// to a ceiling; one that fails becomes the lower bound of another bisection. In
// both cases the limit has been replayed and serves, and the one a granule lower
// has been replayed and fails.
//
// The best setting is the one with the smallest limit; of those, the one that
// reserves least; of those, the one with the fewest driver calls; of those, the
// default or the one with the fewest changes. It is searched among the values
// of Axes, which an answer lists, with what was left out and why.
//
// It knows no files, no clock and no threads; work is bounded by calls that are
// replayed.
package tune
