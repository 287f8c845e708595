package servers

import (
	"flag"
	"strconv"
)

// AtOnce lets n of the tests that have called t.Parallel run at once, where go test
// allows as many as there are processors. Our parallel tests hardly compute: they
// wait for sessions to expire and for servers to elect. Call it from TestMain, before
// the tests. The flag -parallel has the last word.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}
