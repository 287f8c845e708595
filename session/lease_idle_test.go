package session_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/zksynctest"
)

// A hold that begins on an idle session far from the servers outlives its first deadline, whenever it begins between two
// requests of the idle session. The proof of the hold is the second newest contact before it, and the next commit must be
// answered before that proof ends: see idleFraction.
func TestAHoldAfterIdlenessFarFromTheServers(t *testing.T) {
	const phases, roundTrip = 16, timeout / 15
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
			if err := l.Grant(t.Context()); err != nil {
				t.Fatalf("phase %d: %v", i, err)
			}
			began := time.Now()
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
}
