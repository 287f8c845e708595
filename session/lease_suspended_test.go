package session_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A ConnectRequest that was written before a suspension of the machine, and answered after it, keeps the session
// alive on the servers for a timeout from the time at which the request was written: the suspension counts. To see
// this test fail, remove the statement of proof.connect that calls written.
func TestASuspensionDuringAHandshakeCounts(t *testing.T) {
	const slept = timeout / 4
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var suspended atomic.Int64
		s := current(t, connect(t, srv, three, session.WithSuspension(func() time.Duration { return time.Duration(suspended.Load()) })))
		create(t, s, "/held", zk.FlagEphemeral)
		hold(t, s)
		time.Sleep(timeout)
		asked := make(chan time.Time, 1)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpConnect, At: zksynctest.BeforeReply, Do: zksynctest.Call(func() {
			suspended.Store(int64(slept))
			asked <- time.Now()
		})})
		srv.Disconnect(s.ID())
		time.Sleep(timeout / 5) // less than a report later than the handshake
		if s.Err() != nil {
			t.Fatalf("the session is lost: %v", s.Err())
		}
		proven := (<-asked).Add(timeout - timeout/20 - slept)
		if got := s.Deadline(); got.After(proven) {
			t.Errorf("the Deadline is %v later than the handshake proves", got.Sub(proven))
		}
	})
}
