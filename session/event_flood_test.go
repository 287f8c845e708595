package session_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A flood of events ends its connection, also while a read that arms their watch waits for its answer. To see this
// test fail, make hub.event count only events without a waiter.
func TestAFloodOfEventsOfAPendingRead(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var sent atomic.Int64
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if !aboutBig(op, body) {
				return false
			}
			ev := framed(ints(-1), longs(-1), ints(0, 3, 3, 4), []byte("/big"))
			for range 50_000 {
				if _, err := p.conn.Write(ev); err != nil {
					break
				}
				sent.Add(1)
			}
			return true
		}}
		s := current(t, connectTo(t, h))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s.WatchData(ctx, "/big")
		if dials, _ := h.count(); sent.Load() > int64(dials)*1010 {
			t.Errorf("%d events of one watch were taken on %d connections", sent.Load(), dials)
		}
	})
}

// Many watches that are stopped while they fire, and after a reconnect, cost no connection. To see this test fail,
// make hub.rearm set armings to 0.
func TestWatchesThatAreStoppedWhileTheyFire(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		const n = 6000
		for i := range n {
			srv.Create(fmt.Sprintf("/p%d", i), nil)
		}
		for round := range 4 {
			conn := s.Connection()
			var ws []*session.Watch
			for i := range n {
				_, _, w, err := s.WatchData(t.Context(), fmt.Sprintf("/p%d", i))
				if err != nil {
					t.Fatal(err)
				}
				ws = append(ws, w)
				if i%3 == 0 {
					_, _, w, err := s.WatchChildren(t.Context(), fmt.Sprintf("/p%d", i))
					if err != nil {
						t.Fatal(err)
					}
					ws = append(ws, w)
				}
			}
			if round%2 == 1 {
				srv.Disconnect(s.ID())
				synctest.Wait()
				time.Sleep(time.Second)
				conn = s.Connection()
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				for _, w := range ws {
					w.Stop()
				}
			})
			for i := range n {
				if round == 3 {
					srv.Delete(fmt.Sprintf("/p%d", i))
				} else {
					srv.Set(fmt.Sprintf("/p%d", i), []byte("x"))
				}
			}
			wg.Wait()
			time.Sleep(time.Second)
			if s.Connection() != conn {
				t.Errorf("round %d: the connection was closed", round)
			}
		}
	})
}
