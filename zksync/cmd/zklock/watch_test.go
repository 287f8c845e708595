package main

import (
	"context"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// watch shows each consumer of a queue that begins or ends to receive, also if no other znode of the queue changes. Breaks if
// watchCommand.run does not follow the directory of the claims.
func TestWatchOfAQueue(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		consume := func(m *session.Manager) *zksync.Queue {
			q := zksync.NewQueue(m, path)
			messages := q.Messages()
			go func() {
				for range messages {
				}
			}()
			return q
		}
		first := consume(srv.Connect(t))
		ctx, stop := context.WithCancel(t.Context())
		w, done := start(ctx, "watch", "-servers", srv.Address(), path)
		told := func(event string, n int) {
			t.Helper()
			await(t, event, func() bool { return strings.Count(w.out.String(), event) == n })
		}
		told("holds", 1)
		second := consume(srv.Connect(t))
		told("holds", 2)
		for i, q := range []*zksync.Queue{second, first} {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			told("left", i+1)
		}
		stop()
		<-done
	})
}
