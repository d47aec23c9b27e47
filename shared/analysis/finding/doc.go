// Package finding says what stands out in a timeline besides a failed request:
// what a run's peak consists of, why it ran out of memory in a user's terms,
// tensors that nobody lets go, copies that a placement forces, a device that
// waits for its input, a wider type than needed, a pool that falls to pieces.
//
// Each is a pure function of a store.Timeline. A finding names a culprit and
// the settings to change; whether they help is for a rerun to show, which is
// package fit's. It does not judge a single failed request: that is package
// analysis.
package finding
