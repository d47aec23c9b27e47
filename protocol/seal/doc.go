// Package seal encrypts a timeline before it leaves the machine, so that the
// service which stores it cannot read it: the key travels in the fragment of
// the link, which browsers never send.
//
// The construction is the one that Tink specifies as AES256-GCM-HKDF
// streaming AEAD: a fresh AES key per file from HKDF-SHA256, the content in
// segments of 64 KiB, each under AES-256-GCM with a nonce made of a prefix,
// the segment's number and a flag on the last one. It is the STREAM scheme of
// Hoang, Reyhanitabar, Rogaway and Vizár (CRYPTO 2015), so a segment that was
// left out, repeated, moved or cut off at the end does not go unnoticed. All
// its parts are native in browsers (WebCrypto), hence the page opens a link
// without a byte of cryptography in its module; here they are the standard
// library's.
//
// In front stands a short header of ours: what the file is, how long the
// content is, and whether a key is the right one at all. It is bound to the
// content as Tink's associated data. protocol/FORMAT.md describes it all.
//
// What is not hidden: the length of the content, to the byte, and when it was
// shared. Nothing here knows who may have the key.
package seal
