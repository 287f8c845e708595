package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
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

// A consumer whose receiver settles no message logs after three seconds, and then at growing intervals, that it waits for
// the receiver, at the level Info, and the end of All's ctx says the same. An idle consumer logs nothing. Breaks if
// stream.waitForRoom starts no Wait for the receiver.
func TestAConsumerSaysThatNothingIsSettled(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const reason = "waiting for Ack, Nack, Retry or MoveTo: 2 of 2 messages are not settled (see WithPrefetch)"
		core, logs := observer.New(zapcore.InfoLevel)
		m := srv.Connect(t, session.WithLogger(zap.New(core, zap.WithClock(bubbleClock{}))))
		q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(2))
		defer closeQueue(t, q)
		var got []*zksync.Message
		var start time.Time // of the last receipt
		next := func() (end error) {
			for msg, err := range q.All(within(t, time.Hour)) {
				if err != nil {
					return err
				}
				got, start = append(got, msg), time.Now()
			}
			return nil
		}
		if err := next(); strings.Contains(err.Error(), "settled") {
			t.Errorf("the end of an idle loop: %v", err)
		}
		reasons{logs}.none(t)
		offer(t, m, queuePath, 0, 5)
		explained(t, next(), reason)
		if len(got) != 2 {
			t.Fatalf("%d messages, want 2", len(got))
		}
		reasons{logs}.want(t, start, "consume", reason)
		if warned := logs.FilterLevelExact(zapcore.WarnLevel).Len(); warned > 0 || logs.FilterMessage("a call waited").Len() > 20 {
			t.Errorf("%d warnings and %d lines in an hour, want none and at most 20", warned, logs.FilterMessage("a call waited").Len())
		}
		ack(t, got[0])
		ack(t, got[1])
		synctest.Wait()
		if waits := m.Stats().Waits; len(waits) != 0 {
			t.Errorf("waits %v, want none after the receiver has settled its messages", waits)
		}
	})
}
