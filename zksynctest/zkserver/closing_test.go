package zkserver_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// ensembleFaults are methods that change links and membership. Each of them sets timers on a server
// that runs.
var ensembleFaults = map[string]func(s *zkserver.Server){
	"CutLink":       func(s *zkserver.Server) { s.CutLink(3, 1) },
	"HealLink":      func(s *zkserver.Server) { s.CutLink(3, 1); s.HealLink(3, 1) },
	"CutFromLeader": func(s *zkserver.Server) { s.Endpoint(1).CutFromLeader() },
	"Rejoin":        func(s *zkserver.Server) { s.Endpoint(3).CutFromLeader(); s.Endpoint(3).Rejoin() },
	"ResetEnd":      func(s *zkserver.Server) { s.ResetEnd(1, 3); s.ResetEnd(3, 2) },
	"Depose":        func(s *zkserver.Server) { s.Depose() },
	"Thaw":          func(s *zkserver.Server) { s.Endpoint(3).Freeze(); s.Endpoint(3).Thaw() },
}

// Faults that a test injects while Close runs, or later, start no timer that Close waits for.
func TestCloseWaitsForNoFault(t *testing.T) {
	for name, fault := range ensembleFaults {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				s, err := zkserver.NewEnsemble(zkserver.Config{ElectionTime: time.Second}, 3)
				if err != nil {
					t.Fatal(err)
				}
				// Close waits for a Call. The function of this Call goes on while Close waits.
				in := s.Inject(zkserver.Fault{Op: zkserver.OpConnect, Do: zkserver.Call(func() {
					time.Sleep(time.Millisecond)
					fault(s)
				})})
				rawDial(t, s).hello(0, 4*time.Second, 0, "")
				<-in.Fired()
				begin := time.Now()
				err = s.Close()
				during := time.Since(begin)
				fault(s)
				err = errors.Join(err, s.Close())
				if after := time.Since(begin) - during; err != nil || during != time.Millisecond || after != 0 {
					t.Errorf("Close during the fault took %v, want 1ms, and after it %v, want 0s; error %v", during, after, err)
				}
			})
		})
	}
}
