package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// do carries out one transaction; see Committer.Start and Entry.Wait.
func (c *Committer) do(ctx context.Context, t Tx) error {
	if ctx.Err() != nil {
		return session.Cancelled(ctx)
	}
	return c.Start(t)[0].Wait(ctx)
}

// doAll carries out many transactions that do not depend on each other, in order, and
// returns their outcomes.
func (c *Committer) doAll(ctx context.Context, txs ...Tx) []error {
	var entries []*Entry
	for _, t := range txs {
		entries = append(entries, &Entry{Tx: t, c: c, done: make(chan struct{})})
	}
	c.enqueue(entries...)
	return outcomes(ctx, entries)
}

func outcomes(ctx context.Context, entries []*Entry) (errs []error) {
	for _, e := range entries {
		errs = append(errs, e.Wait(ctx))
	}
	return errs
}

// committing runs test with a Committer below /c, and its session.
func committing(t *testing.T, test func(t *testing.T, srv *zksynctest.Server, c *Committer, s *session.Session), opts ...session.Option) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		m := srv.Connect(t, opts...)
		s, err := m.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := New(m, "/c/markers", new(atomic.Bool))
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			c.Close(ctx, errors.New("closed"))
		})
		if err := c.do(t.Context(), creates("/c/first")); err != nil {
			t.Fatal(err)
		}
		srv.ResetOps()
		test(t, srv, c, s)
	})
}

func creates(paths ...string) Tx {
	var t Tx
	for _, path := range paths {
		t.Ops = append(t.Ops, &zk.CreateRequest{Path: path})
	}
	return t
}

func mustExist(t testing.TB, srv *zksynctest.Server, want bool, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, ok := srv.Get(path); ok != want {
			t.Errorf("znode %s exists: %v, want %v", path, ok, want)
		}
	}
}

func multis(srv *zksynctest.Server) int {
	n := 0
	for _, op := range srv.Ops() {
		if op.Code == zkserver.OpMulti {
			n++
		}
	}
	return n
}

// Of transactions that share a request, each gets its own result, and a failure costs few more requests.
func TestEachTransactionHasItsOwnError(t *testing.T) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range 100 {
			path := fmt.Sprintf("/c/%02d", i)
			if i%30 == 7 {
				path = "/nowhere" + path
			}
			txs = append(txs, creates(path+"a", path+"b"))
		}
		txs = append(txs, creates("/c/03b", "/c/x"))
		errs := c.doAll(t.Context(), txs...)
		for i, err := range errs[:100] {
			path := fmt.Sprintf("/c/%02d", i)
			if i%30 == 7 {
				if !errors.Is(err, zk.ErrNoNode) || errors.Is(err, ErrUnknown) {
					t.Errorf("transaction %d: %v, want ErrNoNode", i, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("transaction %d: %v", i, err)
			}
			mustExist(t, srv, true, path+"a", path+"b")
		}
		if !errors.Is(errs[100], zk.ErrNodeExists) {
			t.Errorf("the last transaction: %v, want ErrNodeExists", errs[100])
		}
		mustExist(t, srv, false, "/c/x")
		if n := multis(srv); n > 5*4 {
			t.Errorf("%d requests for five failures among a hundred", n)
		}
	})
}

// Transactions around one that fails keep their order.
func TestOrderIsKeptAroundAFailure(t *testing.T) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range 20 {
			path := fmt.Sprintf("/c/%02d-", i)
			if i == 10 {
				path = "/nowhere/x"
			}
			txs = append(txs, Tx{Ops: []any{&zk.CreateRequest{Path: path, Flags: zk.FlagSequence}}})
		}
		c.doAll(t.Context(), txs...)
		names, _ := srv.Children("/c")
		slices.SortFunc(names, func(a, b string) int {
			return strings.Compare(a[strings.LastIndexByte(a, '-')+1:], b[strings.LastIndexByte(b, '-')+1:])
		})
		var order []string
		for _, name := range names {
			if strings.Count(name, "-") == 1 {
				order = append(order, name[:2])
			}
		}
		if len(order) != 19 || !slices.IsSorted(order) {
			t.Errorf("the order is %v", order)
		}
	})
}

// A failure ends the chain of transactions behind it, and no transaction outside of the chain.
func TestChainEndsAtAFailure(t *testing.T) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range 300 {
			path := fmt.Sprintf("/c/%03d", i)
			if i == 150 {
				path = "/nowhere/x"
			}
			txs = append(txs, creates(path))
		}
		for i, err := range outcomes(t.Context(), c.Start(txs...)) {
			switch {
			case i < 150 && err != nil, i == 150 && !errors.Is(err, zk.ErrNoNode), i > 150 && err != errSkipped:
				t.Errorf("transaction %d: %v", i, err)
			case i != 150:
				mustExist(t, srv, i < 150, fmt.Sprintf("/c/%03d", i))
			}
		}
		if err := c.do(t.Context(), creates("/c/another")); err != nil {
			t.Errorf("outside of the chain: %v", err)
		}
	})
}

// A transaction whose session and answer are lost happens once, under the next session.
func TestSessionIsLostWithTheAnswer(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
		committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, s *session.Session) {
			expire := zksynctest.Call(func() { srv.ExpireSession(s.ID()) })
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: expire})
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Disconnect})
			// Twice, the create would fail.
			if err := c.do(t.Context(), creates("/c/a")); err != nil {
				t.Errorf("%v: %v", at, err)
			}
			mustExist(t, srv, true, "/c/a")
			next, err := c.m.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if next == s {
				t.Error("the session was not lost")
			}
			if err := c.do(t.Context(), creates("/c/b")); err != nil {
				t.Errorf("under the next session: %v", err)
			}
			mustExist(t, srv, true, "/c/b")
		})
	}
}

// A wait for a transaction that was given up can be repeated, and then returns the outcome.
func TestWaitingAgain(t *testing.T) {
	for at, want := range map[zksynctest.Moment]bool{zksynctest.BeforeCommit: false, zksynctest.AfterCommit: true} {
		committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, s *session.Session) {
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Delay(time.Minute)})
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: at, Do: zksynctest.Disconnect})
			// The answer to the fence is lost, too, and with it the session.
			srv.Inject(zksynctest.Fault{Op: zkserver.OpSetData, At: zksynctest.AfterCommit, Do: zksynctest.Call(func() { srv.ExpireSession(s.ID()) })})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			e := c.Start(creates("/c/a"))[0]
			if err := e.Wait(ctx); !errors.Is(err, ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("wait: %v", err)
			}
			if err := e.Wait(t.Context()); (err == nil) != want || errors.Is(err, ErrUnknown) {
				t.Errorf("%v: waiting again: %v", at, err)
			}
			mustExist(t, srv, want, "/c/a")
			if err := c.do(t.Context(), creates("/c/b")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A transaction that was refused never happens later. Its first request may be carried out after its session was given
// up, and must be refused then.
func TestRefusalIsFinal(t *testing.T) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, s *session.Session) {
		// The marker is as it was when the repetition comes, and its transaction is
		// refused; then what it repeats arrives.
		late := []any{c.sender.marker.bump(), &zk.CreateRequest{Path: "/d/a"}}
		other, err := srv.Connect(t).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		arrives := func() {
			srv.Create("/d", nil)
			if _, err := other.Multi(t.Context(), late...); !errors.Is(err, zk.ErrBadVersion) {
				t.Errorf("the late request: %v, want ErrBadVersion", err)
			}
		}
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Disconnect})
		if err := c.do(t.Context(), creates("/d/a")); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("without its directory: %v", err)
		}
		arrives()
		mustExist(t, srv, false, "/d/a")
	})
}

// Close deletes no marker whose creation was refused for good, and deletes a marker whose creation was refused after an
// attempt with an unknown outcome.
func TestCloseDeletesNoRefusedMarker(t *testing.T) {
	for _, unsure := range []bool{false, true} {
		committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, s *session.Session) {
			before, _ := srv.Children("/c/markers") // the marker of c
			c = New(c.m, "/c/markers", new(atomic.Bool))
			if unsure {
				srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Path: "/c/markers/*", At: zksynctest.AfterCommit, Do: zksynctest.Disconnect})
			}
			srv.Inject(zksynctest.Fault{Op: zkserver.OpCreate, Path: "/c/markers/*", Nth: 1, Times: -1, Do: zkserver.Error(-102)})
			if err := c.do(t.Context(), creates("/a")); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("unsure %v: error %v, want ErrNoAuth", unsure, err)
			}
			deletes := 0
			c.Close(t.Context(), ErrStale)
			for _, op := range srv.Ops() {
				if op.Code == zkserver.OpDelete {
					deletes++
				}
			}
			if left, _ := srv.Children("/c/markers"); !slices.Equal(left, before) || (deletes != 0) != unsure {
				t.Errorf("unsure %v: %d requests to delete, markers %q, want %q", unsure, deletes, left, before)
			}
		})
	}
}

// A batch of transactions is bounded by the size of a request and by a number of transactions, and one that fits into
// no request is ErrTooLarge.
func TestBatchesAreBounded(t *testing.T) {
	big := func(path string, size int) Tx {
		return Tx{Ops: []any{&zk.CreateRequest{Path: path, Data: make([]byte, size)}}, Size: size + 100}
	}
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range 40 {
			txs = append(txs, big(fmt.Sprintf("/c/%02d", i), 100<<10))
		}
		txs = append(txs, big("/c/big", 1000<<10), creates("/c/behind"))
		if err := errors.Join(c.doAll(t.Context(), txs...)...); err != nil {
			t.Error(err)
		}
		if n := multis(srv); n != 8+1+1 {
			t.Errorf("%d requests, want 10", n)
		}
	})
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range 20 {
			txs = append(txs, big(fmt.Sprintf("/c/%02d", i), 600))
		}
		txs[10] = big("/c/10", 2000)
		for i, err := range c.doAll(t.Context(), txs...) {
			if want := i == 10; errors.Is(err, session.ErrTooLarge) != want || err != nil && !want {
				t.Errorf("transaction %d: %v", i, err)
			}
		}
	}, session.WithMaxRequest(2048))
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range 300 {
			txs = append(txs, creates(fmt.Sprintf("/c/%03d", i)))
		}
		if err := errors.Join(c.doAll(t.Context(), txs...)...); err != nil {
			t.Error(err)
		}
		if n := multis(srv); n != 3 {
			t.Errorf("%d requests for 300 transactions, want 3", n)
		}
	})
}

// An entry that is withdrawn ends the entries behind it, and no entry ahead of it, even if the request with the entries
// ahead must be repeated (sender.prepare: the condition for errSkipped).
func TestWithdrawalSparesTheEntriesAhead(t *testing.T) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		var txs []Tx
		for i := range maxBatch + 10 {
			txs = append(txs, creates(fmt.Sprintf("/c/%03d", i)))
		}
		// The request arrives late, and finds another version of the marker.
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(2 * time.Second)})
		marker := c.sender.marker.path
		time.AfterFunc(time.Second, func() { srv.Set(marker, []byte("x")) })
		why := errors.New("too long")
		entries := c.Start(txs...)
		defer c.WithdrawAfter(time.Second, why, entries[maxBatch])()
		for i, err := range outcomes(t.Context(), entries) {
			if i < maxBatch && err != nil || i == maxBatch && !errors.Is(err, why) || i > maxBatch && err != errSkipped {
				t.Errorf("transaction %d: %v", i, err)
			}
			mustExist(t, srv, i < maxBatch, fmt.Sprintf("/c/%03d", i))
		}
	})
}

// A transaction that relies on a read ends with ErrStale if the connection ends after Stale was asked, or if there is no
// connection. It is not sent over the next connection (sender.prepare, sender.transact).
func TestStaleBesideALostConnection(t *testing.T) {
	for _, before := range []bool{true, false} {
		committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, s *session.Session) {
			disconnect := func() {
				srv.Disconnect(s.ID())
				for s.Connection() != 0 {
					time.Sleep(time.Millisecond)
				}
			}
			if before {
				c.Gate = lateGate{before: disconnect}
			}
			asked := false
			tx := creates("/c/a")
			tx.Stale = func() bool {
				asked = true
				disconnect()
				return false
			}
			if err := c.do(t.Context(), tx); err != ErrStale {
				t.Errorf("outcome %v, want ErrStale", err)
			}
			if asked == before {
				t.Errorf("Stale was asked: %v", asked)
			}
			mustExist(t, srv, false, "/c/a")
		})
	}
}

// A lateGate is an openGate that runs a function before it admits entries.
type lateGate struct {
	openGate
	before func()
}

func (g lateGate) Admit(ctx context.Context, s *session.Session) ([]any, int, error) {
	g.before()
	return g.openGate.Admit(ctx, s)
}

// If a request with a transaction that relies on a read is throttled, its other transactions happen later, in order.
func TestThrottledBesideATransactionThatReliesOnARead(t *testing.T) {
	committing(t, func(t *testing.T, srv *zksynctest.Server, c *Committer, _ *session.Session) {
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: 3, Do: zksynctest.Throttle})
		relies := creates("/c/a")
		relies.Stale = func() bool { return false }
		errs := c.doAll(t.Context(), creates("/c/0"), relies, creates("/c/0/1"))
		if !slices.Equal(errs, []error{nil, ErrStale, nil}) {
			t.Errorf("the outcomes are %v, want only the second to be ErrStale", errs)
		}
		mustExist(t, srv, false, "/c/a")
	})
}
