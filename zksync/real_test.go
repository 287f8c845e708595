package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// On a real follower that is cut off from its leader the context of a hold ends before the servers give the lock to
// another client. The leader expires the session while that server goes on answering pings.
func TestRealHolderLetsGoInTime(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 3)
	follower := e.Followers()[0]
	var rounds []*overlap
	for _, timeout := range []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second} {
		r := &overlap{t: t, path: fmt.Sprintf("/locks/cut-%v", timeout), what: fmt.Sprintf("follower cut off, timeout %v", timeout)}
		m := connectReal(t, e.Addr(follower), timeout)
		r.start(m, e.Addr(e.Leader()))
		rounds = append(rounds, r)
	}
	cutOff(e, follower)
	for _, r := range rounds {
		r.check()
	}
}

// On a real server the context of a hold ends in time in a partition, and a restart within the lease costs nothing.
func TestRealPartitionedHolder(t *testing.T) {
	bounds.Long(t)
	t.Parallel()
	e := zksynctest.RealZooKeeper(t, 1)
	direct := e.DirectAddr(1)
	cut := &overlap{t: t, path: "/locks/partition", what: "clients cut off, timeout 4s"}
	cut.start(connectReal(t, e.Addr(1), 4*time.Second), direct)
	e.Cut(zksynctest.Client, 1)
	cut.check()
	e.Heal(zksynctest.Client, 1)

	mu := zksync.NewMutex(connectReal(t, e.Addr(1), 20*time.Second), "/locks/restart")
	ctx, _ := hold(t, mu)
	e.Restart(1)
	if err := live(t, connectReal(t, e.Addr(1), 4*time.Second)).Sync(t.Context(), "/"); err != nil {
		t.Error(err)
	}
	if ctx.Err() != nil {
		t.Error("a restart within the lease has cost the lock:", context.Cause(ctx))
	}
	unlock(t, mu)
}

func cutOff(e *zksynctest.Ensemble, server int) {
	for i := 1; i <= 3; i++ {
		if i != server {
			e.Cut(server, i)
		}
	}
}

func connectReal(t *testing.T, address string, timeout time.Duration) *session.Manager {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, address, session.WithTimeout(timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// An overlap measures which comes first: the end of a hold that is cut off, or
// the next grant.
type overlap struct {
	t          *testing.T
	path, what string
	holder     *zksync.Mutex
	told       chan time.Time
	granted    chan time.Time
}

func (o *overlap) start(m *session.Manager, others string) {
	o.t.Helper()
	o.holder = zksync.NewMutex(m, o.path)
	ctx, _ := hold(o.t, o.holder)
	o.told, o.granted = make(chan time.Time, 1), make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { o.told <- time.Now() })
	next := zksync.NewMutex(connectReal(o.t, others, 10*time.Second), o.path)
	go func() {
		if err := next.Lock(o.t.Context()); err != nil {
			o.t.Error(err)
		}
		o.granted <- time.Now()
	}()
}

func (o *overlap) check() {
	o.t.Helper()
	granted := <-o.granted
	select {
	case told := <-o.told:
		o.t.Logf("%s: the holder knew %v before the next grant", o.what, granted.Sub(told))
		if told.After(granted) {
			o.t.Errorf("%s: the holder knew %v late", o.what, told.Sub(granted))
		}
	case <-time.After(time.Minute):
		o.t.Errorf("%s: the holder has not been told", o.what)
	}
	if err := o.holder.Unlock(); !errors.Is(err, zksync.ErrLost) {
		o.t.Errorf("%s: Unlock: %v", o.what, err)
	}
}
