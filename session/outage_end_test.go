package session_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// The next session begins at once when the first server that answers after an outage answers that the session has
// expired. To see this test fail, remove the assignment of attempts.answered.
func TestTheSessionAfterAnOutageIsImmediate(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var down atomic.Bool
		var expired atomic.Int64
		h := &hostileServer{}
		last := int64(1)
		h.grant = func(asked int64, timeout int32) (int64, int32) {
			if asked == 0 {
				last++
				return last, timeout
			}
			expired.Store(time.Now().UnixNano())
			return 0, 0
		}
		m := connectTo(t, h, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return refuse(ctx, network, address)
			}
			return h.dial(ctx, network, address)
		}))
		s := current(t, m)
		time.Sleep(time.Hour + time.Second) // not at the time of a ping
		down.Store(true)
		h.hangUp()
		time.Sleep(8 * time.Second)
		down.Store(false)
		<-s.Done()
		current(t, m)
		if wait := time.Since(time.Unix(0, expired.Load())); wait > 100*time.Millisecond {
			t.Errorf("the next session came %v after the server had answered", wait)
		}
	})
}

// The log has one line about each lost session, regardless of the number of lines about the outage. To see this test
// fail, write that line with Manager.lines.
func TestALostSessionIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zap.DebugLevel)
		var down atomic.Bool
		s := current(t, connect(t, srv, three, session.WithLogger(zap.New(core)), session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return refuse(ctx, network, address)
			}
			return srv.Dial(ctx, network, address)
		})))
		down.Store(true)
		srv.Disconnect(s.ID())
		<-s.Done()
		time.Sleep(time.Second)
		if n := logs.FilterMessage("session lost").Len(); n != 1 {
			t.Errorf("%d lines about the lost session, want 1; lines %d", n, logs.Len())
		}
	})
}

// Calls that wait without a request of their own name the server that does not answer.
func TestCallsThatWaitNameASilentServer(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		current(t, m)
		srv.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := m.Ephemeral(ctx, "/e", nil)
		for what, err := range map[string]error{"Ephemeral": err, "Cancelled": m.Cancelled(ctx)} {
			if reason := session.WaitReason(err); reason == nil || !strings.Contains(reason.Error(), "no answer from 127.0.0.1:2181 for 2s") {
				t.Errorf("%s: %v, want the silent server", what, err)
			}
		}
		srv.Thaw()
		synctest.Wait()
		if _, err := m.Session(ctx); session.WaitReason(err) != nil {
			t.Errorf("Session under a ctx that has ended names a reason although there is a session: %v", err)
		}
	})
}
