package zksync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A message that was claimed in a deleted ledger cannot be settled through the next ledger,
// and the lone consumer receives it again.
func TestLedgerDeleted(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		q := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(4))
		defer closeQueue(t, q)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		first := <-q.Messages()
		names, _ := srv.Children(queuePath + "/zksync-claims")
		for _, name := range names {
			if strings.HasPrefix(name, "ledger-") {
				if err := srv.Delete(queuePath + "/zksync-claims/" + name); err != nil {
					t.Fatal(err)
				}
			}
		}
		offer(t, srv.Connect(t), queuePath, 1, 2) // its claim finds that the ledger is gone
		got := map[string]*zksync.Message{}
		for range 2 {
			select {
			case m, ok := <-q.Messages():
				if !ok {
					t.Fatal("the channel was closed:", q.Err())
				}
				got[string(m.Data)] = m
			case <-time.After(patience):
				t.Fatalf("received %d messages again, want 2", len(got))
			}
		}
		if err := first.Nack(t.Context()); !errors.Is(err, session.ErrRemoved) && !errors.Is(err, session.ErrLost) {
			t.Errorf("Nack of a message of the deleted ledger: %v", err)
		}
		wantLeft(t, srv, 2, 2)
		for data, m := range got {
			if err := m.Ack(t.Context()); err != nil {
				t.Errorf("Ack of %s: %v", data, err)
			}
		}
		wantLeft(t, srv, 0, 0)
	})
}

// TryTake takes all messages, although one of them was given back before and removed.
func TestTakeAfterReturned(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		taker := zksync.NewQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, taker)
		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		taken := make(chan error, 1)
		go func() { _, err := taker.Take(waiting); taken <- err }()
		time.Sleep(500 * time.Millisecond) // it watches the ledgers now
		other := zksync.NewQueue(srv.Connect(t), queuePath)
		ch := other.Messages()
		<-taken
		offer(t, srv.Connect(t), queuePath, 0, 3)
		<-ch
		closeQueue(t, other)
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, ok, err := taker.TryTake(ctx); !ok || err != nil {
				t.Errorf("TryTake %d: %v, %v", i, ok, err)
			}
			cancel()
		}
		wantLeft(t, srv, 0, 0)
	})
}
