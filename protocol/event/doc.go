// Package event is Tideline's vocabulary: the kinds of event that a run or a
// foreign file can tell, the ids and units they are told in, and the string
// table they share.
//
// It is imported by everything and imports nothing of ours, so writer, reader,
// store and executor agree on one set of words. It does not encode (package
// block), store (package timeline) or interpret (shared/store) anything.
//
// # Units
//
// Bytes are int64. Time is int64 nanoseconds since the run began, and never
// goes backwards within a stream of events. Ids are dense small integers; what
// they stand for is told once by a facts event or by the string table.
package event
