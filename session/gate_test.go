package session_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
)

// A connection that ends while the answer to its first sync is handled is not put to use. To see this test fail, have
// gate.attach not look at Closed.
func TestAConnectionThatHasEndedIsNotPutToUse(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		const timeout = 12 * time.Second
		h := &hostileServer{}
		var dials, late atomic.Int32
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) > 2 {
				return nil, errors.New("refused")
			}
			return h.dial(ctx, network, address)
		}
		// The answer must be handled within a third of the timeout, or the connection ends.
		slow := session.Observer{RequestDone: func(r session.RequestDone) {
			if r.Op == "sync" && dials.Load() == 2 && late.Add(1) == 1 {
				time.Sleep(timeout/3 + time.Second)
			}
		}}
		m := connectTo(t, h, session.WithTimeout(timeout), session.WithDialer(dial), session.WithObserver(slow))
		s := current(t, m)
		h.hangUp()
		time.Sleep(timeout / 2)
		if n := late.Load(); n == 0 {
			t.Error("no sync was answered on the second connection")
		}
		if state := m.State(); state != session.Suspended {
			t.Fatalf("the state is %v without a connection, want Suspended", state)
		}
		// A request that is not repeated must wait for a connection on which it can be sent.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Set(ctx, "/a", nil, -1)
		mustBe(t, err, context.DeadlineExceeded)
	})
}
