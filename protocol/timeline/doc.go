// Package timeline is the .tideline file: a short file header, the blocks of
// package block in order, an index and a footer.
//
// A file is written front to back and is whole at every block's end: killed at
// any moment, it opens up to the last whole block. Index and footer only save
// time. The blocks of a saved stream are a valid file without any of the three.
//
// [Stream] reads from front to back, from a network or a file, and mends as it
// goes: what is damaged is left out, told by [Damage] and marked in the events
// by a Lost. [File] gives random access to blocks, for a viewer that joins or
// resumes. [Writer] writes events or blocks that are encoded already.
//
// It opens no files itself: it takes an io.Reader, io.ReaderAt or io.Writer. It
// does not encode (package block) or interpret (shared/store) events.
package timeline
