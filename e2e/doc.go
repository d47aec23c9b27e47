// Package e2e drives a real Chromium against the real agent: what a person
// does with the page, done by a test.
//
// The tests build the agent's binary, start it on a free port with an empty
// data folder, and watch the browser's console: any error or exception there
// fails the test. They wait for the page's own idle flag, never for time to
// pass. Screenshots are kept in e2e/artifacts, also of a failure.
package e2e
