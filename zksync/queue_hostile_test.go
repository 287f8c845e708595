package zksync_test

import (
	"context"
	"errors"
	"fmt"
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

const claimsPath = queuePath + "/zksync-claims"

// claimsZnodes returns the paths below the directory of the claims that begin with a prefix.
func claimsZnodes(srv *zksynctest.Server, prefix string) (all []string) {
	names, _ := srv.Children(claimsPath)
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			all = append(all, claimsPath+"/"+name)
		}
	}
	return all
}

// comesIn receives one message in a time, and fails the test at once if none comes.
func comesIn[T any](t *testing.T, ch <-chan T, d time.Duration) T {
	t.Helper()
	select {
	case v, ok := <-ch:
		if !ok {
			t.Fatal("the channel was closed")
		}
		return v
	case <-time.After(d):
		t.Fatalf("no message in %v", d)
	}
	panic("unreachable")
}

// takeIn starts a Take in the background.
func takeIn(t *testing.T, q commonQueue, d time.Duration) <-chan string {
	ch := make(chan string, 1)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	go func() {
		defer cancel()
		data, err := q.Take(ctx)
		if err != nil {
			data = []byte(err.Error())
		}
		ch <- string(data)
	}()
	synctest.Wait()
	return ch
}

// Another client deletes the order znode. The consumers go on.
func TestOrderZnodeDeleted(t *testing.T) {
	for _, how := range []string{"Chan", "Take", "new consumer"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				q := newQueue(t, srv)
				offer(t, srv.Connect(t), queuePath, 0, 1)
				want(t, receive(t, q.Chan(), 1), numbers(0, 1))
				synctest.Wait()
				for _, path := range claimsZnodes(srv, "order-") {
					srv.Delete(path)
				}
				offer(t, srv.Connect(t), queuePath, 1, 2)
				switch how {
				case "Chan":
					if data := comesIn(t, q.Chan(), time.Minute); string(data) != "1" {
						t.Errorf("%q came", data)
					}
				case "Take":
					closeQueue(t, q)
					if data := <-takeIn(t, newQueue(t, srv), time.Minute); data != "1" {
						t.Errorf("Take: %s", data)
					}
				case "new consumer":
					closeQueue(t, q)
					if data := comesIn(t, newQueue(t, srv).Chan(), time.Minute); string(data) != "1" {
						t.Errorf("%q came", data)
					}
				}
			})
		})
	}
}

// Nack and Close of a consumer with claims do not hang when the order znode was deleted.
func TestNackAfterOrderZnodeDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		offer(t, srv.Connect(t), queuePath, 0, 2)
		msg := next(t, q.Messages(), "0")
		synctest.Wait()
		for _, path := range claimsZnodes(srv, "order-") {
			srv.Delete(path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := msg.Nack(ctx); errors.Is(err, context.DeadlineExceeded) {
			t.Error("Nack:", err)
		}
		began := time.Now()
		closeQueue(t, q)
		if d := time.Since(began); d > time.Second {
			t.Errorf("Close took %v", d)
		}
	})
}

// The directory of the claims is deleted with all znodes in it. The messages of Retry are not lost.
func TestLaterMessagesAfterClaimsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		if err := next(t, q.Messages(), "0").Retry(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		closeQueue(t, q)
		removeTree(srv, claimsPath)
		if data := comesIn(t, newQueue(t, srv).Chan(), time.Hour); string(data) != "0" {
			t.Errorf("%q came", data)
		}
	})
}

// The counter of the directory is spent while a message of Retry is not due. The message is not lost.
func TestLaterMessagesAndSpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		if err := next(t, q.Messages(), "0").Retry(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		srv.SetNextSequence(queuePath, 2147483647)
		producer := newQueue(t, srv)
		put(t, producer, "1")
		done := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		go func() { done <- producer.Put(ctx, []byte("2")) }()
		ack(t, next(t, q.Messages(), "1"))
		var got []string
		for range 2 {
			select {
			case msg := <-q.Messages():
				if msg == nil {
					t.Fatal(q.Err())
				}
				got = append(got, string(msg.Data))
				ack(t, msg)
			case <-time.After(4 * time.Hour):
				t.Errorf("the message of Retry is lost; got %v", got)
			}
		}
		if err := <-done; err != nil {
			t.Error("Put:", err)
		}
	})
}

// A Take waits. The only consumer gives a message back that it does not want any more: the Take gets the message.
func TestTakeOfAMessageThatTheLoneConsumerGivesBack(t *testing.T) {
	t.Run("unreadable", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			auth := []session.Option{session.WithAuth("digest", []byte("user:secret")), session.WithACL(zk.AuthACL(zk.PermAll)...)}
			offer(t, srv.Connect(t), queuePath, 0, 1)
			q := newQueue(t, srv)
			want(t, receive(t, q.Chan(), 1), numbers(0, 1))
			taker := zksync.NewQueue(srv.Connect(t, session.WithAuth("digest", []byte("user:secret"))), queuePath)
			defer closeQueue(t, taker)
			taken := takeIn(t, taker, time.Hour)
			// The consumer claims the message first, and gives it back later.
			srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: queuePath + "/qn-*", Do: zksynctest.Delay(100 * time.Millisecond)})
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMultiRead, Path: queuePath + "/qn-*", Do: zksynctest.Delay(time.Second)})
			offer(t, srv.Connect(t, auth...), queuePath, 7, 8)
			if data := <-taken; data != "7" {
				t.Errorf("Take: %s, want the message that the consumer may not read (it has skipped %d)", data, q.Skipped())
			}
		})
	})
	t.Run("the Chan has ended", func(t *testing.T) {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...))
			s := live(t, owner)
			if err := s.MakeDir(t.Context(), "/queues"); err != nil {
				t.Fatal(err)
			}
			acl := append(zk.WorldACL(zk.PermAll&^zk.PermDelete), zk.AuthACL(zk.PermAll)...)
			if _, err := s.Create(t.Context(), queuePath, nil, 0, acl...); err != nil {
				t.Fatal(err)
			}
			q := newQueue(t, srv) // may not delete
			ch := q.Chan()
			synctest.Wait()
			taker := zksync.NewQueue(owner, queuePath)
			defer closeQueue(t, taker)
			taken := takeIn(t, taker, time.Hour)
			srv.Inject(zksynctest.Fault{Session: s.ID(), Op: zkserver.OpGetData, Path: queuePath + "/qn-*", Do: zksynctest.Delay(100 * time.Millisecond)})
			srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Match: removes, Do: zksynctest.Delay(time.Second)})
			offer(t, srv.Connect(t), queuePath, 0, 3)
			<-ch
			for range ch {
			}
			if data := <-taken; len(data) != 1 {
				t.Errorf("Take: %s", data)
			}
		})
	})
}

// The first consumer in the line of idle consumers may not read a message. The next one
// in line gets the message.
func TestIdleConsumerBehindOneThatSkips(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		auth := session.WithAuth("digest", []byte("user:secret"))
		private := srv.Connect(t, auth, session.WithACL(zk.AuthACL(zk.PermAll)...))
		unable := newQueue(t, srv, zksync.WithPrefetch(1))
		unable.Messages()
		synctest.Wait()
		able := zksync.NewQueue(srv.Connect(t, auth, session.WithACL(zk.WorldACL(zk.PermAll)...)), queuePath, zksync.WithPrefetch(1))
		defer closeQueue(t, able)
		able.Messages()
		synctest.Wait()
		for round := range 10 { // the order of the two consumers in the line differs
			offer(t, srv.Connect(t), queuePath, 0, 2)
			first := comesIn(t, unable.Messages(), time.Minute)
			second := comesIn(t, able.Messages(), time.Minute) // it has no room now
			ack(t, first)
			time.Sleep(time.Minute)
			offer(t, private, queuePath, 2, 3)
			time.Sleep(time.Minute)
			if unable.Skipped() == 0 {
				t.Fatalf("round %d: nothing was skipped: %v", round, unable.Err())
			}
			ack(t, second)
			msg := comesIn(t, able.Messages(), time.Hour)
			if string(msg.Data) != "2" {
				t.Errorf("%q came", msg.Data)
			}
			ack(t, msg)
			time.Sleep(time.Minute)
		}
	})
}

// The znode that limits a queue is deleted while a message is being moved there.
func TestMoveToAndTheLimitIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		dead := zksync.NewQueue(m, "/queues/dead", zksync.WithCapacity(10))
		defer closeQueue(t, dead)
		put(t, dead, "x")
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		msg := next(t, q.Messages(), "0")
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Path: "/queues/dead/zksync-limit", Do: zksynctest.Call(func() { srv.Delete("/queues/dead/zksync-limit") })})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := msg.MoveTo(ctx, dead); err != nil {
			t.Error("MoveTo:", err)
		}
	})
}

// A lost connection while the limit of the target is created, read or watched only delays MoveTo.
func TestMoveToOverLostConnections(t *testing.T) {
	for nth := 1; nth <= 6; nth++ {
		for _, at := range allMoments {
			t.Run(fmt.Sprint(nth, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					offer(t, srv.Connect(t), queuePath, 0, 1)
					dead := zksync.NewQueue(m, "/queues/dead", zksync.WithCapacity(10))
					defer closeQueue(t, dead)
					q := zksync.NewQueue(m, queuePath)
					defer closeQueue(t, q)
					msg := next(t, q.Messages(), "0")
					synctest.Wait()
					srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Nth: nth, At: at, Do: zksynctest.Disconnect})
					if err := msg.MoveTo(t.Context(), dead); err != nil {
						t.Error("MoveTo:", err)
					}
					if n, err := dead.Len(t.Context()); n != 1 || err != nil {
						t.Errorf("%d messages in the target, %v; want 1", n, err)
					}
				})
			})
		}
	}
}

// Close does not wait for room in the queue that a message is being moved to, and the delivery does not count.
// MoveTo into a queue with a limit succeeds although the answer to the creation of the limit is lost.
func TestMoveToAndTheAnswerAboutTheLimitIsLost(t *testing.T) {
	for _, at := range allMoments {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			offer(t, srv.Connect(t), queuePath, 0, 1)
			m := srv.Connect(t)
			q, to := zksync.NewQueue(m, queuePath), zksync.NewQueue(m, queuePath+"-dead", zksync.WithCapacity(10))
			defer closeQueue(t, to)
			defer closeQueue(t, q)
			msg := next(t, q.Messages(), "0")
			lost := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Path: queuePath + "-dead/zksync-limit", Op: zkserver.OpCreate, At: at, Do: zksynctest.Disconnect})
			must(t, msg.MoveTo(t.Context(), to))
			if lost.Count() == 0 {
				t.Error("the fault has not struck")
			}
			if n, err := to.Len(t.Context()); n != 1 || err != nil {
				t.Errorf("%v: the target has %d messages, error %v", at, n, err)
			}
		})
	}
}

// Close does not wait for room in the queue that a message is being moved to.
func TestCloseWhileMoveToWaitsForRoom(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		dead := zksync.NewQueue(m, "/queues/dead", zksync.WithCapacity(1))
		put(t, dead, "x")
		q := zksync.NewQueue(m, queuePath)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		msg := next(t, q.Messages(), "0")
		done := make(chan error, 1)
		go func() { done <- msg.MoveTo(t.Context(), dead) }()
		synctest.Wait()
		began := time.Now()
		closeQueue(t, q)
		if d := time.Since(began); d > time.Second {
			t.Errorf("Close took %v while the servers could be reached", d)
		}
		if err := <-done; !errors.Is(err, zksync.ErrQueueClosed) {
			t.Errorf("MoveTo: %v, want ErrQueueClosed", err)
		}
		synctest.Wait()
		wantLeft(t, srv, 1, 0)
		closeQueue(t, dead)
		other := newQueue(t, srv)
		defer closeQueue(t, other)
		if again := next(t, other.Messages(), "0"); again.Attempts != 1 {
			t.Errorf("attempt %d, want 1: Close has ended the delivery", again.Attempts)
		}
	})
}

// A user that may take messages and not write the order znode meets a partition whose time is over.
func TestExpiredPartitionWithoutWrite(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(append(zk.WorldACL(zk.PermAll&^zk.PermWrite), zk.AuthACL(zk.PermAll)...)...))
		producer := zksync.NewDelayQueue(owner, queuePath)
		defer closeQueue(t, producer)
		if _, ok, err := producer.TryTake(t.Context()); ok || err != nil {
			t.Fatal(ok, err)
		}
		// An ordinary znode: the server does not remove it when it becomes empty.
		dir := fmt.Sprintf("%s/t-%010d", queuePath, time.Now().Unix()/10*10)
		if _, err := live(t, owner).Create(t.Context(), dir, nil, 0); err != nil {
			t.Fatal(err)
		}
		if err := producer.Put(t.Context(), []byte("0"), 0); err != nil {
			t.Fatal(err)
		}
		m := srv.Connect(t)
		q := zksync.NewDelayQueue(m, queuePath)
		defer closeQueue(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if _, err := live(t, owner).Create(t.Context(), queuePath+"/zksync-markers", nil, 0, zk.WorldACL(zk.PermAll)...); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
		var n atomic.Int64
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Times: -1, Op: zkserver.OpMulti, Match: func(op zkserver.Op) bool {
			if n.Add(1) == 2000 {
				cancel()
			}
			return false
		}})
		if data, err := q.Take(ctx); string(data) != "0" {
			t.Logf("Take: %q, %v", data, err)
		}
		if data, err := q.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take: %q, %v", data, err)
		}
		if n.Load() > 100 {
			t.Errorf("%d requests", n.Load())
		}
	})
}

// A refused claim does not keep the messages in work from being acknowledged.
func TestAckAfterARefusedClaim(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		msg := next(t, q.Messages(), "0")
		synctest.Wait()
		const quota = -125
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Do: zksynctest.Error(quota)})
		offer(t, srv.Connect(t), queuePath, 1, 2)
		time.Sleep(time.Minute)
		t.Log(q.Err())
		ack(t, msg)
	})
}

// Another client overwrites the data of the directory of the claims. Each message is received once.
func TestGarbageInTheDirectoryOfTheClaims(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var queues []*zksync.Queue
		var got []<-chan []byte
		open := func() {
			q := newQueue(t, srv)
			queues = append(queues, q)
			got = append(got, q.Chan())
			synctest.Wait()
		}
		open()
		srv.Set(claimsPath, []byte("garbage"))
		open()
		offer(t, srv.Connect(t), queuePath, 0, 100)
		var all []string
		for {
			select {
			case data := <-got[0]:
				all = append(all, string(data))
			case data := <-got[1]:
				all = append(all, string(data))
			case <-time.After(time.Minute):
				wantAll(t, all, 100)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// A value never delivers a message of Chan twice, not even if another client deletes its ledger.
func TestChanAfterTheLedgerIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 3)
		q := newQueue(t, srv)
		ch := q.Chan()
		synctest.Wait()
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Match: removes, Do: zksynctest.Call(func() { removeLedgers(srv) })})
		want(t, receive(t, ch, 3), numbers(0, 3))
		select {
		case data := <-ch:
			t.Errorf("%q came twice", data)
		case <-time.After(time.Minute):
		}
	})
}

// An Ack whose outcome the server leaves open does not claim that the message was given back.
func TestAckOfUnknownOutcome(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 2)
		q := newQueue(t, srv)
		msg := next(t, q.Messages(), "0")
		synctest.Wait()
		const systemError = -1
		srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Match: removes, At: zksynctest.AfterCommit, Do: zksynctest.Error(systemError)})
		err := msg.Ack(t.Context())
		if err != nil && !errors.Is(err, zksync.ErrOutcomeUnknown) && !slices.Contains(messagesIn(srv, queuePath), msg.ID) {
			t.Errorf("Ack: %v; the message was removed", err)
		}
		if err := next(t, q.Messages(), "1").Ack(t.Context()); err != nil {
			t.Error("the next Ack:", err)
		}
	})
}

// A Retry whose directory is missing, and whose following look is refused, does not lose the message.
func TestRetryWithoutDirectoryAndFault(t *testing.T) {
	for name, do := range map[string]zksynctest.Action{"disconnect": zksynctest.Disconnect, "throttle": zksynctest.Throttle, "system error": zksynctest.Error(-1), "drop": zksynctest.Drop} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 1)
				q := newQueue(t, srv)
				msg := next(t, q.Messages(), "0")
				srv.Inject(zksynctest.Fault{Op: zkserver.OpExists, Path: msg.ID, Do: do, Times: 2})
				err := msg.Retry(t.Context(), time.Second)
				t.Log(err)
				if data := comesIn(t, q.Messages(), time.Hour); string(data.Data) != "0" {
					t.Errorf("%q came", data.Data)
				}
			})
		})
	}
}

// The ledger is deleted while a refused settle gives its message back.
func TestLedgerDeletedWhileGivingBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		private := srv.Connect(t, session.WithAuth("digest", []byte("user:secret")), session.WithACL(zk.AuthACL(zk.PermAll)...))
		offer(t, srv.Connect(t), queuePath, 0, 2)
		offer(t, private, "/queues/dead", 0, 1)
		dead := zksync.NewQueue(m, "/queues/dead")
		defer closeQueue(t, dead)
		q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
		defer closeQueue(t, q)
		msg := next(t, q.Messages(), "0")
		synctest.Wait()
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Nth: 2, Do: zksynctest.Call(func() { removeLedgers(srv) })})
		if err := msg.MoveTo(t.Context(), dead); !errors.Is(err, zk.ErrNoAuth) {
			t.Error("MoveTo:", err)
		}
		got := []string{}
		for range 2 {
			msg := comesIn(t, q.Messages(), time.Hour)
			got = append(got, string(msg.Data))
			ack(t, msg)
		}
		want(t, got, numbers(0, 2))
	})
}

// Another client writes the ledger while a request is lost. Ack does not report a removal that has not happened.
func TestAckAfterAForeignWriteOfTheLedger(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		q := newQueue(t, srv)
		msg := next(t, q.Messages(), "0")
		synctest.Wait()
		f := zksynctest.Fault{Op: zkserver.OpMulti, Match: removes, Do: zksynctest.Call(func() {
			for _, path := range claimsZnodes(srv, "ledger-") {
				srv.Set(path, nil)
			}
		})}
		srv.Inject(f)
		f.Do = zksynctest.Disconnect
		srv.Inject(f)
		if err := msg.Ack(t.Context()); err == nil && len(messagesIn(srv, queuePath)) > 0 {
			t.Error("Ack has returned nil, and the message is still there")
		}
	})
}

// A Peek needs no permission to create a znode.
func TestPeekWithoutCreate(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := live(t, srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...)))
		if err := s.MakeDir(t.Context(), "/queues"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), queuePath, nil, 0, append(zk.WorldACL(zk.PermRead), zk.AuthACL(zk.PermAll)...)...); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), queuePath+"/qn-", []byte("0"), zk.FlagSequence); err != nil {
			t.Fatal(err)
		}
		if data, ok, err := newQueue(t, srv).Peek(t.Context()); string(data) != "0" || !ok || err != nil {
			t.Errorf("Peek: %q, %v, %v", data, ok, err)
		}
	})
}

// MoveTo to a queue whose counter is spent waits until the messages of that queue are consumed, as Put does.
// Moved to its own queue, the message itself would keep the counter spent: MoveTo gives it back.
func TestMoveToWithSpentCounter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		target := zksync.NewQueue(srv.Connect(t), queuePath+"-dead")
		defer closeQueue(t, target)
		put(t, target, "first")
		srv.SetNextSequence(queuePath+"-dead", 2147483647)
		put(t, target, "last")
		msg := next(t, q.Messages(), "0")
		local := zksync.NewQueue(m, queuePath+"-dead")
		defer closeQueue(t, local)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- msg.MoveTo(ctx, local) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatal("MoveTo has returned before the messages of the target were consumed:", err)
		default:
		}
		want(t, receive(t, target.Chan(), 3), []string{"first", "last", "0"})
		if err := <-done; err != nil {
			t.Error("MoveTo:", err)
		}
	})
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		offer(t, srv.Connect(t), queuePath, 0, 1)
		srv.SetNextSequence(queuePath, 2147483647)
		put(t, q, "1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := next(t, q.Messages(), "0").MoveTo(ctx, q); !errors.Is(err, zk.ErrNodeExists) {
			t.Error("MoveTo of a message to its own queue:", err)
		}
		ack(t, next(t, q.Messages(), "1"))
		ack(t, next(t, q.Messages(), "0"))
	})
}
