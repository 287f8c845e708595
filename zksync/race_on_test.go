//go:build race

package zksync_test

// slowdown divides what is only there to be many.
const slowdown = 10
