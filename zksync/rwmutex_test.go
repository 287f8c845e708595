package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// start runs a call that may wait, in the background. In a bubble the call is
// waiting, or done, when start returns.
func start(run func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- run() }()
	synctest.Wait()
	return done
}

// over fails the test unless the call in the background has succeeded.
func over(t testing.TB, what string, done <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	default:
		t.Fatalf("%s still waits", what)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mustBe fails the test unless err is want, and says so for the operation and
// the path.
func mustBe(t testing.TB, err, want error, op, at string) {
	t.Helper()
	var e *zksync.Error
	if !errors.Is(err, want) || !errors.As(err, &e) || e.Op != op || e.Path != at {
		t.Errorf("error %v, want %v of %s %s", err, want, op, at)
	}
}

// A party is a contender in a line of readers and writers.
type party struct {
	name   string
	writes bool
	rw     *zksync.RWMutex
	id     int64
	cancel context.CancelCauseFunc
	done   <-chan error
	in     bool
}

func (p *party) release() error {
	if p.writes {
		return p.rw.Unlock()
	}
	return p.rw.RUnlock()
}

// leave makes a party leave the line.
func (p *party) leave(t *testing.T, srv *zksynctest.Server, how string) {
	t.Helper()
	switch {
	case how == "expires":
		must(t, srv.ExpireSession(p.id))
		if p.in {
			time.Sleep(time.Second)
			if err := p.release(); !errors.Is(err, zksync.ErrLost) {
				t.Errorf("%s releases what it lost: %v", p.name, err)
			}
		} else { // it stands again, as the last, and is of no more interest
			synctest.Wait()
			pending(t, p.name+", expired,", p.done)
			p.cancel(errEnough)
			<-p.done
		}
	case p.in:
		p.cancel(errEnough) // which is not to end the hold
		if how == "cancelled" {
			time.Sleep(time.Second)
		}
		must(t, p.release())
	default:
		p.cancel(errEnough)
		if err := <-p.done; !errors.Is(err, errEnough) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", p.name, err)
		}
	}
	synctest.Wait()
}

// A reader waits for the writers before it and for no other contender, and a writer for all contenders before it, no
// matter in which order and way these contenders leave.
func TestRWMutexLine(t *testing.T) {
	hows := []string{"released", "cancelled", "expires"}
	for _, line := range []string{"wrw", "rwr", "wwr", "rrw", "wrrw"} {
		for _, order := range orders(len(line)) {
			for _, how := range hows {
				t.Run(fmt.Sprintf("%s %v %s", line, order, how), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) { leaveLine(t, srv, line, order, how) })
				})
			}
		}
	}
}

func leaveLine(t *testing.T, srv *zksynctest.Server, line string, order []int, how string) {
	var parties []*party
	for i, kind := range line {
		m := srv.Connect(t)
		p := &party{name: fmt.Sprintf("%c%d", kind, i), writes: kind == 'w', rw: zksync.NewRWMutex(m, path), id: live(t, m).ID()}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		p.cancel = cancel
		p.done = start(func() error {
			if p.writes {
				return p.rw.Lock(ctx)
			}
			return p.rw.RLock(ctx)
		})
		parties = append(parties, p)
	}
	check := func(what string) {
		t.Helper()
		free, readers := true, true
		for _, p := range parties {
			allowed := free || readers && !p.writes
			free, readers = false, readers && !p.writes
			if allowed && !p.in {
				over(t, p.name+", "+what, p.done)
				p.in = true
			} else if !allowed {
				pending(t, p.name+", "+what, p.done)
			}
		}
	}
	check("at first")
	for n, i := range order {
		p := parties[slices.IndexFunc(parties, func(p *party) bool { return p.name == fmt.Sprintf("%c%d", line[i], i) })]
		parties = slices.DeleteFunc(parties, func(q *party) bool { return q == p })
		manner := how
		if n > 0 && n%2 == 0 {
			manner = "released"
		}
		p.leave(t, srv, manner)
		check("after " + p.name + " has left")
	}
	wantInLine(t, srv, 0)
}

// orders are the permutations of 0 to n-1.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, o := range orders(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(o), at, n-1))
		}
	}
	return all
}

var (
	readName  = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-__READ__[0-9]{10}$`)
	writeName = regexp.MustCompile(`^_c_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-__WRIT__[0-9]{10}$`)
)

// wantNames checks the names in line.
func wantNames(t testing.TB, srv *zksynctest.Server, want ...*regexp.Regexp) {
	t.Helper()
	synctest.Wait()
	got := inLine(srv, path)
	ok := len(got) == len(want)
	for i := range got {
		ok = ok && want[i].MatchString(got[i])
	}
	if !ok {
		t.Errorf("in line: %v, want %v", got, want)
	}
}

// The znodes of an RWMutex have the names of Curator's InterProcessReadWriteLock.
func TestRWMutexLayout(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		rw, other := zksync.NewRWMutex(m, path), zksync.NewRWMutex(srv.Connect(t), path)
		must(t, rw.RLock(t.Context()))
		waiting := start(func() error { return other.Lock(t.Context()) })
		wantNames(t, srv, readName, writeName)
		must(t, rw.RUnlock())
		over(t, "Lock", waiting)
		must(t, other.Unlock())
		// Names of Curator's contenders count, and so do names without a GUID. Foreign names do not.
		for name, in := range map[string]bool{"_c_5fd9e7c2-8fbc-4f8b-a1ff-3cbcb5a6c07b-__WRIT__0000000001": true, "__READ__0000000001": true, "x-lock-0000000001": false, "__READ__x": false} {
			must(t, srv.Create(path+"/"+name, nil))
			ok, err := rw.TryLock(t.Context())
			if err != nil || ok == in {
				t.Errorf("TryLock beside %s: %v, %v", name, ok, err)
			}
			if ok {
				must(t, rw.Unlock())
			}
			must(t, srv.Delete(path+"/"+name))
		}
	})
}

// The token of a writer is greater than all tokens before it, and the token of a reader is greater than the tokens of
// the writers before it.
func TestRWMutexTokens(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		a, b := zksync.NewRWMutex(srv.Connect(t), path), zksync.NewRWMutex(srv.Connect(t), path)
		var last int64
		next := func(held context.Context, err error) {
			t.Helper()
			must(t, err)
			token, ok := zksync.Token(held)
			if !ok || token <= last {
				t.Errorf("token %d, %v, after %d", token, ok, last)
			}
			last = token
		}
		for range 3 {
			next(a.LockContext(t.Context()))
			reading := start(func() error { next(b.RLockContext(t.Context())); return nil })
			must(t, a.Unlock())
			over(t, "RLock", reading)
			must(t, b.RUnlock())
			held, ok, err := b.TryLockContext(t.Context())
			if next(held, err); !ok {
				t.Error("TryLock: false")
			}
			must(t, b.Unlock())
			held, ok, err = a.TryRLockContext(t.Context())
			if next(held, err); !ok {
				t.Error("TryRLock: false")
			}
			must(t, a.RUnlock())
		}
	})
}

// The wrong release of an RWMutex is ErrNotHeld, and the first call reports a bad path or option.
func TestRWMutexMisuse(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		rw := zksync.NewRWMutex(m, path)
		misuse := func(reads, writes bool) {
			t.Helper()
			if !reads {
				mustBe(t, rw.RUnlock(), zksync.ErrNotHeld, "runlock", path)
			}
			if !writes {
				mustBe(t, rw.Unlock(), zksync.ErrNotHeld, "unlock", path)
				mustBe(t, rw.Downgrade(t.Context()), zksync.ErrNotHeld, "downgrade", path)
			}
		}
		misuse(false, false)
		must(t, rw.Lock(t.Context()))
		misuse(false, true)
		must(t, rw.Unlock())
		must(t, rw.RLock(t.Context()))
		misuse(true, false)
		must(t, rw.RUnlock())
		misuse(false, false)

		ended, cancel := context.WithCancelCause(t.Context())
		cancel(errEnough)
		mustBe(t, rw.RLock(ended), errEnough, "rlock", path)
		_, err := rw.TryRLock(ended)
		mustBe(t, err, errEnough, "tryrlock", path)
		if requests := requests(srv); len(requests) > 0 && requests[len(requests)-1].Code != zkserver.OpDelete {
			t.Errorf("misuse costs requests: %s", names(requests))
		}

		for _, bad := range []*zksync.RWMutex{
			zksync.NewRWMutex(m, "relative"), zksync.NewRWMutex(m, path, zksync.WithMaxWait(-1)), zksync.NewRWMutex(m, path, zksync.WithID("")),
		} {
			for _, err := range []error{
				bad.RLock(t.Context()), bad.Lock(t.Context()), bad.RDo(t.Context(), func(context.Context) error { return nil }),
			} {
				if !errors.Is(err, session.ErrInvalidPath) && !errors.Is(err, zksync.ErrInvalidOption) {
					t.Errorf("a bad path or option: %v", err)
				}
			}
		}
	})
}

// WithMaxWait bounds the waits of readers and writers with ErrMaxWait.
func TestRWMutexMaxWait(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		holder := zksync.NewRWMutex(srv.Connect(t), path)
		must(t, holder.Lock(t.Context()))
		rw := zksync.NewRWMutex(srv.Connect(t), path, zksync.WithMaxWait(time.Minute))
		before := time.Now()
		mustBe(t, rw.RLock(t.Context()), zksync.ErrMaxWait, "rlock", path)
		mustBe(t, rw.Lock(t.Context()), zksync.ErrMaxWait, "lock", path)
		if waited := time.Since(before); waited != 2*time.Minute {
			t.Errorf("waited for %v", waited)
		}
		wantNames(t, srv, writeName)
	})
}
