//go:build race

package zksync_test

// slowdown divides what is only there to be many. .ci/run has those tests without
// the race detector, too.
const slowdown = 10
