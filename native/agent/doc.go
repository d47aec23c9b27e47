// Package agent is Tideline's native side as a service: it starts and stops
// runs, records them, and serves the page, the HTTP interface and the stream
// of events of package api.
//
// It trusts nobody by default: every request needs the token, names a host
// that is ours, and, when it changes something or opens a stream, comes from
// our own page. What it keeps in memory for others is bounded.
//
// How a run works is shared/launch's, how it is written native/agent/record's,
// and what the page looks like web/ui's: the command plugs that in.
package agent
