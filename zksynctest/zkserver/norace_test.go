//go:build !race

package zkserver_test

const raceDetector = false
