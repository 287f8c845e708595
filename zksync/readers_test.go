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
)

// Readers of one value share a znode, while it waits and for 50 ms after it was let in.
func TestReadersShareAContender(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		writer, rw := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, writer.Lock(t.Context()))
		var waiting []<-chan error
		for range 20 {
			waiting = append(waiting, start(func() error { return rw.RLock(t.Context()) }))
		}
		wantNames(t, srv, writeName, readName)
		must(t, writer.Unlock())
		for _, done := range waiting {
			over(t, "RLock", done)
		}
		next := start(func() error { return writer.Lock(t.Context()) })
		must(t, rw.RLock(t.Context())) // within the turn
		if ok, err := rw.TryRLock(t.Context()); err != nil || !ok {
			t.Errorf("TryRLock within the turn: %v, %v", ok, err)
		}
		wantNames(t, srv, readName, writeName)
		time.Sleep(51 * time.Millisecond)
		late := start(func() error { return rw.RLock(t.Context()) })
		later := start(func() error { return rw.RLock(t.Context()) })
		wantNames(t, srv, readName, writeName, readName)
		for i := range 22 {
			pending(t, "the writer", next)
			if err := rw.RUnlock(); err != nil {
				t.Errorf("RUnlock %d: %v", i, err)
			}
		}
		over(t, "the writer", next)
		pending(t, "a late reader", late)
		must(t, writer.Unlock())
		over(t, "a late reader", late)
		over(t, "a late reader", later)
		must(t, rw.RUnlock())
		must(t, rw.RUnlock())
		mustBe(t, rw.RUnlock(), zksync.ErrNotHeld, "runlock", path)
		wantNames(t, srv)
	})
}

// A reader that gives up takes no other reader with it, and the last one deletes the shared znode.
func TestReadersGiveUp(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		writer, rw := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, writer.Lock(t.Context()))
		var cancels []context.CancelFunc
		var waiting []<-chan error
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			waiting = append(waiting, start(func() error { return rw.RLock(ctx) }))
		}
		for i := range 3 {
			wantNames(t, srv, writeName, readName)
			cancels[i]()
			mustBe(t, <-waiting[i], context.Canceled, "rlock", path)
		}
		wantNames(t, srv, writeName)
		again := start(func() error { return rw.RLock(t.Context()) })
		wantNames(t, srv, writeName, readName)
		must(t, writer.Unlock())
		over(t, "RLock", again)
		must(t, rw.RUnlock())
	})
}

// RUnlock returns ErrLost for each read that may be lost, and no reader gets in before all of them have returned.
func TestLostReadersAreTold(t *testing.T) {
	for _, what := range waysToLose {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				rw := zksync.NewRWMutex(m, path)
				older, err := rw.RLockContext(t.Context())
				must(t, err)
				time.Sleep(time.Second)
				newer, err := rw.RLockContext(t.Context())
				must(t, err)
				wantNames(t, srv, readName, readName)
				time.Sleep(time.Second)
				lose(t, srv, m, what, path, 0, older, newer)
				next := start(func() error { return rw.RLock(t.Context()) })
				if ok, err := rw.TryRLock(t.Context()); ok || err != nil {
					t.Errorf("TryRLock: %v, %v", ok, err)
				}
				for range 2 {
					pending(t, "a reader that comes before all are told", next)
					mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)
				}
				over(t, "a reader that comes after", next)
				must(t, rw.RUnlock())
				wantNames(t, srv)
			})
		})
	}
}

var waysToLose = []string{"older removed", "newer removed", "session expired"}

// lose costs m one of two holds that look the same, whose znodes are the first-th
// in dir and the one after it, or both. Since no reader knows whose it was, both are told.
func lose(t *testing.T, srv *zksynctest.Server, m *session.Manager, what, dir string, first int, older, newer context.Context) {
	t.Helper()
	switch what {
	case "older removed":
		must(t, srv.Delete(dir+"/"+inLine(srv, dir)[first]))
	case "newer removed":
		must(t, srv.Delete(dir+"/"+inLine(srv, dir)[first+1]))
	default:
		must(t, srv.ExpireSession(live(t, m).ID()))
	}
	synctest.Wait()
	for _, held := range []context.Context{older, newer} {
		if err := context.Cause(held); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("the context of a hold that may be lost ended with %v", err)
		}
	}
}

// A value that lost its readers is occupied until they have been told: a group that is granted meanwhile waits for them
// and keeps no other client out.
func TestReadersWaitForTheLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		rw, other := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, rw.RLock(t.Context()))
		writing := start(func() error { return other.Lock(t.Context()) })
		time.Sleep(time.Second)
		reading := start(func() error { return rw.RLock(t.Context()) })
		wantNames(t, srv, readName, writeName, readName)
		must(t, srv.Delete(path+"/"+inLine(srv, path)[0]))
		over(t, "the writer", writing)
		must(t, other.Unlock())
		pending(t, "a reader beside a lost one", reading)
		wantNames(t, srv)
		mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)
		over(t, "the reader", reading)
		must(t, rw.RUnlock())
	})
}

// The contexts of the readers of one value end with their cause when the last reader has left, and the context of RDo
// with its function.
func TestReadContexts(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		rw := zksync.NewRWMutex(m, path)
		ended := func(held context.Context, want error) {
			t.Helper()
			synctest.Wait()
			if err := context.Cause(held); !errors.Is(err, want) {
				t.Errorf("a context has ended with %v, want %v", err, want)
			}
		}
		long, err := rw.RLockContext(t.Context())
		must(t, err)
		for range 5 {
			time.Sleep(time.Second) // each in a group of its own
			parent, cancel := context.WithCancelCause(t.Context())
			short, err := rw.RLockContext(parent)
			must(t, err)
			must(t, rw.RUnlock())
			ended(long, nil)
			ended(short, nil)
			cancel(errEnough)
			ended(short, errEnough)
		}
		var done context.Context
		must(t, rw.RDo(t.Context(), func(held context.Context) error {
			done = held
			return held.Err()
		}))
		ended(done, zksync.ErrReleased)
		must(t, rw.RUnlock())
		ended(long, zksync.ErrReleased)

		held, err := rw.RLockContext(t.Context())
		must(t, err)
		must(t, m.Close())
		ended(held, zksync.ErrClosed)
		err = rw.RUnlock()
		mustBe(t, err, zksync.ErrClosed, "runlock", path)
		mustBe(t, err, zksync.ErrLost, "runlock", path)
		mustBe(t, rw.RLock(t.Context()), zksync.ErrClosed, "rlock", path)
	})
}

// A waiting reader fails with ErrClosed when its Manager is closed, and leaves nothing.
func TestReadersAtTheEndOfTheManager(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		rw, other := zksync.NewRWMutex(m, path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, other.Lock(t.Context()))
		waiting := start(func() error { return rw.RLock(t.Context()) })
		must(t, m.Close())
		mustBe(t, <-waiting, zksync.ErrClosed, "rlock", path)
		wantNames(t, srv, writeName)
	})
}

// An RLock that is cancelled at any step holds nothing and leaves no znode, and a try that fails leaves none either.
func TestRLockCancelledAtEveryStep(t *testing.T) {
	for _, try := range []bool{false, true} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.BeforeReply} {
			for _, fault := range []zksynctest.Action{{}, zksynctest.Disconnect, zksynctest.Drop} {
				for step := 1; step <= 8; step++ {
					t.Run(fmt.Sprintf("try %v, step %d %v %v", try, step, at, fault), func(t *testing.T) {
						bubble(t, func(t *testing.T, srv *zksynctest.Server) {
							m := srv.Connect(t)
							rw, writer := zksync.NewRWMutex(m, path), zksync.NewRWMutex(srv.Connect(t), path)
							must(t, writer.Lock(t.Context()))
							cancelledAt(t, srv, m, step, at, fault, func(ctx context.Context) error {
								if !try {
									return rw.RLock(ctx)
								}
								ok, err := rw.TryRLock(ctx)
								if ok {
									t.Error("TryRLock beside a writer: true")
								}
								return err
							})
							wantNames(t, srv, writeName)
							must(t, writer.Unlock())
							must(t, rw.RLock(t.Context()))
							must(t, rw.RUnlock())
							wantNames(t, srv)
						})
					})
				}
			}
		}
	}
}

// cancelledAt cancels acquire at a step of the session's, with a fault, or once
// it waits for something else.
func cancelledAt(t *testing.T, srv *zksynctest.Server, m *session.Manager, step int, at zksynctest.Moment, fault zksynctest.Action, acquire func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	f := zksynctest.Fault{Session: live(t, m).ID(), Nth: step, At: at, Do: zksynctest.Call(func() { cancel(errEnough) })}
	first := srv.Inject(f)
	f.Do = fault
	second := srv.Inject(f)
	done := start(func() error { return acquire(ctx) })
	time.Sleep(5 * time.Second)
	cancel(errEnough)
	if err := <-done; err != nil && !errors.Is(err, errEnough) {
		t.Errorf("cancelled: %v", err)
	}
	first.Remove()
	second.Remove()
	must(t, srv.Disconnect(live(t, m).ID())) // the client notices the lost answer
	time.Sleep(5 * time.Second)
}

// A reader whose shared znode another client deleted learns of it by its context and by RUnlock.
func TestRemovedReaderIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		rw := zksync.NewRWMutex(srv.Connect(t), path)
		held, err := rw.RLockContext(t.Context())
		must(t, err)
		must(t, rw.RLock(t.Context()))
		time.Sleep(time.Second)
		must(t, srv.Delete(path+"/"+inLine(srv, path)[0]))
		synctest.Wait()
		if err := context.Cause(held); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("the context ended with %v", err)
		}
		mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)
		mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)

		// Before the guard has looked, the last release finds out.
		must(t, rw.RLock(t.Context()))
		must(t, srv.Delete(path+"/"+inLine(srv, path)[0]))
		mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)

		// And then nobody knows whose it was.
		must(t, rw.RLock(t.Context()))
		time.Sleep(60 * time.Millisecond)
		must(t, rw.RLock(t.Context()))
		wantNames(t, srv, readName, readName)
		must(t, srv.Delete(path+"/"+inLine(srv, path)[0]))
		mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)
		mustBe(t, rw.RUnlock(), zksync.ErrLost, "runlock", path)
		wantNames(t, srv)
		if n := srv.Watches(); n != 0 {
			t.Errorf("%d watches left", n)
		}
	})
}
