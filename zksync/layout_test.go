package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The znodes of a Mutex have the names of Curator's InterProcessMutex.
func TestNamesAreThoseOfCurator(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		lock(t, zksync.NewMutex(srv.Connect(t), path))
		form := regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-lock-0000000000$`)
		if name := wantInLine(t, srv, 1)[0]; !form.MatchString(name) {
			t.Errorf("a contender is named %s", name)
		}
	})
}

// A Mutex waits for znodes of other clients before its own, and ignores those behind.
func TestOthersInLine(t *testing.T) {
	for _, name := range []string{
		"_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-", "0f8fad5bd9cb469fa16570867728950e__lock__", "lock-",
		"x-72057628245819392-", "x--9151313343305220096-",
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			mu := zksync.NewMutex(srv.Connect(t), path)
			warm(t, mu)
			theirs := live(t, srv.Connect(t))
			create := func() string {
				p, err := theirs.Create(t.Context(), path+"/"+name, nil, zk.FlagEphemeralSequential)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			front := create()
			waiting := locking(t.Context(), mu)
			time.Sleep(time.Minute)
			pending(t, "Lock behind "+front, waiting)
			if ok, err := zksync.NewMutex(srv.Connect(t), path).TryLock(t.Context()); ok || err != nil {
				t.Errorf("TryLock behind %s: %v, %v", front, ok, err)
			}
			behind := create()
			if err := theirs.Delete(t.Context(), front, -1); err != nil {
				t.Fatal(err)
			}
			if err := <-waiting; err != nil {
				t.Errorf("in front of %s: %v", behind, err)
			}
			unlock(t, mu)
		})
	}
}

// Children that other programs created in a directory of locks are ignored.
func TestForeignChildrenAreIgnored(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		mu := zksync.NewMutex(srv.Connect(t), path)
		warm(t, mu)
		for _, name := range []string{"a", "config", "lock", "x-lock-", "x-lock-12345", "x-lock-000000000x", "x-0000000000", "x--0000000000", "x---0000000000", "x-7-12345", "y-7-0000000000", "x-7a-0000000000", "leases", "zz__READ__0000000000", "-lock-99999999999"} {
			if err := srv.Create(path+"/"+name, nil); err != nil {
				t.Fatal(err)
			}
		}
		warm(t, mu)
		if ok, err := mu.TryLock(t.Context()); !ok || err != nil {
			t.Errorf("TryLock: %v, %v", ok, err)
		}
		unlock(t, mu)
	})
}

// Data that was in a directory before its first use stays there.
func TestDataInTheDirectoryStays(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		srv.Create("/locks", nil)
		srv.Create(path, []byte("theirs"))
		mu := zksync.NewMutex(srv.Connect(t), path)
		warm(t, mu)
		other := zksync.NewMutex(srv.Connect(t), path)
		lock(t, mu)
		waiting := locking(t.Context(), other)
		pending(t, "Lock", waiting)
		unlock(t, mu)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		unlock(t, other)
		if data, _ := srv.Get(path); string(data) != "theirs" {
			t.Errorf("the directory holds %q now", data)
		}
	})
}

// A lock works in a directory whose data may not be written.
func TestDirectoryThatForbidsWriting(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		if err := s.MakeDir(t.Context(), "/locks"); err != nil {
			t.Fatal(err)
		}
		acl := zk.WorldACL(zk.PermRead | zk.PermCreate | zk.PermDelete)
		if _, err := s.Create(t.Context(), path, nil, 0, acl...); err != nil {
			t.Fatal(err)
		}
		mu := zksync.NewMutex(m, path)
		warm(t, mu)
		srv.ResetOps()
		_, token := hold(t, mu)
		unlock(t, mu)
		if got := names(requests(srv)); got != "multi getData getChildren2 delete" && got != "multi getChildren2 getData delete" {
			t.Errorf("asked %s", got)
		}
		if _, again := hold(t, mu); again <= token {
			t.Errorf("token %d after %d", again, token)
		}
		unlock(t, mu)
	})
}

// On a server without containers the directories are plain znodes, and the server is asked for containers once.
func TestServerWithoutContainers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		warm(t, zksync.NewMutex(m, path))
		srv.ResetOps()
		warm(t, zksync.NewMutex(m, "/locks/another"))
		for _, op := range requests(srv) {
			if op.Code == zkserver.OpCreateContainer {
				t.Error("a server that has no containers was asked for one again")
			}
		}
		wantInLine(t, srv, 0)
	}, zksynctest.WithConfig(zkserver.Config{Without: []zkserver.OpCode{zkserver.OpCreateContainer}}))
}

// When the sequence numbers of a directory are used up the directory is created anew, and at no time do two contenders
// hold the lock.
func TestDirectoryWithASpentCounter(t *testing.T) {
	const left = 8 // numbers, up to 2147483647
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ms := []*session.Manager{srv.Connect(t), srv.Connect(t), srv.Connect(t)}
		warm(t, zksync.NewMutex(ms[0], path))
		if err := srv.SetNextSequence(path, 2147483640); err != nil {
			t.Fatal(err)
		}
		w := &witness{t: t}
		done := make(chan struct{})
		const n = 3 * left
		for i := range n {
			mu := zksync.NewMutex(ms[i%3], path)
			go func() {
				defer func() { done <- struct{}{} }()
				ctx, _ := hold(t, mu)
				w.hold(worker(i), ctx, time.Second)
				unlock(t, mu)
			}()
			synctest.Wait()
		}
		for range n {
			<-done
		}
		if w.passed != n {
			t.Errorf("%d of %d held", w.passed, n)
		}
		wantInLine(t, srv, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := zksync.NewMutex(ms[0], path).Lock(ctx); err != nil {
			t.Error(err)
		}
	})
}

// TryLock takes a free lock also when the sequence numbers of its directory are used up.
func TestTryLockWithASpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		// A directory of kazoo's stays when it is empty, so only a contender creates it anew.
		mu := zksync.NewMutex(srv.Connect(t), path, zksync.WithLayout(zksync.LayoutKazoo))
		warm(t, mu)
		for range 3 {
			must(t, srv.SetNextSequence(path, 2147483647))
			ok, err := mu.TryLock(t.Context())
			if !ok || err != nil {
				t.Fatalf("TryLock of a free lock: %v, %v", ok, err)
			}
			unlock(t, mu)
		}
	})
}

// When the sequence numbers of a directory are used up and only children of other programs are left, which no client of
// the primitive deletes, an acquisition fails and names these children.
func TestSpentCounterBesideForeignChildren(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		mu, sem := zksync.NewMutex(m, path), zksync.NewSemaphore(m, "/s", 2)
		warm(t, mu)
		must(t, sem.Acquire(t.Context(), 2))
		must(t, sem.Release(2))
		for _, dir := range []string{path, "/s/locks"} {
			must(t, srv.Create(dir+"/notes", nil))
			must(t, srv.SetNextSequence(dir, 2147483647))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		calls := map[string]func() error{
			"Lock":       func() error { return mu.Lock(ctx) },
			"TryLock":    func() error { _, err := mu.TryLock(ctx); return err },
			"Acquire":    func() error { return sem.Acquire(ctx, 2) },
			"TryAcquire": func() error { _, err := sem.TryAcquire(ctx, 2); return err },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, zk.ErrNotEmpty) || !strings.Contains(fmt.Sprint(err), "notes") {
				t.Errorf("%s: %v, want an error that names the child", name, err)
			}
		}
		for _, dir := range []string{path, "/s/locks"} {
			must(t, srv.Delete(dir+"/notes"))
		}
		for name, call := range calls {
			if err := call(); err != nil {
				t.Errorf("%s after the child was deleted: %v", name, err)
			}
			_, _ = mu.Unlock(), sem.Release(2)
		}
	})
}

// When the sequence numbers of the directory of an RWMutex are used up, a reader waits until the other readers have
// left.
func TestReadersWithASpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, a.RLock(t.Context()))
		must(t, srv.SetNextSequence(path, 2147483647))
		if ok, err := b.TryRLock(t.Context()); ok || err != nil {
			t.Errorf("TryRLock beside a reader: %v, %v", ok, err)
		}
		next := start(func() error { return b.RLock(t.Context()) })
		time.Sleep(time.Minute)
		pending(t, "RLock beside a reader", next)
		must(t, a.RUnlock())
		over(t, "RLock of a free lock", next)
		must(t, b.RUnlock())
	})
}

// A Mutex and go-zookeeper's own Lock on the same path exclude each other.
func TestStockLockContends(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		conn, _, err := zk.Connect([]string{srv.Address()}, 10*time.Second, zk.WithLogInfo(false))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		theirs := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
		m := srv.Connect(t)
		ours := zksync.NewMutex(m, path)

		if err := theirs.Lock(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := ours.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("Lock beside a holder:", err)
		}
		cancel()
		got := make(chan int64)
		go func() {
			_, token := hold(t, ours)
			got <- token
		}()
		if err := theirs.Unlock(); err != nil {
			t.Fatal(err)
		}
		token := <-got
		other := make(chan error, 1)
		go func() { other <- theirs.Lock() }()
		s := live(t, m)
		for { // until it is in line
			names, _, events, err := s.ChildrenW(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if len(names) == 2 {
				break
			}
			<-events
		}
		select {
		case err := <-other:
			t.Error("go-zookeeper's Lock beside ours:", err)
		default:
		}
		unlock(t, ours)
		if err := <-other; err != nil {
			t.Fatal(err)
		}
		if err := theirs.Unlock(); err != nil {
			t.Fatal(err)
		}
		if _, again := hold(t, ours); again <= token {
			t.Errorf("token %d after %d", again, token)
		}
		unlock(t, ours)
	})
}
