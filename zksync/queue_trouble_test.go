package zksync_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The data of an order znode of a later version end the channel with the reason, and delay Close by nothing.
func TestForeignClaimTableEndsTheChannel(t *testing.T) {
	for _, data := range []string{"zksync-claims/9 1 1 false\n", "garbage"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			offer(t, srv.Connect(t), queuePath, 0, 2)
			first := newQueue(t, srv, zksync.WithPrefetch(1))
			ack(t, <-first.Messages())
			q := newQueue(t, srv)
			for _, p := range claimsZnodes(srv, "order-") {
				must(t, srv.Set(p, []byte(data)))
			}
			select {
			case _, ok := <-q.Chan():
				if ok || q.Err() == nil {
					t.Errorf("a message came: %v; Err: %v", ok, q.Err())
				}
			case <-time.After(10 * time.Minute):
				t.Error("the channel is not closed in ten minutes")
			}
			began := time.Now()
			closeQueue(t, q)
			if took := time.Since(began); took > time.Second {
				t.Errorf("Close took %v", took)
			}
		})
	}
}

// Removals of received messages that fail again and again are logged, and deliver nothing twice.
func TestRemovalsThatFailAreLogged(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		core, logs := observer.New(zapcore.WarnLevel)
		m := srv.Connect(t, session.WithLogger(zap.New(core)))
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		failed := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Path: queuePath + "/qn-*", Times: -1, Do: zksynctest.Error(zkserver.ErrSystem)})
		want(t, receive(t, q.Chan(), 1), numbers(0, 1))
		select {
		case data, ok := <-q.Chan():
			t.Errorf("%q came, open: %v, Err: %v", data, ok, q.Err())
		case <-time.After(time.Hour):
		}
		if n := logs.FilterMessage("a call waited").Len(); n == 0 || n > 30 {
			t.Errorf("%d lines of the log about %d errors in an hour", n, failed.Count())
		}
		failed.Remove()
	})
}

// A Take whose removal has an unknown outcome does not forget that Chan has delivered the message.
func TestUnclearTakeOfAMessageThatChanHasDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		id := live(t, m).ID()
		srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, Path: queuePath + "/qn-*", Times: -1, Do: zksynctest.Drop})
		// The stream gets no ledger under the next session for a while.
		if got := <-q.Chan(); string(got) != "0" {
			t.Fatal(string(got))
		}
		ledgers := srv.Inject(zksynctest.Fault{Match: touchesLedger, Times: -1, Do: zksynctest.Error(zkserver.ErrSystem)})
		synctest.Wait()
		srv.ExpireSession(id)
		time.Sleep(30 * time.Second)
		g := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Path: queuePath + "/qn-*", Do: zksynctest.Call(func() {
			for _, path := range markers(t, srv) {
				srv.Delete(path)
			}
		})}
		srv.Inject(g)
		g.Do = zksynctest.Error(zkserver.ErrSystem)
		srv.Inject(g)
		f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpGetData, Times: 5, Nth: 2, Do: zksynctest.Error(zkserver.ErrSystem)}
		f.Match = func(op zksynctest.Op) bool { return strings.Contains(op.Path, "/qn-") }
		looks := srv.Inject(f)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		data, err := q.Take(ctx)
		if looks.Count() == 0 {
			t.Error("no look has failed")
		}
		if string(data) == "0" {
			t.Errorf("Take returned %q (%v), which Chan of this value has delivered", data, err)
		}
		ledgers.Remove()
		select {
		case data, ok := <-q.Chan():
			if ok {
				t.Errorf("Chan delivers %q again", data)
			}
		case <-time.After(time.Minute):
		}
	})
}

// Internal errors at the look for a message, which a removal needs after a reconnection, delay the removal. The
// message of Chan comes to no other consumer, and an Ack succeeds.
func TestRemovalsLookUntilAnAnswerComes(t *testing.T) {
	for _, way := range []string{"Chan", "Ack"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			m := srv.Connect(t)
			q := zksync.NewPriorityQueue(m, queuePath)
			defer q.Close()
			must(t, q.Put(t.Context(), []byte("0"), 1))
			var msg *zksync.Message
			if way == "Ack" {
				msg = <-q.Messages()
			} else {
				q.Chan()
			}
			synctest.Wait() // Chan offers the message
			s := live(t, m)
			srv.Disconnect(s.ID())
			time.Sleep(time.Minute) // what follows a reconnection is over
			looks := srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpMulti, Match: isQuorum, Times: 5, Do: zksynctest.Error(zkserver.ErrSystem)})
			if way == "Ack" {
				if err := msg.Ack(t.Context()); err != nil {
					t.Errorf("Ack: %v", err)
				}
			} else if data := <-q.Chan(); string(data) != "0" {
				t.Errorf("Chan has delivered %q", data)
			}
			other := zksync.NewPriorityQueue(srv.Connect(t), queuePath)
			defer other.Close()
			select {
			case data := <-other.Chan():
				t.Errorf("%s: another consumer received %q", way, data)
			case <-time.After(time.Minute):
			}
			if looks.Count() < 2 {
				t.Errorf("%s: %d looks have failed, want more than one", way, looks.Count())
			}
		})
	}
}

// isQuorum reports whether a request commits nothing.
func isQuorum(op zksynctest.Op) bool { return len(op.Sub) == 1 && op.Sub[0].Code == zkserver.OpCheck }

// touchesLedger reports whether a request creates or writes a ledger.
func touchesLedger(op zksynctest.Op) bool {
	for _, sub := range op.Sub {
		if strings.Contains(sub.Path, "/ledger-") {
			return true
		}
	}
	return strings.Contains(op.Path, "/ledger-") && (op.Code == zkserver.OpCreate || op.Code == zkserver.OpCreate2)
}
