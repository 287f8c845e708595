package zksync_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Consumers lose no message when a queue whose numbers are used up is created anew.
func TestSpentCounterWithAConsumer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		consumers := []*zksync.Queue{newQueue(t, srv), newQueue(t, srv)}
		put(t, q, "first")
		if err := srv.SetNextSequence(queuePath, 2147483640); err != nil {
			t.Fatal(err)
		}
		received := make(chan string)
		for _, c := range consumers {
			go func() {
				for data := range c.Chan() {
					received <- string(data)
				}
			}()
		}
		want := numbered("m", 50)
		put := make(chan error, len(want))
		go func() {
			for _, m := range want {
				put <- q.Put(t.Context(), []byte(m))
			}
		}()
		got := make([]string, 0, len(want)+1)
		for len(got) < len(want)+1 {
			select {
			case m := <-received:
				got = append(got, m)
			case <-time.After(patience):
				t.Fatalf("nothing comes any more after %q", got)
			}
		}
		for range want {
			if err := <-put; err != nil {
				t.Error(err)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, append([]string{"first"}, want...)) {
			t.Errorf("received %q", got)
		}
	})
}

// A message takes room until it is acknowledged.
func TestRoomIsMadeByAcknowledging(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv, zksync.WithCapacity(2))
		consumer := newQueue(t, srv)
		put(t, q, "one", "two")
		done := make(chan error, 1)
		go func() { done <- q.Put(t.Context(), []byte("three")) }()
		msg := <-consumer.Messages()
		pending(t, "Put into a full queue", done)
		time.Sleep(time.Minute)
		pending(t, "Put into a full queue", done)
		if err := msg.Ack(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		wantMessages(t, srv, "two", "three")
	})
}

// The caller may use its data again when Put has returned, also after a Put that it gave up.
func TestPutKeepsNothingOfItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		for _, f := range []zksynctest.Fault{
			{Nth: 1, At: zksynctest.AfterCommit, Do: zksynctest.Delay(time.Second)}, // so that the next one has both
			{Nth: 2, At: zksynctest.BeforeCommit, Do: zksynctest.Delay(3 * time.Second)},
			{Nth: 2, At: zksynctest.BeforeCommit, Do: zksynctest.Disconnect},
		} {
			f.Op = zkserver.OpMulti
			srv.Inject(f)
		}
		putting := func(ctx context.Context, data []byte) <-chan error {
			done := make(chan error, 1)
			go func() { done <- q.Put(ctx, data) }()
			synctest.Wait()
			return done
		}
		busy := putting(t.Context(), []byte("second"))
		data := []byte("given up")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		given := putting(ctx, data)
		other := putting(t.Context(), []byte("other"))
		if err := <-busy; err != nil {
			t.Fatal(err)
		}
		if err := <-given; !errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Fatalf("Put: %v, want ErrOutcomeUnknown", err)
		}
		copy(data, "something else")
		if err := <-other; err != nil {
			t.Fatal(err)
		}
		wantMessages(t, srv, "first", "second", "given up", "other")
	})
}
