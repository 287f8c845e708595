package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func containerRec(path string) rec { return createRec(path, "", 4) }

func ttlRec(path string, ttl time.Duration) rec {
	return createRec(path, "", 5).i64(ttl.Milliseconds())
}

// there requires that the paths with true exist and the paths with false do not.
func there(t *testing.T, s *zkserver.Server, want map[string]bool) {
	t.Helper()
	for path, want := range want {
		if _, ok := s.Get(path); ok != want {
			t.Errorf("%s is there: %v, want %v", path, ok, want)
		}
	}
}

// The server deletes containers that have had children and are empty, and no others.
func TestContainersAreReaped(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 40*time.Second)
		for _, path := range []string{"/never", "/used", "/full", "/used/c"} {
			r.want(0, zkserver.OpCreateContainer, containerRec(path))
		}
		r.create("/full/x", 0)
		r.create("/used/c/x", 0)
		r.want(0, zkserver.OpDelete, deleteRec("/used/c/x"))
		r.want(0, zkserver.OpGetData, watchRec("/used/c"))
		r.want(0, zkserver.OpCloseSession, nil)
		before := s.Zxid()
		time.Sleep(time.Minute - 1)
		there(t, s, map[string]bool{"/used/c": true})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		there(t, s, map[string]bool{"/never": true, "/used": true, "/full": true, "/used/c": false})
		if s.Zxid() != before+1 {
			t.Errorf("zxid %d, want one more than %d", s.Zxid(), before)
		}
		time.Sleep(time.Minute) // a parent that became empty waits for the next run
		synctest.Wait()
		there(t, s, map[string]bool{"/never": true, "/used": false, "/full": true})
	})
}

// ReapNow deletes at once the containers and TTL nodes that are due, and returns their number.
func TestReapNow(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{ExtendedTypes: true})
		r := session(t, s, 40*time.Second)
		r.want(0, zkserver.OpCreateTTL, ttlRec("/a-ttl", time.Second))
		r.want(0, zkserver.OpCreateContainer, containerRec("/c"))
		r.create("/c/x", 0)
		r.want(0, zkserver.OpDelete, deleteRec("/c/x"))
		time.Sleep(time.Second)
		r.want(0, zkserver.OpGetData, watchRec("/a-ttl"))
		r.want(0, zkserver.OpGetChildren, watchRec("/c"))
		r.want(0, zkserver.OpGetChildren, watchRec("/"))
		if n := s.ReapNow(); n != 1 {
			t.Errorf("%d reaped: a ttl must be exceeded", n)
		}
		for _, want := range []event{{2, "/c"}, {4, "/"}} {
			if got := r.event(); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		}
		time.Sleep(time.Millisecond)
		r.want(0, zkserver.OpCreateContainer, containerRec("/d"))
		r.create("/d/x", 0)
		r.want(0, zkserver.OpDelete, deleteRec("/d/x"))
		r.want(0, zkserver.OpGetData, watchRec("/d"))
		if n := s.ReapNow(); n != 2 {
			t.Errorf("%d reaped", n)
		}
		for _, want := range []event{{2, "/d"}, {2, "/a-ttl"}} {
			if got := r.event(); got != want {
				t.Errorf("%v, want %v: containers come first", got, want)
			}
		}
		r.want(0, zkserver.OpCreateTTL, ttlRec("/b-ttl", time.Millisecond))
		s.Stop()
		time.Sleep(time.Second)
		if n := s.ReapNow(); n != 0 {
			t.Errorf("%d reaped by a server that is down", n)
		}
	})
}

// The server deletes TTL nodes that have no children and have not changed for their TTL.
func TestTTLNodesAreReaped(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{ExtendedTypes: true, ReapInterval: time.Second})
		r := session(t, s, 40*time.Second)
		begin := time.Now()
		for _, path := range []string{"/old", "/set", "/parent"} {
			r.want(0, zkserver.OpCreateTTL, ttlRec(path, 2500*time.Millisecond))
		}
		r.create("/parent/x", 0)
		at := func(d time.Duration) {
			time.Sleep(time.Until(begin.Add(d)))
			synctest.Wait()
		}
		at(2 * time.Second)
		r.want(0, zkserver.OpSetData, setRec("/set"))
		at(3*time.Second - 1)
		there(t, s, map[string]bool{"/old": true})
		at(3 * time.Second)
		there(t, s, map[string]bool{"/old": false, "/set": true, "/parent": true})
		at(5*time.Second - 1)
		there(t, s, map[string]bool{"/set": true})
		at(5 * time.Second)
		there(t, s, map[string]bool{"/set": false, "/parent": true})
		r.want(0, zkserver.OpDelete, deleteRec("/parent/x"))
		there(t, s, map[string]bool{"/parent": true})
		at(6 * time.Second)
		there(t, s, map[string]bool{"/parent": false})
	})
}

// A container that never had a child is deleted after NeverUsedTTL.
func TestContainersThatWereNeverUsed(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{NeverUsedTTL: 90 * time.Second})
		r := session(t, s, 40*time.Second)
		r.want(0, zkserver.OpCreateContainer, containerRec("/c"))
		r.want(0, zkserver.OpCloseSession, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		there(t, s, map[string]bool{"/c": true})
		time.Sleep(time.Minute)
		synctest.Wait()
		there(t, s, map[string]bool{"/c": false})
	})
}

// A frozen or stopped server deletes no container, and deletes it when it runs again.
func TestReapingWaitsWhileTheServerDoesNotRun(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 40*time.Second)
		empty := func() {
			r.want(0, zkserver.OpCreateContainer, containerRec("/c"))
			r.create("/c/x", 0)
			r.want(0, zkserver.OpDelete, deleteRec("/c/x"))
		}
		empty()
		s.Freeze()
		time.Sleep(10 * time.Minute)
		there(t, s, map[string]bool{"/c": true})
		s.Thaw()
		time.Sleep(time.Second)
		there(t, s, map[string]bool{"/c": false})
		r = session(t, s, 40*time.Second)
		empty()
		s.Stop()
		time.Sleep(10*time.Minute - 2*time.Second)
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		there(t, s, map[string]bool{"/c": true})
		time.Sleep(time.Minute)
		synctest.Wait()
		there(t, s, map[string]bool{"/c": false})
	})
}
