// Package share is what the share service and its clients say to each other:
// the manifest of an upload, the link, the answers and the errors.
//
// A share is a file in chunks. Its manifest lists the SHA-256 of each chunk
// together with a random salt, and the share's id is a hash over the manifest.
// So an id cannot be guessed, not even by somebody who has the file; whoever
// holds a link can check every byte; and an upload that broke off is resumed
// by asking for the same manifest again, which is the same share. Every
// request may be repeated without harm.
//
// It knows nothing of encryption: the service sees sealed bytes (package
// seal). It holds no HTTP, so that the page's module could use it.
package share
