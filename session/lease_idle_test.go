package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A hold that begins on an idle session lasts, whenever it begins between two requests of the idle session, and however
// far the servers are up to an eighth of the timeout. Near the servers its grant waits for nothing. To see this test
// fail, have leases.grantable return true behind its first condition, or set idleFraction to 3.
func TestHoldsAfterIdleness(t *testing.T) {
	const phases = 16
	for _, roundTrip := range []time.Duration{timeout / 100, timeout / 30, timeout / 8} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				link := srv.NewLink(t)
				s := current(t, link.Connect(t))
				link.Delay(roundTrip / 2)
				for i := range phases {
					time.Sleep(3*timeout + timeout*time.Duration(i)/(3*phases))
					path := create(t, s, "/held", zk.FlagEphemeral)
					l := s.Lease()
					l.Own(path)
					l.Prepare()
					began := time.Now()
					if err := l.Grant(t.Context()); err != nil {
						t.Fatalf("phase %d: %v", i, err)
					}
					// The first grant ever waits: see ExpectHolds.
					if waited := time.Since(began); i > 0 && roundTrip == timeout/100 && waited > 0 {
						t.Errorf("phase %d: the grant came after %v, want at once", i, waited)
					}
					began = time.Now()
					select {
					case <-s.Context().Done():
						t.Fatalf("phase %d: the hold was lost after %v", i, time.Since(began))
					case <-time.After(3 * timeout):
					}
					l.End()
					if err := s.Delete(t.Context(), path, -1); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}
