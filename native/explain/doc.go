// Package explain tells people why a run ran out of memory: half a page for a
// terminal, or JSON with stable names.
//
// It puts into words what packages analysis and ingest find in a log or a
// timeline, says what cannot be concluded, and advises only what follows from
// the facts. Advice about a log is unverified and called so; a run of Tideline's
// own is rerun under the settings that may help, and what passes is told with
// its cost.
package explain
