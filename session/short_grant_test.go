package session_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
)

// A hold ends at once when a reconnect grants a session timeout that is too short to use, because the server counts
// that timeout from then on. To see this test fail, remove the case of connection.Connected for a known session with
// such a timeout.
func TestAShortGrantAtAReconnectEndsTheHold(t *testing.T) {
	for _, short := range []int32{99, 1, 0, -1} {
		bounds.Bubble(t, func(t *testing.T) {
			var granted atomic.Int32
			granted.Store(10_000)
			var at atomic.Int64 // when the short timeout was granted first
			h := &hostileServer{grant: func(int64, int32) (int64, int32) {
				if granted.Load() < 100 {
					at.CompareAndSwap(0, time.Now().UnixNano())
				}
				return 7, granted.Load()
			}}
			s := current(t, connectTo(t, h))
			hold(t, s)
			time.Sleep(20 * time.Second)
			granted.Store(short)
			h.hangUp()
			<-s.Done()
			if late := time.Since(time.Unix(0, at.Load())); late > 0 {
				t.Errorf("held for %v after a server had shortened the session to %d ms", late, short)
			}
			mustBe(t, s.Err(), session.ErrLost)
		})
	}
}
