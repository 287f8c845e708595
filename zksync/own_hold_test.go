package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Do and Run end the hold that they acquired and no other: a hold that the value has
// acquired since stays. To see this test fail, end Mutex.Do with Unlock, RDo with
// RUnlock, Semaphore.Do with Release, and Run with Resign.
func TestDoEndsItsOwnHoldAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(ctx context.Context, st *stage) (release func() error, result error)
		fails error
	}{
		{"Mutex.Do", func(ctx context.Context, st *stage) (func() error, error) {
			mu := zksync.NewMutex(st.m, stagePath)
			err := mu.Do(ctx, func(context.Context) error {
				st.must(mu.Unlock())
				return mu.Lock(ctx)
			})
			return mu.Unlock, err
		}, zksync.ErrNotHeld},
		{"RWMutex.Do", func(ctx context.Context, st *stage) (func() error, error) {
			rw := zksync.NewRWMutex(st.m, stagePath)
			err := rw.Do(ctx, func(context.Context) error {
				st.must(rw.Downgrade(ctx))
				st.must(rw.RUnlock())
				return rw.Lock(ctx)
			})
			return rw.Unlock, err
		}, zksync.ErrNotHeld},
		{"Election.Run", func(ctx context.Context, st *stage) (func() error, error) {
			e := zksync.NewElection(st.m, stagePath)
			worked := false
			err := e.Run(ctx, func(context.Context) error {
				if worked {
					return errors.New("Run has ended the later hold, and leads again")
				}
				worked = true
				st.must(e.Resign())
				_, err := e.Campaign(ctx)
				return err
			})
			return e.Resign, err
		}, zksync.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				st := newStage(t, srv)
				release, err := c.do(t.Context(), st)
				if !errors.Is(err, c.fails) {
					t.Errorf("error %v, want %v", err, c.fails)
				}
				if err := release(); err != nil {
					t.Errorf("the later hold was ended: %v", err)
				}
				st.checkNothing()
			})
		})
	}
}

// The holds of RDo, and of a Semaphore's Do, are released when these calls return, and not by another release: holds
// need not be released in the order of their acquisition.
func TestSharedDoEndsItsOwnHoldAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(st *stage) (do func(context.Context, func(context.Context) error) error, acquire func(context.Context) error, release func() error)
	}{
		{"RWMutex.RDo", func(st *stage) (func(context.Context, func(context.Context) error) error, func(context.Context) error, func() error) {
			rw := zksync.NewRWMutex(st.m, stagePath)
			return rw.RDo, rw.RLock, rw.RUnlock
		}},
		{"Semaphore.Do", func(st *stage) (func(context.Context, func(context.Context) error) error, func(context.Context) error, func() error) {
			s := zksync.NewSemaphore(st.m, stagePath, 2)
			return func(ctx context.Context, fn func(context.Context) error) error { return s.Do(ctx, 1, fn) },
				func(ctx context.Context) error { return s.Acquire(ctx, 1) },
				func() error { return s.Release(1) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				st := newStage(t, srv)
				do, acquire, release := c.prepare(st)
				ephemerals := func() int { return len(srv.Sessions()[1].Ephemerals) }
				if id := live(t, st.m).ID(); srv.Sessions()[1].ID != id {
					t.Fatalf("session %#x is not the second", id)
				}
				err := do(t.Context(), func(ctx context.Context) error {
					time.Sleep(time.Second) // so that readers do not share a znode
					st.must(acquire(ctx))
					if n := ephemerals(); n != 2 {
						t.Errorf("%d znodes for two holds", n)
					}
					st.must(release())
					if n := ephemerals(); n != 1 {
						t.Errorf("%d znodes for the hold of Do", n)
					}
					if err := release(); !errors.Is(err, zksync.ErrNotHeld) {
						t.Errorf("a release within Do has ended the hold of Do: %v", err)
					}
					st.must(acquire(ctx))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if n := ephemerals(); n != 1 {
					t.Errorf("%d znodes after Do, want that of the later hold", n)
				}
				if err := release(); err != nil {
					t.Errorf("the later hold was ended: %v", err)
				}
				st.checkNothing()
			})
		})
	}
}

// A meddledCtx calls back when a caller derives a context from it.
type meddledCtx struct {
	context.Context
	derived func()
}

func (c meddledCtx) Value(key any) any {
	c.derived()
	return c.Context.Value(key)
}

// A Do or RDo whose session ends before its function was called joins the line again, as Lock does. To see this test
// fail, have primitive.under return the error of Busy.
func TestDoAfterALossBeforeTheFunction(t *testing.T) {
	eachDoer(t, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, name string, do doer) {
		if name == "DoubleBarrier.Do" {
			return // Enter has returned: the others may have continued, and Do must tell of the loss
		}
		first := live(t, m)
		lose := sync.OnceFunc(func() {
			must(t, srv.ExpireSession(first.ID()))
			<-first.Done()
		})
		calls := 0
		// The context of the hold is the first that is derived from a ctx without WithMaxWait.
		err := do(meddledCtx{t.Context(), lose}, func(ctx context.Context) error {
			calls++
			return context.Cause(ctx)
		})
		if err != nil || calls != 1 || first.Err() == nil {
			t.Errorf("%v after %d calls; the first session: %v", err, calls, first.Err())
		}
		if n := holds(srv); n > 0 {
			t.Errorf("%d znodes are held", n)
		}
	})
}

// Run campaigns again if leadership is lost before its function was called. To see this test fail, have Election.term
// return the error of Busy.
func TestRunAfterALossBeforeTheWork(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		first := live(t, m)
		lose := sync.OnceFunc(func() {
			if err := srv.ExpireSession(first.ID()); err != nil {
				t.Error(err)
			}
			<-first.Done()
		})
		worked := 0
		ctx := meddledCtx{t.Context(), lose} // the context of leadership is the first
		err := zksync.NewElection(m, path).Run(ctx, func(ctx context.Context) error {
			worked++
			return ctx.Err()
		})
		if err != nil || worked != 1 || first.Err() == nil {
			t.Errorf("Run: %v after work was called %d times; the first session: %v", err, worked, first.Err())
		}
	})
}

// Run ends, and leadership with it, when its function calls runtime.Goexit, with WithStopTimeout and without. To see
// this test fail, send the result of work without closing a channel behind it.
func TestRunWhenWorkExits(t *testing.T) {
	for _, opts := range [][]zksync.ElectionOption{nil, {zksync.WithStopTimeout(time.Second)}} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			e := zksync.NewElection(srv.Connect(t), path, opts...)
			over, returned := make(chan struct{}), false
			go func() {
				defer close(over)
				_ = e.Run(t.Context(), func(context.Context) error {
					runtime.Goexit()
					return nil
				})
				returned = true
			}()
			select {
			case <-over:
			case <-time.After(time.Hour):
				t.Fatalf("%d options: Run goes on without work", len(opts))
			}
			if returned {
				t.Error("Run has returned instead of ending its goroutine")
			}
			if err := e.Resign(); !errors.Is(err, zksync.ErrNotHeld) {
				t.Errorf("%d options: leadership goes on: %v", len(opts), err)
			}
			synctest.Wait()
			wantInLine(t, srv, 0)
		})
	}
}

// Join with an id that is taken returns when its ctx ends, also if no server answers
// any more.
func TestJoinReturnsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m, other := srv.Connect(t), srv.Connect(t)
		_, err := zksync.NewGroup(other, "/group").Join(t.Context(), "a", nil)
		must(t, err)
		// The first look finds the other member; later requests are not answered.
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpExists, Nth: 2, Times: -1, Do: zksynctest.Drop})
		const patience = 100 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		began := time.Now()
		if _, err := zksync.NewGroup(m, "/group").Join(ctx, "a", nil); !errors.Is(err, zksync.ErrIDTaken) {
			t.Error("Join:", err)
		}
		if took := time.Since(began); took > patience {
			t.Errorf("Join took %v, with %v", took, patience)
		}
		srv.RemoveFaults()
	})
}

// Data that another client writes to a directory after its first use is overwritten, and data from before stays.
func TestDataOfADirectory(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		for i, before := range []bool{true, false} {
			dir := fmt.Sprintf("/line%d", i)
			mu := zksync.NewMutex(srv.Connect(t), dir)
			if before {
				must(t, srv.Create(dir, []byte("theirs")))
			} else {
				warm(t, mu)
				must(t, srv.Set(dir, []byte("theirs")))
			}
			warm(t, mu)
			if data, _ := srv.Get(dir); (len(data) > 0) != before {
				t.Errorf("data written before the first use: %v, and it is %q", before, data)
			}
		}
	})
}

// A primitive leaves the data of a directory alone that another client has created at the moment of its own creation.
func TestDataOfADirectoryCreatedMeanwhile(t *testing.T) {
	for _, removed := range []bool{false, true} {
		for _, barrier := range []bool{false, true} {
			t.Run(fmt.Sprintf("removed=%v,barrier=%v", removed, barrier), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					do := zksync.NewMutex(m, "/dir").Do
					if barrier {
						do = zksync.NewDoubleBarrier(m, "/dir", 1).Do
					}
					use := func() error { return do(t.Context(), func(context.Context) error { return nil }) }
					if removed {
						must(t, use())
						must(t, srv.Delete("/dir"))
					}
					srv.Inject(zksynctest.Fault{Op: zkserver.OpCreateContainer, Path: "/dir", Do: zksynctest.Call(func() {
						must(t, srv.Create("/dir", []byte("theirs")))
					})})
					if err := use(); barrier == (err == nil) {
						t.Error("the use of the directory:", err)
					}
					if data, _ := srv.Get("/dir"); string(data) != "theirs" {
						t.Errorf("the data is %q", data)
					}
				})
			})
		}
	}
}

// WithMaxWait bounds all waits of a Do together, also if a session is lost before the function was called
// (primitive.under: bound).
func TestDoWaitsNoLongerThanMaxWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m, o1, o2 := srv.Connect(t), srv.Connect(t), srv.Connect(t)
		first := zksync.NewMutex(o1, path)
		must(t, first.Lock(t.Context()))
		mu := zksync.NewMutex(m, path, zksync.WithMaxWait(time.Minute))
		began := time.Now()
		lose := sync.OnceFunc(func() {
			s := live(t, m)
			must(t, srv.ExpireSession(s.ID()))
			<-s.Done()
		})
		ctx := meddledCtx{t.Context(), func() {
			if time.Since(began) > 50*time.Second {
				lose()
			}
		}}
		done := start(func() error { return mu.Do(ctx, func(context.Context) error { return nil }) })
		second := zksync.NewMutex(o2, path)
		go second.Lock(t.Context())
		time.Sleep(51 * time.Second)
		must(t, first.Unlock())
		err := <-done
		took := time.Since(began)
		if !errors.Is(err, zksync.ErrMaxWait) || took > time.Minute+time.Second {
			t.Errorf("Do took %v: %v", took, err)
		}
	})
}
