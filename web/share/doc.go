// Package share keeps timelines that people pass on by link, for a while.
//
// It is one http.Handler over a Store. The same code runs on a folder of the
// agent's machine (Disk) and in a Cloudflare Worker, with R2 for content and
// KV for metadata (the files ending in _js.go, and folder worker); one
// conformance test holds both to the same behaviour. What is said on the wire
// stands in package protocol/share.
//
// It cannot read what it keeps: files arrive sealed, and the key stays behind
// the # of a link. Anyone with a link may read; only who holds the owner's
// token may add to, finish or delete a share; nothing is ever listed.
//
// Nothing is sent to other origins: no CORS header is set, requests that
// change something and come from another origin are refused, and content is
// served as an attachment in a sandbox, so it cannot become a page of ours.
//
// Metadata is written to the Store, which must be consistent, before anything
// is said to be done. An Index, which KV is, may lag by a minute; it is
// believed only when it says that a share is complete, which never becomes
// untrue except by expiry, which it states, and deletion, which takes the
// content away.
package share
