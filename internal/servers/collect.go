package servers

import (
	"os"
	"runtime/debug"
)

// CollectLess has garbage collected less often, up to a heap of 1 GiB: each
// connection of go-zookeeper brings buffers of 3 MB, and tests open connections by
// the thousand. Call it from TestMain. The environment variable GOGC has the last
// word.
func CollectLess() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
}
