package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Downgrade lets no writer in between, keeps the token, and makes RUnlock due.
func TestDowngrade(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		rw := zksync.NewRWMutex(m, path)
		reader, writer := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		last := zksync.NewRWMutex(srv.Connect(t), path)
		writing, err := rw.LockContext(t.Context())
		must(t, err)
		number := inLine(srv, path)[0]
		reads := start(func() error { return reader.RLock(t.Context()) })
		local := start(func() error { return rw.RLock(t.Context()) })
		writes := start(func() error { return writer.Lock(t.Context()) })
		localWrites := start(func() error { return rw.Lock(t.Context()) })
		tail := start(func() error { return last.RLock(t.Context()) })
		wantNames(t, srv, writeName, readName, readName, writeName, readName)
		time.Sleep(time.Second)

		srv.ResetOps()
		reading, err := rw.DowngradeContext(t.Context())
		must(t, err)
		if ops := requests(srv, live(t, m).ID()); len(ops) == 0 || ops[0].Code != zkserver.OpMulti {
			t.Errorf("Downgrade sends %s", names(ops))
		}
		if err := context.Cause(writing); !errors.Is(err, zksync.ErrReleased) {
			t.Errorf("the context of the write lock ended with %v", err)
		}
		before, _ := zksync.Token(writing)
		after, ok := zksync.Token(reading)
		if !ok || after != before {
			t.Errorf("token %d, %v, after %d", after, ok, before)
		}
		over(t, "a reader behind", reads)
		over(t, "a reader of the same value", local)
		pending(t, "a writer behind", writes)
		got := inLine(srv, path)
		if len(got) != 6 || !readName.MatchString(got[0]) || got[0][len(got[0])-10:] != number[len(number)-10:] {
			t.Errorf("in line: %v, want a reader with the number of %s first", got, number)
		}
		time.Sleep(time.Second)
		if reading.Err() != nil {
			t.Error("the context of the read lock ended:", context.Cause(reading))
		}
		mustBe(t, rw.Unlock(), zksync.ErrNotHeld, "unlock", path)
		must(t, reader.RUnlock())
		must(t, rw.RUnlock())
		pending(t, "a writer behind", writes)
		must(t, rw.RUnlock())
		over(t, "a writer behind", writes)
		pending(t, "another behind that", localWrites)
		must(t, writer.Unlock())
		over(t, "the reader behind that", tail)
		must(t, last.RUnlock())
		over(t, "the writer of the same value", localWrites)
		must(t, rw.Unlock())
		wantNames(t, srv)
	})
}

// After any fault at its transaction, Downgrade reports which lock is held, and no writer gets in while a lock is held.
func TestDowngradeWithFaults(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply} {
		for _, fault := range []zksynctest.Action{zksynctest.Disconnect, zksynctest.Drop, zksynctest.Delay(time.Second)} {
			for _, cancelled := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v %v, cancelled %v", at, fault, cancelled), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						rw, writer := zksync.NewRWMutex(m, path), zksync.NewRWMutex(srv.Connect(t), path)
						must(t, rw.Lock(t.Context()))
						writes := start(func() error { return writer.Lock(t.Context()) })
						ctx, cancel := context.WithCancelCause(t.Context())
						defer cancel(nil)
						f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: at}
						if cancelled {
							f.Do = zksynctest.Call(func() { cancel(errEnough) })
							srv.Inject(f)
						}
						f.Do = fault
						srv.Inject(f)
						// The client notices the lost answers when the connection
						// ends.
						time.AfterFunc(10*time.Second, func() { srv.Disconnect(f.Session) })
						err := rw.Downgrade(ctx)
						if cancelled {
							mustBe(t, err, errEnough, "downgrade", path)
							mustBe(t, rw.Unlock(), zksync.ErrNotHeld, "unlock", path)
							mustBe(t, rw.RUnlock(), zksync.ErrNotHeld, "runlock", path)
						} else {
							must(t, err)
							time.Sleep(time.Minute)
							wantNames(t, srv, readName, writeName)
							pending(t, "the writer", writes)
							must(t, rw.RUnlock())
						}
						time.Sleep(time.Minute)
						over(t, "the writer", writes)
						wantNames(t, srv, writeName)
						must(t, writer.Unlock())
						must(t, rw.Lock(t.Context()))
						must(t, rw.Unlock())
					})
				})
			}
		}
	}
}

// After a Downgrade that fails nothing is held.
func TestDowngradeOfALostLock(t *testing.T) {
	for _, what := range []string{"expired", "removed", "removed unseen", "given up"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				rw := zksync.NewRWMutex(m, path)
				must(t, rw.Lock(t.Context()))
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				want := zksync.ErrLost
				switch what {
				case "expired":
					must(t, srv.ExpireSession(live(t, m).ID()))
					synctest.Wait()
				case "removed":
					time.Sleep(time.Second)
					fallthrough
				case "removed unseen":
					must(t, srv.Delete(path+"/"+inLine(srv, path)[0]))
				default:
					cancel(errEnough)
					want = errEnough
				}
				mustBe(t, rw.Downgrade(ctx), want, "downgrade", path)
				mustBe(t, rw.Unlock(), zksync.ErrNotHeld, "unlock", path)
				mustBe(t, rw.RUnlock(), zksync.ErrNotHeld, "runlock", path)
				must(t, rw.Lock(t.Context()))
				must(t, rw.Downgrade(t.Context()))
				must(t, rw.RUnlock())
				wantNames(t, srv)
			})
		})
	}
}

// A Downgrade with the context of the write lock, which Downgrade ends, fails at once, and the write lock stays. Breaks
// if Grant.Ends returns false.
func TestDowngradeWithTheContextOfTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		rw := zksync.NewRWMutex(srv.Connect(t), path)
		must(t, rw.Do(t.Context(), func(held context.Context) error {
			derived, cancel := context.WithTimeout(held, time.Minute)
			defer cancel()
			mustBe(t, rw.Downgrade(held), zksync.ErrInvalidOption, "downgrade", path)
			reading, err := rw.DowngradeContext(derived)
			mustBe(t, err, zksync.ErrInvalidOption, "downgrade", path)
			if reading != nil || held.Err() != nil {
				t.Errorf("the context of a read lock is %v, and the context of the write lock has ended with %v", reading, context.Cause(held))
			}
			wantNames(t, srv, writeName)
			return nil
		}))
		wantNames(t, srv)
		// The context of an earlier lock, or of another value, is no context of this lock.
		other := zksync.NewRWMutex(srv.Connect(t), path+"2")
		held, err := other.LockContext(t.Context())
		must(t, err)
		must(t, rw.Lock(held))
		must(t, rw.Downgrade(held))
		must(t, rw.RUnlock())
		must(t, other.Unlock())
	})
}

// A Downgrade with context.WithoutCancel of the context of the write lock, which does not end with the lock, succeeds.
// Breaks if Grant.Ends looks at the values of ctx only.
func TestDowngradeWithoutTheEndOfTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		rw := zksync.NewRWMutex(srv.Connect(t), path)
		held, err := rw.LockContext(t.Context())
		must(t, err)
		must(t, rw.Downgrade(context.WithoutCancel(held)))
		must(t, rw.RUnlock())
	})
}
