package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A course is a way in which Lock can go, whose every step is struck in turn.
type course struct {
	name  string
	steps int // that it has at least, so that none goes untested
	// before prepares, with mu for the values that ask later.
	before func(t *testing.T, srv *zksynctest.Server, mu *zksync.Mutex)
	// lock asks for the lock, by Lock where it is nil.
	lock func(ctx context.Context, mu *zksync.Mutex) error
	// ahead are in line in front, and released while the lock is asked for.
	ahead int
}

var courses = []course{
	{name: "first time", steps: 4},
	{name: "known directory", steps: 1, before: func(t *testing.T, _ *zksynctest.Server, mu *zksync.Mutex) { warm(t, mu) }},
	{name: "behind one", steps: 5, ahead: 1},
	{name: "behind three", steps: 7, ahead: 3},
	{name: "data in the directory", steps: 4, before: func(t *testing.T, srv *zksynctest.Server, _ *zksync.Mutex) {
		srv.Create("/locks", nil)
		srv.Create(path, []byte("theirs"))
	}},
	{name: "TryLock", steps: 4, lock: tryLock},
	{name: "TryLock in vain", steps: 5, ahead: 1, lock: tryLock},
	{name: "TryLock in vain, data in the directory", steps: 5, ahead: 1, lock: tryLock, before: func(t *testing.T, srv *zksynctest.Server, _ *zksync.Mutex) {
		srv.Create("/locks", nil)
		srv.Create(path, []byte("theirs"))
	}},
}

var errOccupied = errors.New("TryLock: false")

func tryLock(ctx context.Context, mu *zksync.Mutex) error {
	ok, err := mu.TryLock(ctx)
	if err == nil && !ok {
		return errOccupied
	}
	return err
}

const noAnswer = "cancelled, no answer"

// Every fault comes with the cancellation, at the same moment of the same step.
var strikes = map[string][]zksynctest.Action{
	"cancelled":                  nil,
	"cancelled and disconnected": {zksynctest.Disconnect},
	noAnswer:                     {zksynctest.Drop},
}

// A Lock that is cancelled at any step holds nothing and leaves no znode, and its value can be used again.
func TestCancelledAtEveryStep(t *testing.T) {
	for _, c := range courses {
		for name, faults := range strikes {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply, zksynctest.OnWatch} {
					if at == zksynctest.OnWatch && name == noAnswer {
						continue // no connection loses an event and lives on
					}
					step := 1
					for ; c.struck(t, step, at, faults) && !t.Failed(); step++ {
					}
					if at != zksynctest.OnWatch && step <= c.steps {
						t.Errorf("%v: %d steps, expected %d", at, step-1, c.steps)
					}
				}
			})
		}
	}
}

// struck says whether there is such a step.
func (c course) struck(t *testing.T, step int, at zksynctest.Moment, faults []zksynctest.Action) (hit bool) {
	t.Run(fmt.Sprintf("step %d %v", step, at), func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			mu := zksync.NewMutex(m, path)
			if c.before != nil {
				c.before(t, srv, mu)
				synctest.Wait()
			}
			release := queue(t, srv, c.ahead)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			do := append([]zksynctest.Action{zksynctest.Call(func() { cancel(errEnough) })}, faults...)
			var injected []*zksynctest.Injection
			for _, action := range do {
				injected = append(injected, srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Nth: step, At: at, Do: action}))
			}
			ask := c.lock
			if ask == nil {
				ask = func(ctx context.Context, mu *zksync.Mutex) error { return mu.Lock(ctx) }
			}
			done := make(chan error, 1)
			go func() { done <- ask(ctx, mu) }()
			synctest.Wait()
			release()
			select {
			case err := <-done:
				switch {
				case err == nil:
					unlock(t, mu)
				case errors.Is(err, errOccupied):
				case !errors.Is(err, errEnough) || !errors.Is(err, context.Canceled):
					t.Error("Lock:", err)
				}
			case <-time.After(time.Minute):
				t.Error("Lock has not returned")
			}
			hit = injected[0].Count() > 0
			for _, inj := range injected {
				inj.Remove()
			}
			// The client notices the lost answers when the connection ends.
			srv.Disconnect(live(t, m).ID())
			checkNothingLeft(t, srv, m, mu)
		})
	})
	return hit
}

// queue puts n others in line and returns a function that lets them through.
func queue(t *testing.T, srv *zksynctest.Server, n int) (release func()) {
	var line []*zksync.Mutex
	var waits []<-chan error
	for range n {
		mu := zksync.NewMutex(srv.Connect(t), path)
		line = append(line, mu)
		waits = append(waits, locking(t.Context(), mu))
	}
	return func() {
		for i, mu := range line {
			if err := <-waits[i]; err != nil {
				t.Error(err)
			}
			unlock(t, mu)
			synctest.Wait()
		}
	}
}

// checkNothingLeft waits for a cleanup over a new connection, and fails the test if a
// znode of the lock is left.
func checkNothingLeft(t *testing.T, srv *zksynctest.Server, m *session.Manager, mu *zksync.Mutex) {
	t.Helper()
	time.Sleep(4 * time.Second)
	wantInLine(t, srv, 0)
	if ok, err := zksync.NewMutex(srv.Connect(t), path).TryLock(t.Context()); !ok || err != nil {
		t.Errorf("TryLock afterwards: %v, %v", ok, err)
		return
	}
	waiting := locking(t.Context(), mu)
	time.Sleep(time.Second)
	pending(t, "a second holder's Lock", waiting)
	if left := wantInLine(t, srv, 2); len(left) > 0 {
		srv.Delete(path + "/" + left[0])
	}
	if err := <-waiting; err != nil {
		t.Error("the next Lock:", err)
	}
	unlock(t, mu)
	synctest.Wait()
	wantInLine(t, srv, 0)
	if n := srv.WatchesOf(live(t, m).ID()); n > 8 {
		t.Errorf("%d watches are left", n)
	}
}

// An Unlock that is struck by a fault at any step releases the lock, once.
func TestUnlockAtEveryStep(t *testing.T) {
	for _, action := range []zksynctest.Action{zksynctest.Disconnect, zksynctest.Drop, zksynctest.Delay(time.Second)} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
			t.Run(fmt.Sprint(action, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					mu := zksync.NewMutex(m, path)
					lock(t, mu)
					hit := srv.Inject(zksynctest.Fault{Op: zkserver.OpDelete, At: at, Do: action})
					unlock(t, mu)
					if hit.Count() != 1 {
						t.Error("the fault has not struck")
					}
					checkNothingLeft(t, srv, m, mu)
				})
			})
		}
	}
}
