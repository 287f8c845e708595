package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A queue that is made anew under them loses nothing for those who consume.
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

// What a consumer has takes room until it is acknowledged.
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

// The caller may use its bytes again, also those of a Put that it gave up.
func TestPutKeepsNothingOfItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		put(t, q, "first")
		onMulti(srv, zksynctest.BeforeCommit, 1, zksynctest.Delay(3*time.Second), zksynctest.Disconnect)
		data := []byte("given up")
		given := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() { given <- q.Put(ctx, data) }()
		other := make(chan error, 1)
		go func() { other <- q.Put(t.Context(), []byte("other")) }()
		if err := <-given; !errors.Is(err, zksync.ErrOutcomeUnknown) {
			t.Fatalf("Put: %v, want ErrOutcomeUnknown", err)
		}
		copy(data, "something else")
		if err := <-other; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := fmt.Sprint(inQueue(srv, queuePath)); got != "[first given up other]" && got != "[first other given up]" {
			t.Errorf("in the queue: %s", got)
		}
	})
}
