package zksync_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

var allMoments = []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit, zksynctest.BeforeReply}

// strikeAt loses the nth request of a session, or its answer, and with it the
// connection or the session.
func strikeAt(srv *zksynctest.Server, id int64, nth int, at zksynctest.Moment, expired bool) {
	f := zksynctest.Fault{Session: id, Nth: nth, At: at, Do: zksynctest.Disconnect}
	if expired {
		f.Do = zksynctest.Call(func() { go srv.ExpireSession(id) })
		srv.Inject(f)
		f.Do = zksynctest.Drop
	}
	srv.Inject(f)
}

// everyRequest runs test for each of the first requests of a consumer, in a plain run for every second of them.
func everyRequest(t *testing.T, n int, test func(t *testing.T, srv *zksynctest.Server, m *session.Manager, expired bool)) {
	for i, at := range allMoments {
		for nth := 1; nth <= n; nth++ {
			if !chosen(i, nth, 2) {
				continue
			}
			for _, expired := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v %d expired %v", at, nth, expired), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						m := srv.Connect(t)
						strikeAt(srv, live(t, m).ID(), nth, at, expired)
						test(t, srv, m, expired)
					})
				})
			}
		}
	}
}

// A value delivers each message once and in order, even if a request or an answer is lost.
func TestChanOverLostAnswers(t *testing.T) {
	everyRequest(t, 25, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, _ bool) {
		q := zksync.NewQueue(m, queuePath)
		offer(t, srv.Connect(t), queuePath, 0, 20)
		want(t, receive(t, q.Chan(), 20), numbers(0, 20))
		time.Sleep(time.Minute)
		select {
		case data, ok := <-q.Chan():
			t.Errorf("%q came, %v", data, ok)
		default:
		}
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// Without the loss of a session each message comes exactly once, also beside another consumer.
func TestChanBesideAnotherOverLostAnswers(t *testing.T) {
	everyRequest(t, 25, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, expired bool) {
		queues := []*zksync.Queue{zksync.NewQueue(m, queuePath), newQueue(t, srv)}
		got := make([][]string, len(queues))
		var wg sync.WaitGroup
		for i, q := range queues {
			wg.Go(func() {
				for data := range q.Chan() {
					got[i] = append(got[i], string(data))
					time.Sleep(time.Millisecond)
				}
			})
		}
		synctest.Wait()
		offer(t, srv.Connect(t), queuePath, 0, 30)
		time.Sleep(2 * time.Minute)
		for _, q := range queues {
			closeQueue(t, q)
		}
		wg.Wait()
		all := slices.Concat(got...)
		if expired {
			for _, g := range got {
				slices.Sort(g)
				if n := len(slices.Compact(g)); n != len(g) {
					t.Errorf("one value has delivered a message twice: %v", g)
				}
			}
			slices.Sort(all)
			all = slices.Compact(all)
		}
		wantAll(t, all, 30)
		wantLeft(t, srv, 0, 0)
	})
}

// Each message of Messages is delivered and acknowledged once, even if a request or an answer is lost.
func TestMessagesOverLostAnswers(t *testing.T) {
	everyRequest(t, 25, func(t *testing.T, srv *zksynctest.Server, m *session.Manager, expired bool) {
		q := zksync.NewQueue(m, queuePath)
		offer(t, srv.Connect(t), queuePath, 0, 6)
		acknowledged := make(map[string]int)
		for len(acknowledged) < 6 {
			msg, ok := <-q.Messages()
			if !ok {
				t.Fatal(q.Err())
			}
			err := msg.Ack(t.Context())
			if err == nil {
				acknowledged[string(msg.Data)]++
			} else if !expired || !errors.Is(err, zksync.ErrLost) {
				t.Error("Ack:", err)
			} else if left := messagesIn(srv, queuePath); !slices.Contains(left, msg.ID) {
				// The session was lost with the answer, and the message was removed.
				acknowledged[string(msg.Data)]++
			}
		}
		for _, v := range numbers(0, 6) {
			if acknowledged[v] != 1 {
				t.Errorf("%s was acknowledged %d times", v, acknowledged[v])
			}
		}
		time.Sleep(time.Minute)
		select {
		case msg, ok := <-q.Messages():
			t.Errorf("%v came, %v", msg, ok)
		default:
		}
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// While an operator deletes messages and claims, no message is stuck, and none is delivered twice to the same value.
func TestChanAndTheOperator(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 30)
		q := newQueue(t, srv)
		ch := q.Chan()
		synctest.Wait()
		// A message that the consumer has claimed.
		srv.Delete(queuePath + "/qn-0000000002")
		// A message that the consumer has only listed.
		srv.Delete(queuePath + "/qn-0000000020")
		want(t, receive(t, ch, 29), slices.DeleteFunc(numbers(0, 30), func(v string) bool { return v == "19" }))
		synctest.Wait()
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// An operator who deletes a claim frees its message.
func TestClaimRemovedByTheOperator(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		sitting := newQueue(t, srv)
		msg := next(t, sitting.Messages(), "0")
		other := newQueue(t, srv)
		ch := other.Messages()
		time.Sleep(time.Hour)
		select {
		case <-ch:
			t.Fatal("a message was delivered twice")
		default:
		}
		removeLedgers(srv)
		again := next(t, ch, "0")
		// Only the consumer that claimed it last settles it.
		if err := msg.Ack(t.Context()); !errors.Is(err, zksync.ErrLost) {
			t.Error("Ack:", err)
		}
		ack(t, again)
		closeQueue(t, sitting)
		closeQueue(t, other)
		wantLeft(t, srv, 0, 0)
	})
}

// Chan goes on when the whole queue was deleted and another one has the same name.
func TestChanOfAQueueThatWasRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := newQueue(t, srv)
		ch := q.Chan()
		offer(t, m, queuePath, 0, 3)
		want(t, receive(t, ch, 1), numbers(0, 1))
		synctest.Wait()
		// The messages and the claims on them are gone.
		removeTree(srv, queuePath)
		time.Sleep(time.Minute)
		offer(t, m, queuePath, 10, 15)
		// The names are used again. The messages that waited for the receiver when their claims
		// ended may come first.
		var got []string
		for len(got) < 5 {
			if value := receive(t, ch, 1)[0]; value != "1" && value != "2" {
				got = append(got, value)
			}
		}
		slices.Sort(got)
		want(t, got, numbers(10, 15))
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

func removeTree(srv *zksynctest.Server, path string) {
	names, _ := srv.Children(path)
	for _, name := range names {
		removeTree(srv, path+"/"+name)
	}
	srv.Delete(path)
}

// The channel of Chan is closed for a user that may not delete messages, and Err says why.
func TestChanWithoutPermission(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := live(t, srv.Connect(t))
		for i, acl := range [][]zk.ACL{zk.DigestACL(zk.PermAll, "somebody", "else"), zk.WorldACL(zk.PermRead)} {
			path := fmt.Sprintf("/forbidden-%d", i)
			if _, err := s.Create(t.Context(), path, nil, 0, acl...); err != nil {
				t.Fatal(err)
			}
			q := zksync.NewQueue(srv.Connect(t), path)
			if data, ok := <-q.Chan(); ok {
				t.Errorf("%q was received", data)
			}
			if err := q.Err(); !errors.Is(err, zk.ErrNoAuth) {
				t.Error("Err:", err)
			}
			if _, _, err := q.TryTake(t.Context()); i == 0 && !errors.Is(err, zk.ErrNoAuth) {
				t.Error("TryTake:", err)
			}
			closeQueue(t, q)
		}
	})
}

// Chan works on servers before 3.6, which do not know multiRead.
func TestChanWithoutMultiRead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 300)
		q := newQueue(t, srv)
		want(t, receive(t, q.Chan(), 300), numbers(0, 300))
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	}, zksynctest.WithConfig(zkserver.Config{Without: []zkserver.OpCode{zkserver.OpMultiRead}}))
}

// Large messages are not all read into memory at once.
func TestChanOfLargeMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		producer := zksync.NewQueue(m, queuePath)
		const n, size = 60, 900 << 10
		for i := range n {
			data := make([]byte, size)
			data[0] = byte(i)
			if err := producer.Put(t.Context(), data); err != nil {
				t.Fatal(err)
			}
		}
		closeQueue(t, producer)
		q := newQueue(t, srv)
		for i := range n {
			if data := <-q.Chan(); len(data) != size || data[0] != byte(i) {
				t.Fatalf("message %d: %d bytes, number %d", i, len(data), data[0])
			}
			synctest.Wait()
			if _, claims := leftItems(srv, queuePath); len(claims) > 30 {
				t.Fatalf("%d messages of 900 KiB were claimed", len(claims))
			}
		}
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}

// A value delivers in order although the servers end its lost session late. A session is lost to us before the servers
// have ended it. The messages that it had claimed come first nevertheless.
func TestChanDoesNotOvertakeItself(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 30)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		want(t, receive(t, q.Chan(), 1), numbers(0, 1))
		synctest.Wait()
		lost := live(t, m)
		srv.Partition(lost.ID())
		<-lost.Done()
		want(t, receive(t, q.Chan(), 29), numbers(1, 30))
		time.Sleep(time.Minute)
		closeQueue(t, q)
		wantLeft(t, srv, 0, 0)
	})
}
