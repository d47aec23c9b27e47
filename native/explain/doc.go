// Package explain tells people why a run ran out of memory: half a page for a
// terminal, or JSON with stable names.
//
// It puts into words what packages analysis and ingest find in a log or a
// timeline, says what cannot be concluded, and advises only what follows from
// the facts. It reruns nothing, so it calls its advice unverified.
package explain
