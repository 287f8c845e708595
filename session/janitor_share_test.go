package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Close waits for a removal whose look is under way: the znode of an abandoned create that is persistent would stay for
// ever.
func TestCloseDuringTheLookForAPersistentZnode(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/d", 0)
		for _, op := range []zksynctest.OpCode{zkserver.OpCreate, zkserver.OpGetChildren2} {
			srv.Inject(zksynctest.Fault{Op: op, At: zksynctest.BeforeReply, Do: zksynctest.Delay(2 * time.Second)})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.CreateProtected(ctx, "/d/x-", nil, zk.FlagSequence)
		mustBe(t, err, context.DeadlineExceeded)
		srv.Disconnect(s.ID())
		time.Sleep(time.Second)
		m.Close()
		if names, _ := srv.Children("/d"); len(names) != 0 {
			t.Errorf("%v stays for ever", names)
		}
	})
}

// Discard of a child and then of its parent removes both.
func TestDiscardOfAChildAndThenOfItsParent(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		for i := range 100 {
			parent := fmt.Sprint("/p", i)
			create(t, s, parent, 0)
			create(t, s, parent+"/c", 0)
			child := s.Discard(parent + "/c")
			<-s.Discard(parent)
			<-child
			mustExist(t, srv, parent, false)
		}
	})
}

// The pause behind removals that break connections does not delay a later removal in the same directory.
func TestALaterRemovalDoesNotWaitForOthers(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		h := &stallingServer{}
		var good atomic.Bool
		h.stalled = func() bool { return !good.Load() }
		h.answer = h.reply
		s := current(t, connectTo(t, &h.hostileServer))
		abandon := func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := s.CreateProtected(ctx, "/lock-", nil, 3)
			mustBe(t, err, context.DeadlineExceeded)
			h.hangUp()
		}
		abandon()
		time.Sleep(time.Hour)
		for n := h.listings.Load(); h.listings.Load() == n; {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute) // within the pause
		good.Store(true)
		h.mu.Lock()
		h.names = nil
		h.mu.Unlock()
		began := time.Now()
		abandon()
		for h.deletes.Load() == 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the znode was removed after %v", took)
		}
	})
}

// Connections that end in the short answer to a delete delay the next attempt by seconds, not by minutes: a delete is not
// the reason.
func TestADeleteIsNotBlamedForBrokenConnections(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		var deletes atomic.Int32
		h := &hostileServer{}
		h.answer = func(p *hostilePeer, xid, op int32, _ []byte) bool {
			if op != opDelete || deletes.Add(1) > 12 {
				return false
			}
			p.raw(framed(ints(xid), longs(1), ints(0))[:10])
			go func() { time.Sleep(10 * time.Millisecond); p.conn.Close() }()
			return true
		}
		s := current(t, connectTo(t, h))
		began := time.Now()
		<-s.Discard("/x")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("removed after %v", took)
		}
	})
}

// Removals of one directory share the connections that their looks break.
func TestLooksThatBreakConnectionsAreShared(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, session.WithMaxAnswer(64<<10))
		s := current(t, m)
		create(t, s, "/d", 0)
		const n = 20
		for i := range n {
			_, err := s.Create(t.Context(), fmt.Sprint("/d/", i), make([]byte, 100<<10), zk.FlagEphemeral)
			mustBe(t, err, nil)
		}
		for i := range n {
			s.DiscardOwn(fmt.Sprint("/d/", i), nil)
		}
		time.Sleep(time.Hour)
		before := m.Stats().Connections
		time.Sleep(time.Hour)
		if broke := m.Stats().Connections - before; broke > 60 {
			t.Errorf("%d connections in an hour, want one in two minutes at most", broke)
		}
	})
}

// A lost session is closed on a server beside a dial of its own that has not ended.
func TestALostSessionIsClosedBesideASlowDial(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var slow atomic.Bool
		m := connect(t, srv, three, session.WithTimeout(10*time.Second), session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if slow.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Minute) // whatever ctx says
				return nil, context.DeadlineExceeded
			}
			return srv.Dial(ctx, network, address)
		}))
		s := current(t, m)
		create(t, s, "/lock", zk.FlagEphemeral)
		hold(t, s)
		slow.Store(true)
		srv.Partition(s.ID())
		<-s.Done()
		srv.Heal(s.ID())
		time.Sleep(time.Second) // the servers end the session later
		mustExist(t, srv, "/lock", false)
	})
}

// The log says what a call waits for, also while Close waits for that call.
func TestAWaitIsReportedDuringClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		m := connect(t, srv, three, session.WithTimeout(40*time.Second), session.WithLogger(zap.New(core)))
		done, err := current(t, m).Busy()
		mustBe(t, err, nil)
		w := m.StartWait("work", "/x", func(context.Context) error { return errors.New("for something") })
		time.AfterFunc(20*time.Second, func() { w.Stop(); done() })
		m.Close()
		if logs.FilterMessage("a call waited").Len() == 0 {
			t.Error("no report in 20 s")
		}
	})
}
