package session_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// No hold begins once the holds of a session have ended: its end would be reported as a release.
func TestHoldBesideTheEnd(t *testing.T) {
	for _, how := range []string{"close", "expired"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				var mu sync.Mutex
				var log []string
				lost := make(chan struct{}, 10)
				m := connect(t, srv, three, session.WithObserver(session.Observer{
					HoldStarted: func(h session.HoldStarted) {
						mu.Lock()
						defer mu.Unlock()
						log = append(log, "started "+h.Path)
					},
					HoldEnded: func(h session.HoldEnded) {
						mu.Lock()
						log = append(log, fmt.Sprintf("ended %s: %v", h.Path, h.Lost))
						mu.Unlock()
						if h.Lost != nil {
							lost <- struct{}{}
							for range 1000 {
								runtime.Gosched()
							}
						}
					},
				}))
				s := current(t, m)
				create(t, s, "/a", 0)
				create(t, s, "/b", 0)
				a, b := s.Lease(), s.Lease()
				a.Own(create(t, s, "/a/x", zk.FlagEphemeral))
				b.Own(create(t, s, "/b/x", zk.FlagEphemeral))
				if err := a.Grant(t.Context()); err != nil {
					t.Fatal(err)
				}
				b.Prepare()
				done := make(chan error, 1)
				go func() {
					<-lost
					err := b.Hold()
					if err == nil {
						<-s.Done()
						b.End()
					}
					done <- err
				}()
				synctest.Wait()
				if how == "close" {
					m.Close()
				} else {
					srv.ExpireSession(s.ID())
				}
				if err := <-done; err == nil {
					t.Error("a hold has begun after the holds of the session had ended")
				}
				a.End()
				mu.Lock()
				defer mu.Unlock()
				for _, line := range log {
					if line == "ended /b: <nil>" {
						t.Errorf("the hold of /b was ended by %v, and HoldEnded reports a release", s.Err())
					}
				}
			})
		})
	}
}
