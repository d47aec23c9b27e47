// Package workerd builds the share Worker and runs it on this machine in the
// real workerd, with Miniflare's R2 and KV: for the conformance test, for the
// browser tests, and for trying a change before it is deployed.
//
// Node and npm fetch Miniflare once, at the version of package-lock.json and
// with its checksums, into node_modules here; nothing is fetched at run time
// and no install script runs. It is a tool of tests and of the build; nothing
// of the product imports it.
package workerd
