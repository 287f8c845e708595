package servers

import (
	"flag"
	"strconv"
)

// AtOnce lets n of the tests that have called t.Parallel run at once, where go
// test allows as many as there are processors: those of ours wait most of their
// time, for sessions to expire and for servers to elect, and hardly compute. Call
// it from TestMain, before the tests. The flag -parallel has the last word.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
