package bounds

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A test in a bubble that waits for something that never happens does not end by
// itself: sessions ping for ever, so the bubble's clock goes on. A goroutine that spins,
// or that waits for a sync.Mutex, stops the clock instead. Both would last until the
// time limit of go test, which is ten minutes.
const (
	bubbleTime = 200 * time.Hour  // longer than the longest test
	realTime   = 90 * time.Second // longer than the slowest test with the race detector on a busy machine
)

// Bubble runs test in a bubble, as synctest.Test does. If goroutines are left when test
// has ended, the test fails with their stacks, and the other tests go on: synctest.Test
// panics. If test does not end within 200 hours of the bubble's time or 90 s of real
// time, the process ends with the stacks of the goroutines in bubbles, since nothing
// can end them.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	bubble(t, bubbleTime, realTime, test)
}

func bubble(t *testing.T, bubbleTime, realTime time.Duration, test func(t *testing.T)) {
	t.Helper()
	defer limit(t.Name(), realTime)()
	defer func() {
		if r := recover(); r != nil {
			if !strings.Contains(fmt.Sprint(r), "blocked goroutines remain") {
				panic(r)
			}
			t.Errorf("goroutines are left when the test has ended:\n%s", stacks())
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		tooLong := time.AfterFunc(bubbleTime, func() { give(t.Name(), fmt.Sprintf("%v of the bubble's time", bubbleTime)) })
		defer tooLong.Stop()
		test(t)
	})
}

// Run calls run, which makes a bubble of its own. If run does not return within 90 s of
// real time, the process ends with the stacks of the goroutines in bubbles. name says
// what was running.
func Run(name string, run func()) {
	defer limit(name, realTime)()
	run()
}

// limit ends the process unless stop is called within d.
func limit(name string, d time.Duration) (stop func() bool) {
	return time.AfterFunc(d, func() { give(name, fmt.Sprintf("%v of real time", d)) }).Stop
}

// give ends the process with a report.
func give(name, after string) {
	fmt.Printf("--- FAIL: %s: the test has not ended after %s. The goroutines in bubbles:\n%s\n", name, after, stacks())
	os.Exit(1)
}

var inBubble = regexp.MustCompile(`^goroutine \d+ \[[^\]]*synctest bubble \d+`)

// stacks returns the stacks of the goroutines in bubbles.
func stacks() string {
	buf := make([]byte, 16<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var all []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if inBubble.MatchString(stack) && !strings.Contains(stack, "internal/bounds.stacks") {
			all = append(all, stack)
		}
	}
	const most = 40
	if len(all) > most {
		all = append(all[:most], fmt.Sprintf("and %d more goroutines", len(all)-most))
	}
	return strings.Join(all, "\n\n")
}
