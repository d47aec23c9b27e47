// Package pickle reads Python pickles, protocols 0 to 5, as data.
//
// A pickle is a program for a stack machine, and some of its opcodes import
// names and call them. This reader builds numbers, texts, lists, tuples, sets
// and dicts, and nothing else: an opcode that would run code is refused with
// the name that it would have called. The only calls understood are those that
// make an empty collections.OrderedDict or collections.defaultdict.
//
// It reads a stream once, front to back. No length in the file is believed: a
// text grows with the bytes that arrive, a gap in the memo costs nothing, and
// what is built counts against a limit that the error names.
//
// # Values
//
// A Value is eight bytes: small integers stand in it, everything else is a
// number into tables of the Machine, which reads them back. Texts are kept
// once. A Sink is offered every dict, list and tuple when it is filled, and can
// put a Value of its own in its place, so that a reader of a known layout files
// a million like dicts into columns instead of building a million dicts.
package pickle
