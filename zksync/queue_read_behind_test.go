package zksync_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// fillQueue creates the directory of a queue with n messages, whose data are their numbers.
func fillQueue(t *testing.T, srv *zksynctest.Server, n int) {
	t.Helper()
	for _, dir := range []string{"/queues", queuePath} {
		must(t, srv.Create(dir, nil))
	}
	for i := range n {
		must(t, srv.Create(fmt.Sprintf("%s/qn-%010d", queuePath, i), fmt.Append(nil, i)))
	}
}

// A consumer that is far from the servers reads the messages of a claim in the same round trip: while many messages wait, a
// fast receiver gets at least three quarters of its window in each round trip.
func TestDeliveryFarFromTheServers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const first, last, trip = 1000, 3000, 10 * time.Millisecond
		fillQueue(t, srv, last)
		link := srv.NewLink(t)
		q := zksync.NewQueue(link.Connect(t), queuePath)
		defer q.Close()
		link.Delay(trip / 2)
		var began time.Time
		for i := range last {
			if data := string(<-q.Chan()); data != fmt.Sprint(i) {
				t.Fatalf("received %q, want %d", data, i)
			}
			if i == first {
				began = time.Now()
			}
		}
		const claim = 96 // three quarters of the window
		if took, want := time.Since(began), (last-first)*trip/claim; took > want {
			t.Errorf("%d messages took %v, want a round trip for each %d of them: %v", last-first, took, claim, want)
		}
	})
}

// The window of a fast receiver grows from 8 messages to 128 while many messages wait, so that a consumer far from the servers
// has the first 160 messages after a few round trips.
func TestWindowGrowsFarFromTheServers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const trip = 10 * time.Millisecond
		fillQueue(t, srv, 1000)
		link := srv.NewLink(t)
		q := zksync.NewQueue(link.Connect(t), queuePath)
		defer q.Close()
		link.Delay(trip / 2)
		<-q.Chan()
		began := time.Now()
		for range 159 {
			<-q.Chan()
		}
		if took := time.Since(began); took > 4*trip {
			t.Errorf("160 messages took %v, want at most four round trips, %v", took, 4*trip)
		}
	})
}

// A downgradedConn is a connection to a server that does not know multiRead once old is set. Like some old servers it closes the
// connection when it has received such a request, ahead of the answers to the requests before.
type downgradedConn struct {
	net.Conn
	old    *atomic.Bool
	closed *atomic.Int32 // how many connections were closed
}

func (c downgradedConn) Write(p []byte) (int, error) {
	for rest := p; c.old.Load() && len(rest) >= 12; {
		if binary.BigEndian.Uint32(rest[8:]) == uint32(zkserver.OpMultiRead) {
			c.closed.Add(1)
			_, _ = c.Conn.Write(p[:len(p)-len(rest)])
			_ = c.Conn.Close()
			return len(p), nil
		}
		rest = rest[min(len(rest), 4+int(binary.BigEndian.Uint32(rest))):]
	}
	return c.Conn.Write(p)
}

// A consumer goes on when its servers do not know multiRead any more, and an Ack gets its outcome: a claim is repeated without
// the reads behind it, which may be the reason why its answer was lost.
func TestDeliveryOnServersThatWereDowngraded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const n, first = 300, 100
		fillQueue(t, srv, n)
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Delay(5 * time.Millisecond)})
		var old atomic.Bool
		var closed atomic.Int32
		m := srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := srv.Dial(ctx, network, address)
			return downgradedConn{conn, &old, &closed}, err
		}))
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		for i := range n {
			old.Store(i >= first)
			select {
			case msg := <-q.Messages():
				ack(t, msg)
			case <-time.After(time.Minute):
				t.Fatalf("no message %d, after %d connections were closed", i, closed.Load())
			}
		}
		if closed.Load() == 0 {
			t.Error("no multiRead was sent to the old servers")
		}
	})
}
