package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/zksynctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program in the background. Its output may be read after its exit
// code has come.
func start(ctx context.Context, args ...string) (code <-chan int, stdout, stderr *bytes.Buffer) {
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, stdout, stderr) }()
	return done, stdout, stderr
}

// Wrong usage ends with the usage status and names the valid forms.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		says string
		code int
	}{
		{"", "want bTest or qTest", misused},
		{"sTest embedded 2", `"sTest embedded 2", want bTest or qTest`, misused},
		{"bTest", "two, the servers and the size, not 0", misused},
		{"bTest embedded", "two, the servers and the size, not 1", misused},
		{"bTest embedded 2 p", "two, the servers and the size, not 3", misused},
		{"bTest embedded two", `"two" is not a number from 1 up`, misused},
		{"bTest embedded 0", `"0" is not`, misused},
		{"bTest host:port 2", "invalid connection string", failed},
		{"qTest", "three, the servers, the count, and p or c, not 0", misused},
		{"qTest embedded 100", "three, the servers, the count, and p or c, not 2", misused},
		{"qTest embedded many p", `"many" is not a number from 1 up`, misused},
		{"qTest embedded 0 c", `"0" is not`, misused},
		{"qTest embedded 100 x", `"x", want p for a producer or c for a consumer`, misused},
		{"qTest host:port 100 c", "invalid connection string", failed},
	} {
		done, stdout, stderr := start(t.Context(), strings.Fields(c.args)...)
		code := <-done
		if code != c.code || !strings.Contains(stderr.String(), c.says) || stdout.Len() > 0 {
			t.Errorf("%q exits with %d, want %d and %q\nstderr: %sstdout: %s", c.args, code, c.code, c.says, stderr, stdout)
		}
		if shown := strings.Contains(stderr.String(), "usage: tutorial"); shown != (c.code == misused) {
			t.Errorf("%q shows the usage: %v", c.args, shown)
		}
	}
}

// order wants everybody to have done one thing before anybody does the next.
func order(t *testing.T, out string, n int) {
	t.Helper()
	steps := []string{"waiting for", "entered", "worked for", "left"}
	last := 0
	counts := make([]int, len(steps))
	for line := range strings.Lines(out) {
		for step, word := range steps {
			if !strings.Contains(line, word) {
				continue
			}
			counts[step]++
			if step == 1 && counts[0] != n || step == 3 && counts[2] != n {
				t.Errorf("%q comes too early:\n%s", line, out)
			}
			last++
		}
	}
	for step, count := range counts {
		if count != n {
			t.Errorf("%d lines with %q, want %d:\n%s", count, steps[step], n, out)
		}
	}
	if last != n*len(steps) {
		t.Errorf("%d lines, want %d:\n%s", last, n*len(steps), out)
	}
}

// The participants of the barrier enter together and leave together.
func TestBarrierOnItsOwnServer(t *testing.T) {
	done, stdout, stderr := start(t.Context(), "bTest", "embedded", "3")
	if code := <-done; code != succeeded || stderr.Len() > 0 {
		t.Fatalf("exits with %d: %s", code, stderr)
	}
	order(t, stdout.String(), 3)
	if !strings.Contains(stdout.String(), "participant 3: entered") {
		t.Errorf("the participants are not told apart:\n%s", stdout)
	}
}

// Two processes, each one participant, enter and leave the barrier together.
func TestBarrierInTwoProcesses(t *testing.T) {
	srv := zksynctest.Start(t)
	one, stdout1, stderr1 := start(t.Context(), "bTest", srv.Addr(), "2")
	two, stdout2, stderr2 := start(t.Context(), "bTest", srv.Addr(), "2")
	if a, b := <-one, <-two; a != succeeded || b != succeeded {
		t.Fatalf("they exit with %d and %d: %s%s", a, b, stderr1, stderr2)
	}
	order(t, stdout1.String(), 1)
	order(t, stdout2.String(), 1)
	if left, _ := srv.Children(barrierPath); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A participant that waits alone says how many were there when it is interrupted.
func TestBarrierInterrupted(t *testing.T) {
	srv := zksynctest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	srv.Inject(zksynctest.Fault{Path: barrierPath + "/_c_*", At: zksynctest.BeforeReply, Do: zksynctest.Call(func() {
		time.AfterFunc(100*time.Millisecond, cancel)
	})})
	done, _, stderr := start(ctx, "bTest", srv.Addr(), "2")
	if code := <-done; code != failed || !strings.Contains(stderr.String(), "1 of 2 were there") {
		t.Errorf("exits with %d: %s", code, stderr)
	}
	if left, _ := srv.Children(barrierPath); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Without a server the barrier test fails with an error that names the address.
func TestBarrierWithoutAServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done, _, stderr := start(ctx, "bTest", "127.0.0.1:1", "2")
	if code := <-done; code != failed || !strings.Contains(stderr.String(), "127.0.0.1:1") {
		t.Errorf("exits with %d: %s", code, stderr)
	}
}
