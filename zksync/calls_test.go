package zksync_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A stage is where one blocking call is tried.
type stage struct {
	t     *testing.T
	srv   *zksynctest.Server
	m     *session.Manager // makes the call
	other *session.Manager // for all others
	ctx   context.Context  // ends with the test
	lies  bool             // the server does not answer the truth
}

// errorf reports a result that is wrong, unless the server is to blame.
func (st *stage) errorf(format string, args ...any) {
	st.t.Helper()
	if !st.lies {
		st.t.Errorf(format, args...)
	}
}

const stagePath = "/stage/x"

// newStage sets a stage in a bubble. opts are for both Managers.
func newStage(t *testing.T, srv *zksynctest.Server) *stage {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	other := srv.Connect(t, session.WithAuth("digest", []byte("other:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...))
	return &stage{t: t, srv: srv, m: srv.Connect(t), other: other, ctx: ctx}
}

// blocked makes a call of another party, which the test does not wait for.
func (st *stage) blocked(call func(context.Context) error) {
	go func() { _ = call(st.ctx) }()
	synctest.Wait()
}

// must is for what others do.
func (st *stage) must(err error) {
	st.t.Helper()
	if err != nil {
		st.t.Fatal("another party:", err)
	}
}

// A play is what a blocking call needs: the call itself, what lets it end where it
// waits for others, what undoes its success, and what closes what was opened for it.
// All but the call may be nil.
type play struct {
	call    func(ctx context.Context) error
	release func()
	undo    func() error
	close   func() error
}

// errDeclined is the result of a call that found something occupied.
var errDeclined = errors.New("declined")

func declined(ok bool, err error) error {
	if err == nil && !ok {
		return errDeclined
	}
	return err
}

// blockingCalls are the calls of all primitives that wait for servers or for
// others. Each has a play of its own on every stage.
var blockingCalls = []struct {
	name string
	play func(st *stage) play
	// fails are the errors with which the call ends in good weather.
	fails []error
}{
	{name: "Mutex.Lock", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: mu.Lock, undo: mu.Unlock}
	}},
	{name: "Mutex.Lock behind another", play: func(st *stage) play {
		theirs, mu := zksync.NewMutex(st.other, stagePath), zksync.NewMutex(st.m, stagePath)
		st.must(theirs.Lock(st.ctx))
		return play{call: mu.Lock, release: func() { st.must(theirs.Unlock()) }, undo: mu.Unlock}
	}},
	{name: "Mutex.Lock behind a goroutine", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		st.must(mu.Lock(st.ctx))
		free := sync.OnceFunc(func() { _ = mu.Unlock() })
		return play{call: mu.Lock, release: free, undo: mu.Unlock, close: func() error { free(); return nil }}
	}},
	{name: "Mutex.Lock in a directory with data", play: func(st *stage) play {
		_ = st.srv.Create("/stage", nil)
		_ = st.srv.Create(stagePath, nil)
		st.must(st.srv.Set(stagePath, []byte("theirs")))
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: mu.Lock, undo: mu.Unlock}
	}},
	{name: "Mutex.Lock as kazoo", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath, zksync.WithLayout(zksync.LayoutKazoo))
		return play{call: mu.Lock, undo: mu.Unlock}
	}},
	{name: "Mutex.TryLock", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return declined(mu.TryLock(ctx)) }, undo: mu.Unlock}
	}},
	{name: "Mutex.TryLock in vain", fails: []error{errDeclined}, play: func(st *stage) play {
		theirs, mu := zksync.NewMutex(st.other, stagePath), zksync.NewMutex(st.m, stagePath)
		st.must(theirs.Lock(st.ctx))
		return play{call: func(ctx context.Context) error { return declined(mu.TryLock(ctx)) }}
	}},
	{name: "Mutex.Do", play: func(st *stage) play {
		mu := zksync.NewMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return mu.Do(ctx, func(context.Context) error { return nil }) }}
	}},
	{name: "RWMutex.Lock behind a reader", play: func(st *stage) play {
		theirs, rw := zksync.NewRWMutex(st.other, stagePath), zksync.NewRWMutex(st.m, stagePath)
		st.must(theirs.RLock(st.ctx))
		return play{call: rw.Lock, release: func() { st.must(theirs.RUnlock()) }, undo: rw.Unlock}
	}},
	{name: "RWMutex.RLock", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		return play{call: rw.RLock, undo: rw.RUnlock}
	}},
	{name: "RWMutex.RLock behind a writer", play: func(st *stage) play {
		theirs, rw := zksync.NewRWMutex(st.other, stagePath), zksync.NewRWMutex(st.m, stagePath)
		st.must(theirs.Lock(st.ctx))
		return play{call: rw.RLock, release: func() { st.must(theirs.Unlock()) }, undo: rw.RUnlock}
	}},
	{name: "RWMutex.TryRLock", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return declined(rw.TryRLock(ctx)) }, undo: rw.RUnlock}
	}},
	{name: "RWMutex.Downgrade", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		st.must(rw.Lock(st.ctx))
		return play{call: rw.Downgrade, undo: rw.RUnlock}
	}},
	{name: "RWMutex.RDo", play: func(st *stage) play {
		rw := zksync.NewRWMutex(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return rw.RDo(ctx, func(context.Context) error { return nil }) }}
	}},
	{name: "Semaphore.Acquire", play: func(st *stage) play {
		s := zksync.NewSemaphore(st.m, stagePath, 3)
		return play{call: func(ctx context.Context) error { return s.Acquire(ctx, 2) }, undo: func() error { return s.Release(2) }}
	}},
	{name: "Semaphore.Acquire behind another", play: func(st *stage) play {
		theirs, s := zksync.NewSemaphore(st.other, stagePath, 3), zksync.NewSemaphore(st.m, stagePath, 3)
		st.must(theirs.Acquire(st.ctx, 2))
		return play{
			call:    func(ctx context.Context) error { return s.Acquire(ctx, 2) },
			release: func() { st.must(theirs.Release(2)) },
			undo:    func() error { return s.Release(2) },
		}
	}},
	{name: "Semaphore.Acquire of a size", play: func(st *stage) play {
		st.must(st.srv.Create("/size", []byte("2")))
		s := zksync.NewSemaphore(st.m, stagePath, 1, zksync.WithSizeFrom("/size"))
		return play{call: func(ctx context.Context) error { return s.Acquire(ctx, 2) }, undo: func() error { return s.Release(2) }}
	}},
	{name: "Semaphore.TryAcquire", play: func(st *stage) play {
		s := zksync.NewSemaphore(st.m, stagePath, 3)
		return play{
			call: func(ctx context.Context) error { return declined(s.TryAcquire(ctx, 1)) },
			undo: func() error { return s.Release(1) },
		}
	}},
	{name: "Semaphore.TryAcquire in vain", fails: []error{errDeclined}, play: func(st *stage) play {
		theirs, s := zksync.NewSemaphore(st.other, stagePath, 1), zksync.NewSemaphore(st.m, stagePath, 1)
		st.must(theirs.Acquire(st.ctx, 1))
		return play{call: func(ctx context.Context) error { return declined(s.TryAcquire(ctx, 1)) }}
	}},
	{name: "Election.Campaign", play: func(st *stage) play {
		e := zksync.NewElection(st.m, stagePath)
		return play{call: func(ctx context.Context) error { _, err := e.Campaign(ctx); return err }, undo: e.Resign}
	}},
	{name: "Election.Campaign behind another", play: func(st *stage) play {
		theirs, e := zksync.NewElection(st.other, stagePath), zksync.NewElection(st.m, stagePath)
		_, err := theirs.Campaign(st.ctx)
		st.must(err)
		return play{
			call:    func(ctx context.Context) error { _, err := e.Campaign(ctx); return err },
			release: func() { st.must(theirs.Resign()) },
			undo:    e.Resign,
		}
	}},
	{name: "Election.Leader", play: func(st *stage) play {
		_, err := zksync.NewElection(st.other, stagePath).Campaign(st.ctx)
		st.must(err)
		e := zksync.NewElection(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			c, err := e.Leader(ctx)
			if err == nil && c.Token == 0 {
				st.errorf("Leader returned nobody and no error")
			}
			return err
		}}
	}},
	{name: "Election.Candidates", play: func(st *stage) play {
		_, err := zksync.NewElection(st.other, stagePath).Campaign(st.ctx)
		st.must(err)
		e := zksync.NewElection(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			all, err := e.Candidates(ctx)
			if err == nil && len(all) != 1 {
				st.errorf("Candidates returned %d candidates and no error", len(all))
			}
			return err
		}}
	}},
	{name: "Group.Join", play: func(st *stage) play {
		g := zksync.NewGroup(st.m, stagePath)
		var own *zksync.Member
		return play{
			call: func(ctx context.Context) (err error) { own, err = g.Join(ctx, "a", nil); return err },
			undo: func() error { return own.Leave() },
		}
	}},
	{name: "Group.Join behind another", play: func(st *stage) play {
		theirs, err := zksync.NewGroup(st.other, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		g := zksync.NewGroup(st.m, stagePath, zksync.WithIDWait())
		var own *zksync.Member
		return play{
			call:    func(ctx context.Context) (err error) { own, err = g.Join(ctx, "a", nil); return err },
			release: func() { st.must(theirs.Leave()) },
			undo:    func() error { return own.Leave() },
		}
	}},
	{name: "Group.Join with an id that is taken", fails: []error{zksync.ErrIDTaken}, play: func(st *stage) play {
		_, err := zksync.NewGroup(st.other, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		g := zksync.NewGroup(st.m, stagePath)
		return play{call: func(ctx context.Context) error { _, err := g.Join(ctx, "a", nil); return err }}
	}},
	{name: "Group.Members", play: func(st *stage) play {
		_, err := zksync.NewGroup(st.other, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		g := zksync.NewGroup(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			all, err := g.Members(ctx)
			if err == nil && len(all) != 1 {
				st.errorf("Members returned %d members and no error", len(all))
			}
			return err
		}}
	}},
	{name: "Member.Set", play: func(st *stage) play {
		own, err := zksync.NewGroup(st.m, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		synctest.Wait()
		return play{call: func(ctx context.Context) error {
			err := own.Set(ctx, []byte("x"))
			if data, _ := st.srv.Get(stagePath + "/a"); err == nil && string(data) != "x" {
				st.errorf("Set returned nil, and the data is %q", data)
			}
			return err
		}, close: own.Leave}
	}},
	{name: "Barrier.Set", play: func(st *stage) play {
		b := zksync.NewBarrier(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			err := b.Set(ctx)
			if _, ok := st.srv.Get(stagePath); err == nil && !ok {
				st.errorf("Set returned nil, and there is no gate")
			}
			return err
		}}
	}},
	{name: "Barrier.Remove", play: func(st *stage) play {
		st.must(zksync.NewBarrier(st.other, stagePath).Set(st.ctx))
		b := zksync.NewBarrier(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			err := b.Remove(ctx)
			if _, ok := st.srv.Get(stagePath); err == nil && ok {
				st.errorf("Remove returned nil, and the gate is closed")
			}
			return err
		}}
	}},
	{name: "Barrier.Wait at an open gate", play: func(st *stage) play {
		return play{call: zksync.NewBarrier(st.m, stagePath).Wait}
	}},
	{name: "Barrier.Wait at a closed gate", play: func(st *stage) play {
		theirs := zksync.NewBarrier(st.other, stagePath)
		st.must(theirs.Set(st.ctx))
		b := zksync.NewBarrier(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			err := b.Wait(ctx)
			if _, closed := st.srv.Get(stagePath); err == nil && closed {
				st.errorf("Wait returned nil at a closed gate")
			}
			return err
		}, release: func() { st.must(theirs.Remove(st.ctx)) }}
	}},
	{name: "DoubleBarrier.Enter alone", play: func(st *stage) play {
		b := zksync.NewDoubleBarrier(st.m, stagePath, 1)
		return play{call: b.Enter, undo: func() error { return b.Leave(st.ctx) }}
	}},
	{name: "DoubleBarrier.Enter with another", play: func(st *stage) play {
		theirs, b := zksync.NewDoubleBarrier(st.other, stagePath, 2), zksync.NewDoubleBarrier(st.m, stagePath, 2)
		come := false
		return play{
			call:    b.Enter,
			release: func() { come = true; st.blocked(theirs.Enter) },
			undo: func() error {
				if come {
					st.blocked(theirs.Leave)
				}
				return b.Leave(st.ctx)
			},
		}
	}},
	{name: "DoubleBarrier.Leave", play: func(st *stage) play {
		theirs, b := zksync.NewDoubleBarrier(st.other, stagePath, 2), zksync.NewDoubleBarrier(st.m, stagePath, 2)
		st.blocked(theirs.Enter)
		st.must(b.Enter(st.ctx))
		return play{call: b.Leave, release: func() { st.blocked(theirs.Leave) }}
	}},
	{name: "Queue.Put", play: func(st *stage) play {
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return q.Put(ctx, []byte("x")) }, close: q.Close}
	}},
	{name: "Queue.Put for which there is no room", play: func(st *stage) play {
		q, theirs := zksync.NewQueue(st.m, stagePath, zksync.WithCapacity(1)), zksync.NewQueue(st.other, stagePath)
		st.must(theirs.Put(st.ctx, nil))
		return play{
			call: func(ctx context.Context) error { return q.Put(ctx, []byte("x")) },
			release: func() {
				_, err := theirs.Take(st.ctx)
				st.must(err)
			},
			close: q.Close,
		}
	}},
	{name: "Queue.Take", play: func(st *stage) play {
		theirs, q := zksync.NewQueue(st.other, stagePath), zksync.NewQueue(st.m, stagePath)
		return play{
			call:    func(ctx context.Context) error { _, err := q.Take(ctx); return err },
			release: func() { st.must(theirs.Put(st.ctx, []byte("x"))) },
			close:   q.Close,
		}
	}},
	{name: "Queue.TryTake", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			_, ok, err := q.TryTake(ctx)
			return declined(ok, err)
		}, close: q.Close}
	}},
	{name: "Queue.Peek", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			_, ok, err := q.Peek(ctx)
			return declined(ok, err)
		}, close: q.Close}
	}},
	{name: "Queue.Len", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			n, err := q.Len(ctx)
			if err == nil && n != 1 {
				st.errorf("Len returned %d and no error", n)
			}
			return err
		}, close: q.Close}
	}},
	{name: "Message.Ack", play: func(st *stage) play {
		st.must(zksync.NewQueue(st.other, stagePath).Put(st.ctx, []byte("x")))
		q := zksync.NewQueue(st.m, stagePath)
		msg := <-q.Messages()
		synctest.Wait()
		return play{call: msg.Ack, close: q.Close}
	}},
	{name: "PriorityQueue.Put", play: func(st *stage) play {
		q := zksync.NewPriorityQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error { return q.Put(ctx, []byte("x"), 7) }, close: q.Close}
	}},
	{name: "DelayQueue.Take", play: func(st *stage) play {
		st.must(zksync.NewDelayQueue(st.other, stagePath).Put(st.ctx, []byte("x"), time.Second))
		q := zksync.NewDelayQueue(st.m, stagePath)
		return play{call: func(ctx context.Context) error { _, err := q.Take(ctx); return err }, close: q.Close}
	}},
}

// A run is what came of a blocking call.
type run struct {
	*stage
	play
	done chan error
}

// begin starts the call on a stage.
func begin(ctx context.Context, st *stage, p play) *run {
	r := &run{st, p, make(chan error, 1)}
	go func() { r.done <- p.call(ctx) }()
	return r
}

// result waits for the call.
func (r *run) result(within time.Duration) (err error, ok bool) {
	select {
	case err := <-r.done:
		return err, true
	case <-time.After(within):
		r.t.Errorf("the call has not returned within %v", within)
		return nil, false
	}
}

// finish undoes the success of the call, and closes what was opened for it.
func (r *run) finish(result error) {
	r.t.Helper()
	if err := r.end(result); err != nil {
		r.t.Error("the end of the call:", err)
	}
}

func (r *run) end(result error) error {
	var undone, closed error
	if result == nil && r.undo != nil {
		undone = r.undo()
	}
	if r.close != nil {
		closed = r.close()
	}
	return errors.Join(undone, closed)
}

// checkNothing fails the test unless the Manager of the call has no znode left.
func (st *stage) checkNothing() {
	st.t.Helper()
	time.Sleep(10 * time.Second)
	id := live(st.t, st.m).ID()
	for _, info := range st.srv.Sessions() {
		if info.ID == id && len(info.Ephemerals) > 0 {
			st.t.Errorf("left behind: %v", info.Ephemerals)
		}
	}
}

// checkQuiet fails the test if the Manager of the call asks the servers for anything,
// apart from what keeps a session alive, in five minutes.
func (st *stage) checkQuiet() {
	st.t.Helper()
	id := live(st.t, st.m).ID()
	time.Sleep(time.Second) // for the last answers
	st.srv.ResetOps()
	time.Sleep(5 * time.Minute)
	ops := slices.DeleteFunc(st.srv.Ops(), func(op zkserver.Op) bool {
		return op.Session != id || op.Code == zkserver.OpPing || op.Code == zkserver.OpSync
	})
	if len(ops) > 0 {
		st.t.Errorf("%d requests in five minutes, the first %v", len(ops), ops[0])
	}
}
