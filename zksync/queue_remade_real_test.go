package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A priority's directory is deleted and created again while a consumer of it is disconnected from a real server. The consumer
// removes and receives no message that another consumer has, and goes on.
func TestRealPriorityRemadeDuringADisconnection(t *testing.T) {
	const n = 10
	for _, how := range []string{"Messages", "Take"} {
		t.Run(how, func(t *testing.T) {
			e := zksynctest.RealShared(t)
			path := servers.Path(t)
			others := e.Connect(t)
			producer := zksync.NewPriorityQueue(others, path)
			defer producer.Close()
			fill := func(what string) {
				for i := range n {
					must(t, producer.Put(t.Context(), fmt.Append(nil, what, i), 0))
				}
			}
			fill("old ")
			link := zksynctest.NewLink(new(net.Dialer).DialContext)
			defer link.Close()
			a := zksync.NewPriorityQueue(e.Connect(t, session.WithTimeout(30*time.Second), session.WithDialer(link.Dial)), path, zksync.WithPrefetch(1))
			defer a.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var former *zksync.Message
			if how == "Messages" {
				former = <-a.Messages()
			} else {
				_, err := a.Take(ctx)
				must(t, err)
			}

			link.Cut()
			s, dir := live(t, others), path+"/p-000"
			names, _, err := s.Children(ctx, dir)
			must(t, err)
			for _, name := range names {
				must(t, s.Delete(ctx, dir+"/"+name, -1))
			}
			// A server may have deleted the empty directory already.
			if err := s.Delete(ctx, dir, -1); session.ClassOf(err) != session.ClassNoNode {
				must(t, err)
			}
			fill("new ")
			b := zksync.NewPriorityQueue(others, path)
			defer b.Close()
			var held []*zksync.Message
			for range n {
				select {
				case m := <-b.Messages():
					held = append(held, m)
				case <-ctx.Done():
					t.Fatalf("%d messages of the new directory, want %d", len(held), n)
				}
			}
			link.Heal()

			if former != nil {
				if err := former.Ack(ctx); !errors.Is(err, session.ErrRemoved) {
					t.Errorf("Ack of the former message: %v, want ErrRemoved", err)
				}
			}
			for _, m := range held {
				if err := m.Ack(ctx); err != nil {
					t.Errorf("Ack of %s: %v", m.Data, err)
				}
			}
			must(t, b.Close())
			must(t, producer.Put(ctx, []byte("last"), 0))
			var got []byte
			if how == "Messages" {
				select {
				case m := <-a.Messages():
					got = m.Data
					must(t, m.Ack(ctx))
				case <-ctx.Done():
				}
			} else {
				got, err = a.Take(ctx)
				must(t, err)
			}
			if string(got) != "last" {
				t.Errorf("%q was received, want the last message", got)
			}
		})
	}
}

// A message that is put off at once comes again to the only consumer of its queue, on either server.
func TestFirstRetry(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		for i := range 40 {
			q := zksync.NewQueue(m, fmt.Sprintf("%s-%d", servers.Path(t), i))
			must(t, q.Put(t.Context(), []byte("m")))
			must(t, (<-q.Messages()).Retry(t.Context(), 0))
			select {
			case msg := <-q.Messages():
				must(t, msg.Ack(t.Context()))
			case <-time.After(30 * time.Second):
				t.Fatalf("the message does not come again: %v", q.Err())
			}
			must(t, q.Close())
		}
	})
}
