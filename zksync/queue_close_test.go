package zksync_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// sentAndWaiting starts a Put whose answer takes a second, and one behind it that
// is not sent yet.
func sentAndWaiting(t *testing.T, srv *zksynctest.Server, q *zksync.Queue) (sent, waits <-chan error) {
	t.Helper()
	put(t, q, "first")
	onMulti(srv, zksynctest.AfterCommit, 1, zksynctest.Delay(time.Second))
	putting := func(message string) <-chan error {
		done := make(chan error, 1)
		go func() { done <- q.Put(t.Context(), []byte(message)) }()
		synctest.Wait()
		return done
	}
	return putting("sent"), putting("waits")
}

// At Close, Puts that were not sent fail with ErrQueueClosed, sent ones are waited for, the value's marker is deleted,
// and Close may be called again.
func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		sent, waits := sentAndWaiting(t, srv, q)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := <-sent; err != nil {
			t.Errorf("a Put that was under way: %v", err)
		}
		if err := <-waits; !errors.Is(err, zksync.ErrQueueClosed) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("a Put that was not sent: %v", err)
		}
		if err := q.Put(t.Context(), nil); !errors.Is(err, zksync.ErrQueueClosed) {
			t.Errorf("Put after Close: %v", err)
		}
		if err := q.PutAll(t.Context(), nil); !errors.Is(err, zksync.ErrQueueClosed) {
			t.Errorf("PutAll after Close: %v", err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		wantMessages(t, srv, "first", "sent")
		if got := markers(t, srv); len(got) != 0 {
			t.Errorf("left behind: %v", got)
		}
		srv.ResetOps()
		unused := zksync.NewQueue(m, queuePath)
		unused.Close()
		if ops := requests(srv); len(ops) != 0 {
			t.Errorf("closing what was not used asked for %v", names(ops))
		}
	})
}

// Close takes five seconds at most if no server answers.
func TestCloseWithoutAServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		srv.Freeze()
		sent := make(chan error, 1)
		go func() { sent <- q.Put(t.Context(), []byte("second")) }()
		synctest.Wait()
		start := time.Now()
		q.Close()
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		if err := <-sent; !errors.Is(err, zksync.ErrOutcomeUnknown) || !errors.Is(err, zksync.ErrQueueClosed) {
			t.Errorf("a Put that was under way: %v", err)
		}
		srv.Thaw()
	})
}

// When the Manager is closed, Puts that were sent are waited for, and the others fail with ErrClosed.
func TestManagerCloses(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		sent, waits := sentAndWaiting(t, srv, q)
		m.Close()
		if err := <-sent; err != nil {
			t.Errorf("a Put that was under way: %v", err)
		}
		if err := <-waits; !errors.Is(err, zksync.ErrClosed) || errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Errorf("a Put that was not sent: %v", err)
		}
		q.Close()
		wantMessages(t, srv, "first", "sent")
	})
}

// An idle value runs no goroutine and asks the servers for nothing.
func TestIdleQueueIsQuiet(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		srv.ResetOps()
		time.Sleep(time.Hour)
		if ops := requests(srv); len(ops) != 0 {
			t.Errorf("an idle queue asked for %v", names(ops))
		}
		put(t, q, "second")
		if got := names(requests(srv)); got != "multi" {
			t.Errorf("a Put is %s", got)
		}
	})
}
