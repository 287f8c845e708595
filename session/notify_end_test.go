package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// NotifyEnd notifies its callers of the end of a session before the session is closed on the server, regardless of
// the time that they take. To see this test fail, make endNotice.notify call the functions in their own goroutines.
func TestTheEndIsNotifiedBeforeTheServerGivesAway(t *testing.T) {
	for name, end := range map[string]func(srv *zksynctest.Server, m *session.Manager, s *session.Session){
		"closed": func(_ *zksynctest.Server, m *session.Manager, _ *session.Session) { m.Close() },
		"lost by the deadline": func(srv *zksynctest.Server, _ *session.Manager, s *session.Session) {
			srv.Partition(s.ID())
			<-s.Done()
			srv.Heal(s.ID()) // for the connection that closes the session on the server
			time.Sleep(timeout)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := connect(t, srv, three)
				s := current(t, m)
				create(t, s, "/held", zk.FlagEphemeral)
				hold(t, s)
				var notified []error
				there := make(chan bool, 1)
				stop, err := s.NotifyEnd(func(error) { t.Error("notified after stop") })
				if err != nil {
					t.Fatal(err)
				}
				stop()
				if _, err := s.NotifyEnd(func(cause error) {
					notified = append(notified, cause)
					time.Sleep(timeout / 100) // a processor with other work
					_, ok := srv.Get("/held")
					there <- ok
				}); err != nil {
					t.Fatal(err)
				}
				end(srv, m, s)
				if !<-there {
					t.Error("the server had removed what was held when NotifyEnd called its function")
				}
				if want := context.Cause(s.Context()); len(notified) != 1 || notified[0] != want {
					t.Errorf("notified of %v, want one %v", notified, want)
				}
				_, err = s.NotifyEnd(func(error) { t.Error("notified of an end that had been before") })
				mustBe(t, err, context.Cause(s.Context()))
			})
		})
	}
}

// A function of NotifyEnd is not called after its stop has returned, although the notification has begun.
func TestNoNotificationOfTheEndAfterStop(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		var stops [2]func()
		called := 0
		for i := range stops {
			stop, err := s.NotifyEnd(func(error) {
				called++
				stops[1-i]()
			})
			if err != nil {
				t.Fatal(err)
			}
			stops[i] = stop
		}
		m.Close()
		if called != 1 {
			t.Errorf("%d functions were called, and the first one has stopped the other", called)
		}
	})
}
