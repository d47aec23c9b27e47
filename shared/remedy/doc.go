// Package remedy finds out which settings would have served a request that
// failed, by replaying the recorded requests under each of them, and by how
// much the request must shrink where none would.
//
// An input is one of three. A history holds every request since the program
// began, and its replay is exact. A snapshot whose trace begins in the middle
// has a state and a tail: what was live is built up first, under the setting
// that is tried, and the tail follows. A dump has the state alone: it is built
// up, and the failing request follows. How a state is built up is a choice, and
// each Trial says in Assumes what was taken for granted: blocks are asked for
// region by region in the order of addresses, the idle parts between them too,
// which are then given back, so that the holes are there as recorded.
//
// The method is checked before it is believed: the same replay under the
// recorded settings must serve what was served and refuse what was refused. If
// it does not, no trial serves, whatever its replay came to, because the reason
// of the failure lies in requests that the input does not hold. Capacity is
// what the input tells; where it does not, only the bytes needed are told.
// Requests are the same state and requests for those who replay them elsewhere.
//
// Two ways to build a state up prove more than one: where something is assumed,
// a setting serves only if it does so however the state came about, of the ways
// that are tried. Even so it may not have served the program, whose history the
// input does not hold: on made programs of which only the dump is shown, a test
// holds it to four in five. What is not said to serve may serve all the same.
//
// Work is bounded by a number of calls (Options.Budget). The package is pure:
// the command and the browser run it.
package remedy
