//go:build race

package zksync_test

// slowdown divides the sizes of large tests. .ci/run runs these tests without the
// race detector, too.
const slowdown = 10
