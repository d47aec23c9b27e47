// Package browser holds what the page needs to open and to make shares: two
// small JavaScript modules on WebCrypto and fetch, without a dependency.
// seal.js does what package protocol/seal does, share.js what native/sharing
// does; a test runs them under Node against the Go side, both ways.
//
// It only carries bytes; package ui serves them among the page's assets.
package browser

import "embed"

// Files are the modules.
//
//go:embed seal.js share.js
var Files embed.FS
