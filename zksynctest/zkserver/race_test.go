//go:build race

package zkserver_test

// With the race detector everything takes about ten times as long.
const raceDetector = true
