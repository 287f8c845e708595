package zksync_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A DelayQueue that has claimed as many messages as the data of a znode can name goes on when some of them are settled.
// The data has room for all messages unless ZKSYNC_LONG is 1.
func TestManyDelayedMessagesInWork(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		n := bounds.Size(3_000, 30_000) / slowdown
		producer := zksync.NewDelayQueue(srv.Connect(t), queuePath)
		defer closeQueue(t, producer)
		var wg sync.WaitGroup
		now := time.Now()
		for i := range n {
			wg.Go(func() {
				if err := producer.PutAt(t.Context(), []byte("x"), now.Add(time.Duration(i)*time.Millisecond)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(40 * time.Second)
		q := zksync.NewDelayQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(100_000))
		defer closeQueue(t, q)
		var unsettled []*zksync.Message
		for received := 0; received < n; {
			select {
			case msg, ok := <-q.Messages():
				if !ok {
					t.Fatalf("the channel was closed after %d messages: %v", received, q.Err())
				}
				received++
				unsettled = append(unsettled, msg)
			case <-time.After(5 * time.Second):
				if len(unsettled) < 20_000 {
					t.Fatalf("no message after %d, of which %d are not settled", received, len(unsettled))
				}
				// The data of a znode has no room for more names.
				for _, msg := range unsettled[:10_000] {
					wg.Go(func() { ack(t, msg) })
				}
				wg.Wait()
				unsettled = unsettled[10_000:]
			}
		}
	})
}

// The data of the order znode does not grow with the messages that were claimed and are gone.
func TestClaimTableStaysSmall(t *testing.T) {
	for kind, open := range threeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer, put := open(srv.Connect(t), usualPrefetch)
				defer closeQueue(t, producer)
				a, _ := open(srv.Connect(t), 4)
				defer closeQueue(t, a)
				b, _ := open(srv.Connect(t), 4)
				defer closeQueue(t, b)
				taker, _ := open(srv.Connect(t), 4)
				defer closeQueue(t, taker)
				got := 0
				for i := range 200 {
					putNow(t, put, fmt.Sprint(i))
					for _, q := range []commonQueue{a, b} {
						select {
						case msg := <-q.Messages():
							switch i % 4 {
							case 0:
								nack(t, msg)
							case 1:
								if err := msg.Retry(t.Context(), 10*time.Millisecond); err != nil {
									t.Error(err)
								}
							case 2, 3:
								got++
								ack(t, msg)
							}
						case <-time.After(20 * time.Millisecond):
						}
					}
					if i%5 == 0 {
						ok := true
						var err error
						if _, ok, err = taker.TryTake(t.Context()); err != nil {
							t.Error(err)
						}
						if ok {
							got++
						}
					}
				}
				for got < 200 {
					select {
					case msg := <-a.Messages():
						ack(t, msg)
					case msg := <-b.Messages():
						ack(t, msg)
					case <-time.After(time.Hour):
						t.Fatalf("%d messages", got)
					}
					got++
				}
				synctest.Wait()
				// The next claims write the order znode.
				for range 5 {
					putNow(t, put, "x")
					select {
					case msg := <-a.Messages():
						ack(t, msg)
					case msg := <-b.Messages():
						ack(t, msg)
					case <-time.After(time.Hour):
						t.Fatal("no message")
					}
					time.Sleep(5 * time.Minute)
				}
				for _, path := range claimsZnodes(srv, "order-") {
					if data, _ := srv.Get(path); len(data) > 200 {
						t.Errorf("the order znode has %d bytes: %s", len(data), data)
					}
				}
			})
		})
	}
}

// tableSize returns the size of the claim table.
func tableSize(srv *zksynctest.Server) (n int) {
	for _, path := range claimsZnodes(srv, "order-") {
		data, _ := srv.Get(path)
		n += len(data)
	}
	return n
}

// The claim table does not grow with the directories that servers delete when they are empty and no consumer runs.
func TestClaimTableForgetsDeletedDirectories(t *testing.T) {
	for kind, open := range threeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				for i := range 12 {
					q, put := open(m, usualPrefetch)
					putNow(t, put, fmt.Sprint(i))
					must(t, next(t, q.Messages(), fmt.Sprint(i)).Retry(t.Context(), 0))
					ack(t, next(t, q.Messages(), fmt.Sprint(i)))
					closeQueue(t, q)
					time.Sleep(5 * time.Minute)
				}
				if n := tableSize(srv); n > 60 {
					t.Errorf("the claim table has %d bytes after 12 runs of a consumer", n)
				}
			})
		})
	}
}

// The claim table does not grow with the directories that are deleted while the session of the only consumer ends.
func TestClaimTableForgetsDirectoriesOfLostSessions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		producer, q := zksync.NewDelayQueue(srv.Connect(t), queuePath), zksync.NewDelayQueue(m, queuePath)
		defer closeQueue(t, producer)
		for i := range 12 {
			must(t, producer.Put(t.Context(), fmt.Append(nil, i), 0))
			want(t, receive(t, q.Chan(), 1), numbers(i, i+1))
			synctest.Wait()
			names, _ := srv.Children(queuePath)
			for _, name := range names {
				if strings.HasPrefix(name, "t-") {
					must(t, srv.Delete(queuePath+"/"+name))
				}
			}
			must(t, srv.ExpireSession(live(t, m).ID()))
			time.Sleep(5 * time.Minute)
		}
		if n := tableSize(srv); n > 60 {
			t.Errorf("the claim table has %d bytes after 12 sessions", n)
		}
		closeQueue(t, q)
	})
}

// A claim table that deleted directories have filled up to the limit of a request does not stop a queue.
func TestClaimTableFullOfDeletedDirectories(t *testing.T) {
	for kind, open := range threeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer, put := open(srv.Connect(t), usualPrefetch)
				defer closeQueue(t, producer)
				putNow(t, put, "0")
				q, _ := open(srv.Connect(t), usualPrefetch)
				ack(t, next(t, q.Messages(), "0"))
				closeQueue(t, q)
				order := claimsZnodes(srv, "order-")[0]
				data, _ := srv.Get(order)
				for i := range 400 {
					data = fmt.Appendf(data, "%x 7\n", 0x7000000+i)
				}
				must(t, srv.Set(order, data))
				q, _ = open(srv.Connect(t, session.WithMaxRequest(2048)), usualPrefetch)
				putNow(t, put, "1")
				ack(t, next(t, q.Messages(), "1"))
				closeQueue(t, q)
				if n := tableSize(srv); n > 60 {
					t.Errorf("the claim table has %d bytes", n)
				}
			})
		})
	}
}

// A ledger with garbage data does not stop the other consumers for good.
func TestGarbageInALedger(t *testing.T) {
	for _, garbage := range []string{"garbage", "7 qn-:1-999999999999", "\n", "7", "zz qn-:1"} {
		t.Run(garbage, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 3)
				m := srv.Connect(t)
				dying := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
				next(t, dying.Messages(), "0")
				q := newQueue(t, srv, zksync.WithPrefetch(1))
				held := next(t, q.Messages(), "1")
				other := newQueue(t, srv, zksync.WithPrefetch(1))
				third := next(t, other.Messages(), "2")
				srv.Create(claimsPath+"/ledger-0", []byte(garbage))
				srv.ExpireSession(live(t, m).ID())
				go closeQueue(t, dying)
				time.Sleep(time.Minute)
				ack(t, held)
				if msg := comesIn(t, q.Messages(), time.Hour); string(msg.Data) != "0" {
					t.Errorf("%q came", msg.Data)
				}
				ack(t, third)
			})
		})
	}
}

// Other znodes in the directories of the queue do not matter.
func TestForeignZnodesInTheDirectories(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv)
		ch := q.Messages()
		synctest.Wait()
		other := newQueue(t, srv)
		other.Messages()
		synctest.Wait()
		for _, path := range []string{"/zksync-claims/x", "/zksync-claims/ledger-x", "/zksync-claims/order-x", "/zksync-idle/idle-x", "/zksync-idle/idle-0000000007", "/qn-x", "/qn-+000000001", "/qn-99999999999", "/zksync-later", "/zksync-later/x", "/zksync-later/0000000000000-1-x", "/zksync-later/1-1-1"} {
			if err := srv.Create(queuePath+path, []byte("foreign")); err != nil {
				t.Log(path, err)
			}
		}
		offer(t, srv.Connect(t), queuePath, 0, 30)
		got := map[string]int{}
		for range 30 {
			select {
			case msg := <-ch:
				got[string(msg.Data)]++
				ack(t, msg)
			case msg := <-other.Messages():
				got[string(msg.Data)]++
				if err := msg.Retry(t.Context(), 0); err != nil {
					t.Error(err)
				}
				select {
				case msg = <-ch:
				case msg = <-other.Messages():
				case <-time.After(time.Hour):
					t.Fatal("the message of Retry has not come")
				}
				ack(t, msg)
			case <-time.After(time.Hour):
				t.Fatalf("got %v", got)
			}
		}
		time.Sleep(time.Minute)
		srv.ResetOps()
		time.Sleep(10 * time.Minute)
		if ops := requests(srv); len(ops) > 0 {
			t.Errorf("%d requests when idle: %v", len(ops), ops[0])
		}
	})
}

// A message is moved to its own queue, with and without a limit.
func TestMoveToItself(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithCapacity(3))
		defer closeQueue(t, q)
		put(t, q, "0", "1", "2")
		msg := next(t, q.Messages(), "0")
		done := make(chan error, 1)
		go func() { done <- msg.MoveTo(t.Context(), q) }()
		time.Sleep(time.Minute)
		if err := msg.Ack(t.Context()); !errors.Is(err, zksync.ErrSettled) {
			t.Error("Ack during MoveTo:", err)
		}
		if err := msg.Retry(t.Context(), 0); !errors.Is(err, zksync.ErrSettled) {
			t.Error("Retry during MoveTo:", err)
		}
		ack(t, next(t, q.Messages(), "1"))
		if err := <-done; err != nil {
			t.Error("MoveTo:", err)
		}
		ack(t, next(t, q.Messages(), "2"))
		ack(t, next(t, q.Messages(), "0"))
		if err := msg.MoveTo(t.Context(), q); !errors.Is(err, zksync.ErrSettled) {
			t.Error("MoveTo again:", err)
		}
		wantLeft(t, srv, 0, 0)
	})
}

// Another client writes the ledger while a claim is lost. The consumer does not leave its contender in the line of idle
// consumers, which would hold up all consumers behind it.
func TestLineAfterAForeignWriteOfTheLedger(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var all []*zksync.Queue
		for range 3 {
			q := newQueue(t, srv)
			q.Chan()
			all = append(all, q)
			synctest.Wait()
		}
		f := zksynctest.Fault{Op: zkserver.OpMulti, Path: queuePath + "/zksync-idle/*", Do: zksynctest.Call(func() {
			for _, path := range claimsZnodes(srv, "ledger-") {
				data, _ := srv.Get(path)
				srv.Set(path, data)
			}
		})}
		srv.Inject(f)
		f.Do = zksynctest.Disconnect
		srv.Inject(f)
		got := make(chan string, 100)
		var wg sync.WaitGroup
		for _, q := range all {
			wg.Go(func() {
				for data := range q.Chan() {
					got <- string(data)
				}
			})
		}
		for i := range 20 {
			offer(t, srv.Connect(t), queuePath, i, i+1)
			data := comesIn(t, got, time.Hour)
			if i == 1 && data == "0" {
				// The consumer of message 0 has lost its ledger before the removal.
				data = comesIn(t, got, time.Hour)
			}
			if data != fmt.Sprint(i) {
				t.Errorf("%s came, want %d", data, i)
			}
			time.Sleep(time.Minute)
		}
		for _, q := range all {
			closeQueue(t, q)
		}
		wg.Wait()
	})
}

// A consumer that may not delete ledgers goes on after the loss of its session, as it began.
func TestSessionLostWithoutPermissionToDeleteLedgers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...))
		offer(t, owner, queuePath, 0, 1)
		acl := append(zk.WorldACL(zk.PermAll&^zk.PermDelete), zk.AuthACL(zk.PermAll)...)
		if _, err := live(t, owner).Create(t.Context(), claimsPath, nil, 0, acl...); err != nil {
			t.Fatal(err)
		}
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		defer closeQueue(t, q)
		want(t, receive(t, q.Chan(), 1), numbers(0, 1))
		synctest.Wait()
		srv.ExpireSession(live(t, m).ID())
		offer(t, owner, queuePath, 1, 2)
		select {
		case data, ok := <-q.Chan():
			if string(data) != "1" {
				t.Errorf("%q, %v: %v", data, ok, q.Err())
			}
		case <-time.After(time.Hour):
			t.Error("no message")
		}
	})
}

// A Peek needs no permission to write after a consumer has died.
func TestPeekWithoutWriteAfterADeath(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(append(zk.WorldACL(zk.PermRead), zk.AuthACL(zk.PermAll)...)...))
		offer(t, owner, queuePath, 0, 2)
		q := zksync.NewQueue(owner, queuePath, zksync.WithPrefetch(1))
		next(t, q.Messages(), "0")
		reader := newQueue(t, srv)
		if data, ok, err := reader.Peek(t.Context()); string(data) != "1" || !ok || err != nil {
			t.Errorf("Peek: %q, %v, %v", data, ok, err)
		}
		removeLedgers(srv) // as at the end of the session of a consumer
		if data, ok, err := reader.Peek(t.Context()); !ok || err != nil {
			t.Errorf("Peek: %q, %v, %v", data, ok, err)
		}
		closeQueue(t, q)
	})
}

// Two consumers that may not create the directory of the line of idle consumers receive messages.
func TestTwoConsumersWithoutTheLine(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		owner := srv.Connect(t, session.WithAuth("digest", []byte("owner:secret")), session.WithACL(zk.WorldACL(zk.PermAll)...))
		s := live(t, owner)
		if err := s.MakeDir(t.Context(), "/queues"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), queuePath, nil, 0, append(zk.WorldACL(zk.PermAll&^zk.PermCreate), zk.AuthACL(zk.PermAll)...)...); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := zksync.NewQueue(owner, queuePath).TryTake(t.Context()); ok || err != nil { // creates the directory of the claims
			t.Fatal(ok, err)
		}
		offer(t, owner, queuePath, 0, 1)
		got := make(chan string, 10)
		var wg sync.WaitGroup
		var queues []*zksync.Queue
		for range 2 {
			q := newQueue(t, srv)
			queues = append(queues, q)
			wg.Go(func() {
				for data := range q.Chan() {
					got <- string(data)
				}
			})
			synctest.Wait()
		}
		for i := range 5 {
			if i > 0 {
				offer(t, owner, queuePath, i, i+1)
			}
			if data := comesIn(t, got, time.Hour); data != fmt.Sprint(i) {
				t.Errorf("%s came, want %d", data, i)
			}
			time.Sleep(time.Minute)
		}
		for _, q := range queues {
			if err := q.Err(); err != nil {
				t.Error("Err:", err)
			}
			closeQueue(t, q)
		}
		wg.Wait()
	})
}

// Internal errors as the answers to the requests of a consumer only delay its messages, and are logged if they last.
func TestInternalErrorsOfAConsumer(t *testing.T) {
	for _, op := range []zksynctest.OpCode{zkserver.OpGetChildren2, zkserver.OpMultiRead, zkserver.OpGetData, zkserver.OpMulti} {
		for _, lasting := range []time.Duration{time.Millisecond, 10 * time.Minute} {
			t.Run(fmt.Sprint(op, " ", lasting), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					// Beside another consumer, so that the consumer joins the line and watches the order znode.
					offer(t, srv.Connect(t), queuePath, 0, 2)
					other := zksync.NewQueue(srv.Connect(t), queuePath, zksync.WithPrefetch(1))
					defer closeQueue(t, other)
					<-other.Messages()
					core, logs := observer.New(zapcore.WarnLevel)
					m := srv.Connect(t, session.WithLogger(zap.New(core)))
					q := zksync.NewQueue(m, queuePath)
					defer closeQueue(t, q)
					failed := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: op, Times: -1, Do: zksynctest.Error(zkserver.ErrSystem)})
					time.AfterFunc(lasting, failed.Remove)
					select {
					case data, ok := <-q.Chan():
						if !ok {
							t.Errorf("the channel was closed: %v", q.Err())
						}
						if string(data) != "1" {
							t.Errorf("%q came, want 1", data)
						}
					case <-time.After(lasting + 5*time.Second):
						t.Error("no message came after the errors")
					}
					if n := failed.Count(); n == 0 || n > 2*int(lasting/time.Second)+20 {
						t.Errorf("%d requests were answered with an error in %v", n, lasting)
					}
					if n := logs.FilterMessage("a call waited").Len(); (n > 0) != (lasting > time.Minute) || n > 20 {
						t.Errorf("%d lines of the log about errors of %v: %v", n, lasting, logs.All())
					}
				})
			})
		}
	}
}

// An internal error behind received messages delays the next message by no pause that grows with earlier errors.
func TestInternalErrorsBetweenMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		producer := newQueue(t, srv)
		put(t, producer, "first")
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		want(t, receive(t, q.Chan(), 1), []string{"first"})
		for i := range 20 {
			failed := srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMultiRead, Match: readsMessage, Times: 2, Do: zksynctest.Error(zkserver.ErrSystem)})
			put(t, producer, fmt.Sprint(i))
			began := time.Now()
			want(t, receive(t, q.Chan(), 1), numbers(i, i+1))
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("message %d came after %v", i, took)
			}
			// The read behind the claim is repeated, and the second error ends the attempt.
			if failed.Count() != 2 {
				t.Fatalf("the fault has struck %d times, want 2", failed.Count())
			}
		}
		closeQueue(t, q)
	})
}
