package zksync_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const idlePath = queuePath + "/zksync-idle"

// A consumer all of whose writes fail keeps the number of its goroutines, its znodes and its requests small, and
// goes on when they succeed again: from its first write on, and from its place in line on.
func TestWritesThatFailForLong(t *testing.T) {
	for _, first := range []string{queuePath, idlePath} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 1)
				other := newQueue(t, srv, zksync.WithPrefetch(1))
				<-other.Messages()
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				defer closeQueue(t, q)
				var begun atomic.Bool
				failed := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Times: -1, At: at, Do: zksynctest.Error(zkserver.ErrSystem),
					Match: func(op zksynctest.Op) bool {
						if !writes(op) {
							return false
						}
						if strings.HasPrefix(op.Path, first) || first == queuePath {
							begun.Store(true)
						}
						return begun.Load()
					}})
				q.Chan()
				time.Sleep(time.Minute)
				goroutines, requests := runtime.NumGoroutine(), failed.Count()
				time.Sleep(10 * time.Minute)
				if n := runtime.NumGoroutine() - goroutines; n > 10 {
					t.Errorf("errors at %s since %s: %d more goroutines in ten minutes", at, first, n)
				}
				if n := failed.Count() - requests; n == 0 || n > 3000 {
					t.Errorf("errors at %s since %s: %d requests failed in ten minutes", at, first, n)
				}
				failed.Remove()
				put(t, newQueue(t, srv), "x")
				want(t, receive(t, q.Chan(), 1), []string{"x"})
				time.Sleep(time.Minute)
				if idle := inLine(srv, idlePath); len(idle) > 1 {
					t.Errorf("errors at %s since %s: one idle consumer has the contenders %v", at, first, idle)
				}
				if ledgers := claimsZnodes(srv, "ledger-"); len(ledgers) != 2 {
					t.Errorf("errors at %s since %s: two consumers have the ledgers %v", at, first, ledgers)
				}
			})
		}
	}
}

func writes(op zksynctest.Op) bool {
	switch op.Code {
	case zkserver.OpMulti, zkserver.OpCreate, zkserver.OpCreate2, zkserver.OpCreateContainer, zkserver.OpDelete, zkserver.OpSetData:
		return true
	}
	return false
}

// A consumer whose claim gets no answer does not hold up the consumers behind it in line.
func TestClaimWithoutAnAnswerLeavesTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := newQueue(t, srv)
		m := srv.Connect(t)
		first := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, first)
		first.Chan()
		time.Sleep(time.Second)
		second := newQueue(t, srv)
		second.Chan()
		put(t, producer, "a", "b")
		// Both join the line again behind their messages, in some order.
		received := 0
		for received < 2 {
			select {
			case <-first.Chan():
			case <-second.Chan():
			}
			received++
		}
		time.Sleep(time.Minute)
		for !inLineFirst(t, srv, live(t, m)) {
			put(t, producer, "c")
			select {
			case <-first.Chan():
			case <-second.Chan():
			}
			time.Sleep(time.Minute)
		}
		failed := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Error(zkserver.ErrSystem)})
		defer failed.Remove()
		put(t, producer, "x")
		select {
		case data := <-second.Chan():
			want(t, []string{string(data)}, []string{"x"})
		case <-time.After(time.Minute):
			t.Errorf("no message in a minute; in line are %v", inLine(srv, idlePath))
		}
		if failed.Count() == 0 {
			t.Error("no request has failed")
		}
		failed.Remove()
		time.Sleep(time.Minute)
		put(t, producer, "y")
		select {
		case <-second.Chan():
		case _, ok := <-first.Chan():
			if !ok {
				t.Errorf("the first consumer has ended: %v", first.Err())
			}
		case <-time.After(time.Minute):
			t.Errorf("no message after the errors; in line are %v", inLine(srv, idlePath))
		}
		select {
		case _, ok := <-first.Chan():
			t.Errorf("open %v: %v", ok, first.Err())
		default:
		}
	})
}

// A claim without an answer from which its contender has been removed is tried again when the server answers. The
// channel stays open, and the message arrives.
// Breaks if ledger.claim returns the NoNode of a contender that it has discarded.
func TestClaimBehindItsDiscardedContender(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		all := make(chan []byte)
		for range 2 { // a lone consumer is not in line
			q := newQueue(t, srv)
			go func() {
				for data := range q.Chan() {
					all <- data
				}
				if err := q.Err(); !errors.Is(err, zksync.ErrQueueClosed) {
					t.Errorf("the channel is closed: %v", err)
				}
			}()
		}
		time.Sleep(time.Minute)
		// Only the first in line deletes a contender with its claim.
		breakClaims := func(inLine bool) *zksynctest.Injection {
			return srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: -1, Do: zksynctest.Disconnect, Match: func(op zksynctest.Op) bool {
				contains := func(part string) bool {
					return slices.ContainsFunc(op.Sub, func(sub zksynctest.SubOp) bool { return strings.Contains(sub.Path, part) })
				}
				return contains("/zksync-claims/order-") && contains(idlePath) == inLine
			}})
		}
		first, second := breakClaims(true), breakClaims(false)
		put(t, newQueue(t, srv), "a")
		time.Sleep(3 * time.Second)
		if first.Count() == 0 {
			t.Error("no claim of the first in line has failed")
		}
		first.Remove()
		time.Sleep(3 * time.Second)
		second.Remove()
		want(t, receive(t, all, 1), []string{"a"})
	})
}

// inLineFirst reports whether the first contender in line belongs to a session.
func inLineFirst(t *testing.T, srv *zksynctest.Server, s *session.Session) bool {
	idle := inLine(srv, idlePath)
	if len(idle) < 2 {
		return false
	}
	_, stat, err := s.Exists(t.Context(), idlePath+"/"+idle[0])
	must(t, err)
	return stat.EphemeralOwner == s.ID()
}

// A Take that has joined the line, and finds only a message that its value skips, does not hold up a consumer
// that can read the message.
func TestTakeThatWaitsIsNotInLine(t *testing.T) {
	for delay := range 6 {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			user := session.WithAuth("digest", []byte("user:secret"))
			able := srv.Connect(t, user, session.WithACL(zk.WorldACL(zk.PermAll)...))
			offer(t, able, queuePath, 0, 2)
			private := live(t, srv.Connect(t, user, session.WithACL(zk.AuthACL(zk.PermAll)...)))
			m := srv.Connect(t)
			q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
			defer closeQueue(t, q)
			msg := <-q.Messages()
			synctest.Wait()
			srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Times: -1, Do: zksynctest.Delay(time.Duration(delay) * time.Millisecond)})
			refused := 0
			srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Match: removes, Times: 3, Do: zksynctest.Call(func() {
				order := claimsZnodes(srv, "order-")[0]
				data, _ := srv.Get(order)
				_ = srv.Set(order, data)
				if refused++; refused == 3 {
					_ = srv.Delete(messagesIn(srv, queuePath)[1])
					_, _ = private.Create(context.Background(), queuePath+"/qn-", []byte("private"), zk.FlagSequence)
					go ack(t, msg)
				}
			})})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			background(ctx, func(ctx context.Context) error { _, err := q.Take(ctx); return err })
			time.Sleep(time.Minute)
			other := zksync.NewQueue(able, queuePath)
			defer closeQueue(t, other)
			select {
			case msg := <-other.Messages():
				ack(t, msg)
			case <-time.After(time.Hour):
				t.Errorf("no message in an hour; in line are %v", inLine(srv, idlePath))
			}
		})
	}
}

// A Take that is abandoned while its removal is under way returns no message that Chan of its value has delivered.
func TestAbandonedTakeOfAMessageThatChanHasDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		id := live(t, m).ID()
		srv.Inject(zksynctest.Fault{Session: id, Op: zkserver.OpMulti, Path: queuePath + "/qn-*", Times: -1, Do: zksynctest.Drop})
		want(t, receive(t, q.Chan(), 1), []string{"0"})
		ledgers := srv.Inject(zksynctest.Fault{Match: touchesLedger, Times: -1, Do: zksynctest.Error(zkserver.ErrSystem)})
		defer ledgers.Remove()
		synctest.Wait()
		srv.ExpireSession(id)
		time.Sleep(30 * time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		abandoning(srv, live(t, m), zksynctest.AfterCommit, cancel)
		if data, err := q.Take(ctx); data != nil || session.ClassOf(err) != session.ClassCancelled {
			t.Errorf("Take returned %q, %v", data, err)
		}
	})
}

// One internal error at the deletion of a directory of a DelayQueue delays the deletion.
func TestDirectoryWhoseDeletionFailsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewDelayQueue(m, queuePath)
		defer closeQueue(t, q)
		must(t, q.Put(t.Context(), []byte("x"), time.Second))
		<-q.Chan()
		synctest.Wait()
		failed := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Path: queuePath + "/t-*", Do: zksynctest.Error(zkserver.ErrSystem)})
		time.Sleep(10 * time.Minute)
		names, _ := srv.Children(queuePath)
		for _, name := range names {
			if strings.HasPrefix(name, "t-") {
				t.Errorf("%s is still there", name)
			}
		}
		if failed.Count() != 1 {
			t.Errorf("%d deletions have failed, want one", failed.Count())
		}
	})
}

// A ledger whose data this version does not know ends the channel with the reason.
func TestForeignLedgerEndsTheChannel(t *testing.T) {
	for _, data := range []string{"zksync-ledger/9 1\n", "zksync-ledger/1 1\nx y\n"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			offer(t, srv.Connect(t), queuePath, 0, 2)
			first := newQueue(t, srv, zksync.WithPrefetch(1))
			<-first.Messages()
			must(t, srv.Create(queuePath+"/zksync-claims/ledger-gone", nil))
			must(t, srv.Set(claimsZnodes(srv, "ledger-")[0], []byte(data)))
			must(t, srv.Create(queuePath+"/zksync-claims/ledger-foreign", []byte(data)))
			q := newQueue(t, srv)
			must(t, srv.Delete(queuePath+"/zksync-claims/ledger-gone")) // a recovery is due
			select {
			case _, ok := <-q.Chan():
				if ok || session.ClassOf(q.Err()) != session.ClassFinal {
					t.Errorf("a message came: %v; Err: %v", ok, q.Err())
				}
			case <-time.After(10 * time.Minute):
				t.Error("the channel is not closed in ten minutes")
			}
		})
	}
}
