package bounds

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// childEnv makes the test binary run the tests below that must fail.
const childEnv = "ZKSYNC_BOUNDS_CHILD"

// failing runs one of the tests that must fail in a process of its own.
func failing(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%s has passed", name)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("%s took %v", name, took)
	}
	return string(out)
}

// A test in a bubble that leaves goroutines fails with its own message and with their
// stacks, and the tests behind it run.
func TestGoroutinesAreLeft(t *testing.T) {
	out := failing(t, "TestLeaves|TestComesBehind")
	for _, want := range []string{"the test's own failure", "goroutines are left", "bounds.TestLeaves.func", "--- FAIL: TestLeaves", "--- PASS: TestComesBehind"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "panic: ") {
		t.Errorf("the test has panicked:\n%s", out)
	}
}

// A test in a bubble that never ends is reported and ended, whether the bubble's clock
// goes on or stands still.
func TestNeverEnds(t *testing.T) {
	for name, want := range map[string]string{"TestTicksForEver": "of the bubble's time", "TestStandsStill": "of real time", "TestLimit": "seed 7: the test has not ended after 1s of real time"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := failing(t, name)
			if !strings.Contains(out, "--- FAIL: "+name) || !strings.Contains(out, want) || !strings.Contains(out, "bounds."+name+".func1") {
				t.Errorf("%s", out)
			}
		})
	}
}

// A panic in a bubble stays a panic, and a test that ends in order passes.
func TestOtherwiseAsSynctest(t *testing.T) {
	Bubble(t, func(t *testing.T) {
		begun := time.Now()
		time.Sleep(100 * time.Hour)
		if took := time.Since(begun); took != 100*time.Hour {
			t.Errorf("slept for %v", took)
		}
	})
	if out := failing(t, "TestPanics"); !strings.Contains(out, "panic: as it is") {
		t.Errorf("%s", out)
	}
}

// child reports whether failing runs the test.
func child() bool { return os.Getenv(childEnv) != "" }

// A bubble in which a goroutine is left fails in the child process of TestGoroutinesAreLeft.
func TestLeaves(t *testing.T) {
	if child() {
		Bubble(t, func(t *testing.T) {
			go func() { <-make(chan int) }()
			t.Fatal("the test's own failure")
		})
	}
}

// This test passes in the child process after TestLeaves has failed there.
func TestComesBehind(*testing.T) {}

// A bubble whose clock never stops fails in a child process of TestNeverEnds.
func TestTicksForEver(t *testing.T) {
	if child() {
		bubble(t, time.Hour, time.Minute, func(*testing.T) {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for range tick.C {
			}
		})
	}
}

// A bubble whose clock stands still fails in a child process of TestNeverEnds.
func TestStandsStill(t *testing.T) {
	if child() {
		bubble(t, time.Hour, time.Second, func(*testing.T) {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
		})
	}
}

// A test that exceeds its limit of real time fails in a child process of TestNeverEnds.
func TestLimit(t *testing.T) {
	if child() {
		defer limit("TestLimit, seed 7", time.Second)()
		synctest.Test(t, func(*testing.T) {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
		})
	}
}

// A panic in a bubble stays a panic in the child process of TestOtherwiseAsSynctest.
func TestPanics(t *testing.T) {
	if child() {
		Bubble(t, func(*testing.T) { panic("as it is") })
	}
}
