package zksync_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// phases is the number of moments, within half a session timeout, at which an outage begins.
const phases = 12

// A cut of the network of less than a quarter of the session timeout costs no hold, as docs/operating.md says, and a cut
// of 0.65 of it costs every hold.
// Breaks if contactFraction is 5.
func TestCutsThatCostNoHold(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second, 30 * time.Second} {
		for percent, lost := range map[int]bool{24: false, 65: true} {
			for phase := range phases {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					link := srv.NewLink(t)
					held, err := zksync.NewMutex(link.Connect(t, session.WithTimeout(timeout)), path).LockContext(t.Context())
					must(t, err)
					time.Sleep(5*timeout + time.Duration(phase)*timeout/(2*phases))
					link.Cut()
					time.Sleep(time.Duration(percent) * timeout / 100)
					link.Heal()
					time.Sleep(timeout)
					if got := held.Err() != nil; got != lost {
						t.Errorf("a cut of %d%% of %v, phase %d: lost %v, want %v", percent, timeout, phase, got, lost)
					}
				})
			}
		}
	}
}

// An election of a leader that takes less than a sixth of the session timeout costs no hold, as docs/operating.md says.
// Breaks if contactFraction is 5.
func TestElectionsThatCostNoHold(t *testing.T) {
	for _, timeout := range []time.Duration{10 * time.Second, 30 * time.Second} {
		for phase := range phases {
			synctest.Test(t, func(t *testing.T) {
				e := zksynctest.StartEnsemble(t, 3, zksynctest.WithElectionTime(timeout/6))
				held, err := zksync.NewMutex(e.Connect(t, session.WithTimeout(timeout)), path).LockContext(t.Context())
				must(t, err)
				time.Sleep(5*timeout + time.Duration(phase)*timeout/(2*phases))
				old := e.Leader()
				e.Kill(old)
				e.WaitLeader(old)
				time.Sleep(timeout)
				if held.Err() != nil {
					t.Errorf("timeout %v, phase %d: the hold is lost", timeout, phase)
				}
			})
		}
	}
}
