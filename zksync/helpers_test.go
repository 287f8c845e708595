package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

func TestMain(m *testing.M) {
	servers.CollectLess()
	servers.AtOnce(6)
	goleak.VerifyTestMain(zksynctest.StopSharedAfter(m))
}

const path = "/locks/m"

// bubble runs test with a server of its own, in fake time.
func bubble(t *testing.T, test func(t *testing.T, srv *zksynctest.Server), opts ...zksynctest.Option) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) { test(t, zksynctest.Start(t, opts...)) })
}

func live(t testing.TB, m *session.Manager) *session.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal("no session:", err)
	}
	return s
}

// patience is how long a test waits for an expected event before it fails.
const patience = 10 * time.Minute

func lock(t testing.TB, mu *zksync.Mutex) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := mu.Lock(ctx); err != nil {
		t.Fatal("Lock:", err)
	}
}

func unlock(t testing.TB, mu *zksync.Mutex) {
	t.Helper()
	if err := mu.Unlock(); err != nil {
		t.Error("Unlock:", err)
	}
}

// hold is LockContext with its token.
func hold(t testing.TB, mu *zksync.Mutex) (context.Context, int64) {
	t.Helper()
	ctx, err := mu.LockContext(t.Context())
	if err != nil {
		t.Fatal("LockContext:", err)
	}
	token, ok := zksync.Token(ctx)
	if !ok || token == 0 {
		t.Fatalf("the context of a hold has token %d, %v", token, ok)
	}
	return ctx, token
}

// locking starts Lock in the background. In a bubble it is waiting, or done,
// when locking returns.
func locking(ctx context.Context, mu *zksync.Mutex) <-chan error {
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Hour)
		defer cancel()
		done <- mu.Lock(ctx)
	}()
	synctest.Wait()
	return done
}

// pending fails the test if the call in the background has ended.
func pending(t testing.TB, what string, done <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		t.Fatalf("%s has returned: %v", what, err)
	default:
	}
}

// warm locks once, so that later calls need none of the requests of a first use.
func warm(t testing.TB, mu *zksync.Mutex) {
	t.Helper()
	lock(t, mu)
	unlock(t, mu)
}

// requests returns the requests since the last reset, without the requests that keep
// sessions alive. With ids, it returns only the requests of these sessions.
func requests(srv *zksynctest.Server, ids ...int64) []zksynctest.Op {
	var ops []zksynctest.Op
	for _, op := range srv.Ops() {
		switch op.Code {
		case zkserver.OpPing, zkserver.OpSync, zkserver.OpConnect, zkserver.OpCloseSession:
			continue
		}
		if provesTheSession(op) {
			continue
		}
		if len(ids) == 0 || slices.Contains(ids, op.Session) {
			ops = append(ops, op)
		}
	}
	return ops
}

// provesTheSession recognises the transactions that change nothing, by which a
// session is kept proven alive.
func provesTheSession(op zksynctest.Op) bool {
	return op.Code == zkserver.OpMulti && len(op.Sub) == 1 && op.Sub[0].Code == zkserver.OpCheck
}

func names(ops []zksynctest.Op) string {
	var b []string
	for _, op := range ops {
		b = append(b, op.Code.String())
	}
	return strings.Join(b, " ")
}

// inLine returns the znodes in a directory, in the order of their numbers.
func inLine(srv *zksynctest.Server, dir string) []string {
	names, _ := srv.Children(dir)
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(a[max(0, len(a)-10):], b[max(0, len(b)-10):])
	})
	return names
}

func wantInLine(t testing.TB, srv *zksynctest.Server, n int) []string {
	t.Helper()
	got := inLine(srv, path)
	if len(got) != n {
		t.Errorf("%d znodes in line, want %d: %v", len(got), n, got)
	}
	return got
}

// A witness sees who holds what it guards, and fails the test when two do at
// once or a token does not grow.
type witness struct {
	t testing.TB

	shared bool          // goroutines may share a token
	grace  time.Duration // in which one hears of a session that was ended by force

	mu     sync.Mutex
	forced time.Time // when a session was last ended by force
	inside *visit
	newest visit
	lost   map[int64]bool // the tokens of which Unlock has said so
	passed int
}

// holds returns the number of holds that have ended.
func (w *witness) holds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed
}

// unlock tells the witness what Unlock says.
func (w *witness) unlock(mu *zksync.Mutex, ctx context.Context) error {
	err := mu.Unlock()
	if token, _ := zksync.Token(ctx); errors.Is(err, zksync.ErrLost) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lost == nil {
			w.lost = make(map[int64]bool)
		}
		w.lost[token] = true
	}
	return err
}

// forceIsKnown is how long it takes at most until a client that can reach the
// server knows that its session was ended by force: a pause before the reconnect.
const forceIsKnown = 50 * time.Millisecond

// force notes that a session is being ended by force.
func (w *witness) force() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forced = time.Now()
}

type visit struct {
	who   string
	token int64
	ctx   context.Context
}

func (w *witness) enter(who string, ctx context.Context) {
	token, _ := zksync.Token(ctx)
	v := visit{who, token, ctx}
	w.mu.Lock()
	defer w.mu.Unlock()
	// A holder that releases the lock before it can know that its session was ended
	// by force learns of no loss.
	unknowing := time.Since(w.forced) < forceIsKnown
	if other := w.inside; other != nil && !w.over(other, &v) && !(unknowing && errors.Is(context.Cause(other.ctx), zksync.ErrReleased)) {
		w.t.Errorf("%s: %s came to hold the lock with token %d while %s did with %d", time.Now().Format("05.000"), who, token, other.who, other.token)
	}
	if newest := w.newest; (token < newest.token || token == newest.token && !w.shared) && !w.over(&v) {
		w.t.Errorf("%s holds with token %d after %s with %d", who, token, newest.who, newest.token)
	}
	if ctx.Err() != nil {
		return // it knows that it holds nothing
	}
	w.inside, w.newest = &v, v
	w.passed++
}

// over says whether one of those knows that it holds nothing any more.
func (w *witness) over(visits ...*visit) bool {
	late := time.Now().Add(w.grace)
	for {
		for _, v := range visits {
			if errors.Is(context.Cause(v.ctx), zksync.ErrLost) || w.lost[v.token] {
				return true
			}
		}
		if !time.Now().Before(late) {
			return false
		}
		w.mu.Unlock()
		time.Sleep(w.grace / 10)
		w.mu.Lock()
	}
}

func (w *witness) leave(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside != nil && w.inside.who == who {
		w.inside = nil
	}
}

// hold is inside for d, or until ctx ends.
func (w *witness) hold(who string, ctx context.Context, d time.Duration) {
	w.enter(who, ctx)
	defer w.leave(who)
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
}

func worker(i int) string { return fmt.Sprintf("worker %d", i) }
