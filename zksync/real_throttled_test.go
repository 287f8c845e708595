package zksync_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// On a real server that throttles most requests, callers that give up leave no
// contender behind, and callers that stay get the lock. To see this test fail, take
// -127 out of the table of session.ClassOf.
func TestRealThrottledCallersLeaveNothing(t *testing.T) {
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 1,
		zksynctest.RealProperty("throttled_op_wait_time", "10"),
		zksynctest.RealProperty("request_throttle_max_requests", "1"),
		zksynctest.RealProperty("request_throttle_stall_time", "15"))
	const dirs = 4
	var managers []*session.Manager
	for range 4 {
		managers = append(managers, connectReal(t, e.Addr(1), 20*time.Second))
	}
	locked, gaveUp := 0, 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	// over reports whether the callers have done enough: on a busy machine all calls of
	// the first seconds may be given up.
	over := func() bool {
		mu.Lock()
		defer mu.Unlock()
		d := time.Since(begin)
		return d > bounds.Size(2*time.Second, 5*time.Second) && locked > 0 && gaveUp > 0 || d > time.Minute
	}
	for i, m := range managers {
		for j := range 4 * dirs {
			lock := zksync.NewMutex(m, fmt.Sprintf("/throttled/%d", j%dirs))
			wg.Go(func() {
				for round := 0; !over(); round++ {
					patience := time.Duration(10+(7*i+13*j+29*round)%(200+round)) * time.Millisecond
					if j < dirs {
						patience = 30 * time.Second // this one stays
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					err := lock.Lock(ctx)
					cancel()
					if err == nil {
						err = lock.Unlock()
					}
					mu.Lock()
					switch session.ClassOf(err) {
					case session.ClassOK:
						locked++
					case session.ClassCancelled:
						gaveUp++
					default:
						t.Error(err)
					}
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	n := throttledOps(t, e.DirectAddr(1))
	t.Logf("%d requests were throttled; %d locks, %d given up", n, locked, gaveUp)
	if n == 0 || locked == 0 || gaveUp == 0 {
		t.Fatal("this has tested nothing")
	}
	observer := live(t, managers[0])
	for d := range dirs {
		var names []string
		for late := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			var err error
			names, _, err = observer.Children(t.Context(), fmt.Sprintf("/throttled/%d", d))
			if err != nil && session.ClassOf(err) != session.ClassNoNode { // a directory that was never created holds no contender
				t.Fatal(err)
			}
			if len(names) == 0 || time.Now().After(late) {
				break
			}
		}
		if len(names) > 0 {
			t.Errorf("%d contenders left, and no caller waits: %v", len(names), names)
		}
	}
}

// throttledOps is how many requests a server has throttled, as it says itself.
func throttledOps(t *testing.T, address string) (n int) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "mntr"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(answer)) {
		if _, err := fmt.Sscanf(line, "zk_throttled_ops\t%d", &n); err == nil {
			return n
		}
	}
	t.Fatalf("mntr does not tell: %s", answer)
	return 0
}
