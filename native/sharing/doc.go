// Package sharing passes timelines on by link: it seals a file, uploads it to
// a share service, and opens what others shared. `tideline share FILE` and
// `tideline open LINK` are thin around it.
//
// Connections break, so every request is one that may be repeated, and is,
// with growing waits, until no attempt makes progress any more. An upload that
// was given up is resumed by sharing the file again: the sealed bytes, the key
// and what was sent are kept in a folder of the user's until it is complete.
// The key is made here, stays here, and leaves in the link alone.
package sharing
