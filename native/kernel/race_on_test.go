//go:build race

package kernel_test

// raceDetector is on: pools then drop what they are given at random.
const raceDetector = true
