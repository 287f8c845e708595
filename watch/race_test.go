//go:build race

package watch_test

// raceEnabled says that times mean nothing: the race detector slows us down, and
// the server not at all if it is another process.
const raceEnabled = true
