// Package assets holds the page's static files: styles, the small hand-written
// JavaScript, the icon, and, in dist/, what the build makes: the browser's
// modules, compressed copies of them, and the toolchain's wasm_exec.js.
//
// It only carries bytes; package ui serves them. A fresh clone has an empty
// dist/, so a missing module is a state to report, not a build failure.
package assets

import "embed"

// Static are the files that are written by hand.
//
//go:embed *.css *.js *.svg
var Static embed.FS

// Dist is the folder dist with what `go run ./build wasm` wrote there.
//
//go:embed all:dist
var Dist embed.FS
