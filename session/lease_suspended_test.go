package session_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A reconnect, a look at the Deadline, and Hold of a held lease notice a suspension of the machine beyond the
// Deadline, and the context of the hold ends at once. To see this test fail, remove the signal in leases.now, or
// the call of expired in Hold.
func TestASuspensionThatIsNoticedEndsTheContextAtOnce(t *testing.T) {
	for name, notice := range map[string]func(*testing.T, *zksynctest.Server, *session.Session, *session.Lease){
		"Deadline": func(_ *testing.T, _ *zksynctest.Server, s *session.Session, _ *session.Lease) { s.Deadline() },
		"reconnect": func(_ *testing.T, srv *zksynctest.Server, s *session.Session, _ *session.Lease) {
			srv.Disconnect(s.ID())
		},
		"Hold": func(t *testing.T, _ *zksynctest.Server, _ *session.Session, l *session.Lease) {
			if err := l.Hold(); !errors.Is(err, session.ErrLost) {
				t.Errorf("Hold behind the Deadline: %v, want ErrLost", err)
			}
		},
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			var suspended atomic.Int64
			s := current(t, connect(t, srv, three, session.WithSuspension(func() time.Duration { return time.Duration(suspended.Load()) })))
			create(t, s, "/held", zk.FlagEphemeral)
			l := hold(t, s)
			l.Own("/held")
			time.Sleep(2*timeout + 10*time.Millisecond)
			suspended.Store(int64(2 * timeout))
			notice(t, srv, s, l)
			synctest.Wait()
			if !errors.Is(s.Err(), session.ErrLost) {
				t.Errorf("%s: the context has not ended at once: %v", name, s.Err())
			}
		})
	}
}
