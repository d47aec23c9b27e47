// Package attach takes a profile from a running TensorFlow or JAX program.
//
// Such a program starts a profiler server, which speaks the gRPC service
// tensorflow.ProfilerService. A call blocks while the server records and then
// yields an XSpace, the profile that shared/ingest/xspace reads. Where it comes
// out depends on the server's age: new ones answer with it, older ones only
// write it into a folder that the caller names, in which case it is read from
// there if the folder can be seen from here, and the error says where it lies
// if not.
//
// The messages are put together and taken apart by field number; there is no
// generated code. Answers are taken apart in package answer, bounded, and
// nothing is read of the profile in them: what it means is for the reader.
package attach
