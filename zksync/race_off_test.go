//go:build !race

package zksync_test

const slowdown = 1
