package zksync_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
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

// must fails the test if a call of another party fails.
func (st *stage) must(err error) {
	st.t.Helper()
	if err != nil {
		st.t.Fatal("another party:", err)
	}
}

// A play has the functions around a blocking call: call is the call itself, release
// ends the call's wait for others, undo undoes its success, and close closes the
// value of the call. All but call may be nil.
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

// A blockingCall is a call of a primitive that waits for servers or for others. It has
// a play of its own on every stage.
type blockingCall struct {
	name string
	play func(st *stage) play
	// fails are the errors with which the call ends in good weather.
	fails []error
}

// blockingCalls are the calls of all primitives.
var blockingCalls = slices.Concat(lockCalls, groupCalls, queueCalls)

// chosen reports whether a run has combination i, j of a call and an error. A run with
// ZKSYNC_LONG=1 has all combinations. A plain run, and a run with the race detector, has one in n:
// some errors for each call, and each error for some calls.
func chosen(i, j, n int) bool { return (i+j)%bounds.Size(n, min(n, slowdown)) == 0 }

// A run is the result of a blocking call.
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

// finish undoes the success of the call, and closes the value of the call.
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
// apart from the requests that keep a session alive, in five minutes.
func (st *stage) checkQuiet() {
	st.t.Helper()
	if ops := st.requests(5 * time.Minute); len(ops) > 0 {
		st.t.Errorf("%d requests in five minutes, the first %v", len(ops), ops[0])
	}
}

// checkRemovals checks that the Manager does nothing except to try the removals that a server has refused, now and
// then.
func (st *stage) checkRemovals() {
	st.t.Helper()
	ops := st.requests(5 * time.Minute)
	// An attempt is a commit, a look at the znode or its directory, and a removal.
	if len(ops) > 3*2*10 {
		st.t.Errorf("%d requests in five minutes, want at most ten attempts to remove each of two znodes", len(ops))
	}
	for _, op := range ops {
		check := op.Code == zkserver.OpMulti && len(op.Sub) == 1 && op.Sub[0].Code == zkserver.OpCheck
		if !check && op.Code != zkserver.OpGetData && op.Code != zkserver.OpExists && op.Code != zkserver.OpGetChildren2 && op.Code != zkserver.OpDelete {
			st.t.Errorf("%v, want only attempts to remove a znode", op)
			return
		}
	}
}

// requests returns the requests of the Manager in the next d that do not only keep its session alive.
func (st *stage) requests(d time.Duration) []zkserver.Op {
	st.t.Helper()
	id := live(st.t, st.m).ID()
	time.Sleep(time.Second) // for the last answers
	st.srv.ResetOps()
	time.Sleep(d)
	return slices.DeleteFunc(st.srv.Ops(), func(op zkserver.Op) bool {
		return op.Session != id || op.Code == zkserver.OpPing || op.Code == zkserver.OpSync
	})
}
