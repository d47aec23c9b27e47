// Package ui is Tideline's page: templ components for the one screen, and the
// http.Handler that serves them with the assets under a strict policy.
//
// The page is a shell. Everything it shows comes from the module in the
// worker (package wasm), so the same page works behind an agent and as a
// static file; nothing here knows a runtime, a run or a timeline.
package ui
