//go:build race

package zkserver_test

// The race detector makes all operations about ten times slower.
const raceDetector = true
