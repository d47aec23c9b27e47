//go:build !cuda

package main

// openCards looks for none in this build.
func openCards() *cards { return virtualOnly("") }
