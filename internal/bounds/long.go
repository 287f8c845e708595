package bounds

import (
	"os"
	"testing"
)

// LongEnv is the environment variable that, set to 1, makes a plain go test run the
// tests that take long in real time, too. make test-real and .ci/run set it.
const LongEnv = "ZKSYNC_LONG"

// Size returns full if ZKSYNC_LONG is 1, and small otherwise. A test that takes long at its
// full size proves the same at its small size in a plain go test.
func Size[T any](small, full T) T {
	if os.Getenv(LongEnv) == "1" {
		return full
	}
	return small
}

// Long says that a test takes several seconds of real time, because it waits for real
// servers, and skips the test unless ZKSYNC_LONG is 1.
func Long(tb testing.TB) {
	tb.Helper()
	if os.Getenv(LongEnv) != "1" {
		tb.Skipf("this test takes long in real time: %s=1 runs it, as make test-real and .ci/run do", LongEnv)
	}
}
