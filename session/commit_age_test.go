package session_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
)

// A holder leaves in time a connection on which events arrive, but no answer to the transaction that proves the
// session alive. To see this test fail, make keeper.stuckAt return false.
func TestEventsDoNotHideAStuckCommit(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var stuck atomic.Bool
		var bad atomic.Pointer[hostilePeer] // the connection on which the server stops answering
		h := &hostileServer{}
		h.answer = func(p *hostilePeer, xid, op int32, body []byte) bool {
			if stuck.Load() && bad.CompareAndSwap(nil, p) {
				go func() {
					for range 20 {
						p.frame(ints(-1), longs(-1), ints(0, 3, 3, 2), []byte("/w"))
						select {
						case <-p.ended:
							return
						case <-time.After(time.Second):
						}
					}
				}()
			}
			return stuck.Load() && bad.Load() == p
		}
		s := current(t, connectTo(t, h))
		hold(t, s)
		for range 12 { // a commit gets stuck at any moment of the keeper's turns
			stuck.Store(false)
			bad.Store(nil)
			time.Sleep(20*time.Second + timeout/17)
			stuck.Store(true)
			time.Sleep(20 * time.Second)
			if s.Err() != nil {
				t.Fatalf("the hold is lost, with a healthy server at hand: %v", s.Err())
			}
		}
	})
}

// A holder keeps its connection to servers that take a sixth of the session timeout for each transaction: another
// connection would not be faster, and would add to the load. To see this test fail, make keeper.stuckAt return the
// critical time.
func TestASlowCommitCostsNoConnection(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &hostileServer{answer: func(p *hostilePeer, xid, op int32, body []byte) bool {
			if op == opMulti {
				time.Sleep(timeout / 6)
			}
			return false
		}}
		m := connectTo(t, h)
		s := current(t, m)
		hold(t, s)
		before, _ := h.count()
		time.Sleep(10 * time.Minute)
		if after, _ := h.count(); after != before || s.Err() != nil {
			t.Errorf("%d connections were left; the hold: %v", after-before, s.Err())
		}
		m.Close()
		time.Sleep(timeout) // the server may be busy with a transaction
	})
}
