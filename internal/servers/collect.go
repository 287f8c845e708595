package servers

import (
	"os"
	"runtime/debug"
)

// CollectLess makes garbage collections rare, up to a heap of 1 GiB. Each session of go-zookeeper
// allocates a buffer of 1.5 MB, and tests open sessions by the thousand. Call CollectLess from
// TestMain. The environment variable GOGC takes precedence.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1500)
		debug.SetMemoryLimit(1 << 30)
	}
}
