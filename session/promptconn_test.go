package session_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A slowConn is a connection whose Close takes a while.
type slowConn struct {
	net.Conn
	takes  time.Duration
	closes *atomic.Int32 // calls of Close that have not returned
}

func (c slowConn) Close() error {
	c.closes.Add(1)
	defer c.closes.Add(-1)
	time.Sleep(c.takes)
	return c.Conn.Close()
}

// slowDialer returns an option that makes Close of every connection take a while, and the number of calls that
// have not returned. A dial ends the faults of the server.
func slowDialer(srv *zksynctest.Server, takes time.Duration) (session.Option, *atomic.Int32) {
	closes := new(atomic.Int32)
	return session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		srv.RemoveFaults()
		c, err := srv.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return slowConn{c, takes, closes}, nil
	}), closes
}

// endsInTime checks that the context of a holder that is cut off ends at the Deadline.
func endsInTime(t *testing.T, srv *zksynctest.Server, s *session.Session) {
	t.Helper()
	create(t, s, "/held", zk.FlagEphemeral)
	hold(t, s).Own("/held")
	time.Sleep(2 * timeout)
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	srv.Partition(s.ID())
	<-s.Done()
	if late := time.Since(s.Deadline()); late > 0 {
		t.Errorf("the context ended %v after the Deadline: %v", late, s.Err())
	}
}

// The context of a hold ends at the Deadline although the Close of a connection takes longer, and Manager.Close waits for
// each Close.
func TestASlowCloseDoesNotDelayTheEndOfAHold(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		dialer, closes := slowDialer(srv, timeout)
		m := connect(t, srv, three, dialer)
		endsInTime(t, srv, current(t, m))
		if closes.Load() == 0 {
			t.Error("no connection is being closed")
		}
		m.Close()
		if n := closes.Load(); n > 0 {
			t.Errorf("Manager.Close has returned during %d calls of Close", n)
		}
	})
}

// A silent connection whose Close takes long is replaced at once. To see this test fail, remove the call of SetDeadline.
func TestASlowCloseDoesNotDelayTheNextConnection(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		dialer, closes := slowDialer(srv, time.Hour)
		s := current(t, connect(t, srv, three, dialer))
		create(t, s, "/held", zk.FlagEphemeral)
		hold(t, s).Own("/held")
		for n := int32(1); n <= 3; n++ {
			time.Sleep(timeout)
			srv.Inject(zksynctest.Fault{Session: s.ID(), Do: zksynctest.Drop, Times: 100})
			for closes.Load() < n && s.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second)
			if s.Err() != nil || s.Connection() == 0 {
				t.Fatalf("connection %d after silent connection %d was closed; the session: %v", s.Connection(), n, s.Err())
			}
		}
	})
}

// slowHandler takes the time of several timeouts for each log line with its message.
type slowHandler struct {
	slog.Handler
	message string
}

func (h slowHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.message {
		time.Sleep(9 * timeout)
	}
	return nil
}

// The context of a hold ends at the Deadline although the logger blocks for longer. To see this test fail, let the keeper
// call drop, or let reportSilence call Silent under mu.
func TestASlowLoggerDoesNotDelayTheEndOfAHold(t *testing.T) {
	for _, message := range []string{"disconnected", "the server did not answer"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			log := slog.New(slowHandler{slog.NewTextHandler(io.Discard, nil), message})
			// A silence is logged after three seconds, while the connection lasts for a quarter of the timeout.
			endsInTime(t, srv, current(t, connect(t, srv, three, session.WithSlog(log), session.WithTimeout(3*timeout))))
		})
	}
}
