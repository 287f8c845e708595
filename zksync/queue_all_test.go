package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// All delivers the messages of Messages, ends with the reason of ctx or of Err, and can be
// left and begun again.
func TestAll(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 6)
		q := zksync.NewQueue(srv.Connect(t), queuePath)
		var got []string
		for msg, err := range q.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(msg.Data))
			ack(t, msg)
			if len(got) == 3 {
				break
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var end error
		for msg, err := range q.All(ctx) {
			if err != nil {
				end = err
				continue
			}
			got = append(got, string(msg.Data))
			ack(t, msg)
			if len(got) == 5 {
				cancel()
			}
		}
		if !errors.Is(end, context.Canceled) {
			t.Errorf("the loop has ended with %v", end)
		}
		for msg, err := range q.All(t.Context()) {
			if end = err; err != nil {
				continue
			}
			got = append(got, string(msg.Data))
			ack(t, msg)
			closeQueue(t, q)
		}
		if !errors.Is(end, zksync.ErrQueueClosed) {
			t.Errorf("the loop has ended with %v", end)
		}
		want(t, got, numbers(0, 6))
		wantLeft(t, srv, 0, 0)
	})
}

// A message of NewMessage reports once to the test of a handler how it was settled
// (test_settler.go: settle).
func TestNewMessage(t *testing.T) {
	for _, verb := range []string{"Ack", "Nack"} {
		for _, result := range []error{nil, zksync.ErrLost} {
			t.Run(fmt.Sprint(verb, result), func(t *testing.T) {
				var verbs []string
				msg := zksync.NewMessage("/q/1", []byte("data"), func(_ context.Context, verb string) error {
					verbs = append(verbs, verb)
					return result
				})
				settle, other := msg.Ack, msg.Nack
				if verb == "Nack" {
					settle, other = other, settle
				}
				if err := settle(t.Context()); !errors.Is(err, result) {
					t.Errorf("%s: %v, want %v", verb, err, result)
				}
				if err := other(t.Context()); !errors.Is(err, zksync.ErrSettled) {
					t.Errorf("the other one: %v, want ErrSettled", err)
				}
				want(t, verbs, []string{verb})
				if string(msg.Data) != "data" || msg.ID != "/q/1" {
					t.Errorf("%q, %q", msg.Data, msg.ID)
				}
			})
		}
	}
	if err := zksync.NewMessage("", nil, nil).Ack(t.Context()); err != nil {
		t.Error("Ack:", err)
	}
}
