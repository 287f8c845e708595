package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A consumer gets all messages in order, and each is removed at its receipt.
func TestDeliverInOrder(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 300)
		c := h.consumer(h.srv.Connect(h), 128, InOrder)
		var got []string
		done := make(chan error)
		go func() {
			done <- c.Deliver(true, func(_ context.Context, d *Delivery) bool {
				got = append(got, string(d.Data))
				return true
			})
		}()
		time.Sleep(time.Second)
		h.close(c)
		if err := <-done; err != ErrClosed {
			h.Errorf("Deliver: %v", err)
		}
		if want := numbers(0, 300); !slices.Equal(got, want) {
			h.Errorf("got %v", got)
		}
		h.wantLeft(0, 0)
	})
}

// Consumers share a backlog: each message is delivered once, and no consumer has more than twice its share.
func TestConsumersShare(t *testing.T) {
	inBubble(t, func(h harness) {
		const consumers, n = 4, 400
		h.put(0, n)
		h.srv.Inject(zksynctest.Fault{Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		var mu sync.Mutex
		var all []string
		var wg sync.WaitGroup
		var closers []func()
		for i := range consumers {
			c := h.consumer(h.srv.Connect(h), 128, InOrder)
			wg.Go(func() {
				mine := 0
				c.Deliver(true, func(ctx context.Context, d *Delivery) bool {
					time.Sleep(5 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					all = append(all, string(d.Data))
					mine++
					return true
				})
				if mine > 2*n/consumers {
					h.Errorf("consumer %d has received %d of %d messages", i, mine, n)
				}
			})
			closers = append(closers, func() { h.close(c) })
		}
		time.Sleep(10 * time.Second)
		for _, end := range closers {
			end()
		}
		wg.Wait()
		if want := slices.Sorted(slices.Values(numbers(0, n))); !slices.Equal(slices.Sorted(slices.Values(all)), want) {
			h.Errorf("%d messages, want %d", len(all), n)
		}
	})
}

// Nack and Retry count as attempts. A message of Retry comes when it is due, and not before.
func TestAttempts(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 2)
		c := h.consumer(h.srv.Connect(h), 1, InOrder)
		ch := h.messages(c)
		h.must(h.next(ch, "0", 1).Nack(h.Context()))
		h.must(h.next(ch, "0", 2).Retry(h.Context(), time.Minute))
		second := h.next(ch, "1", 1)
		h.must(second.Ack(h.Context()))
		if err := second.Nack(h.Context()); err == nil {
			h.Error("a message was settled twice")
		}
		h.none(ch, 59*time.Second)
		again := h.next(ch, "0", 3)
		h.must(again.Nack(h.Context()))
		h.must(h.next(ch, "0", 4).Ack(h.Context()))
		h.close(c)
		h.wantLeft(0, 0)
	})
}

// MoveTo moves a message to another queue.
func TestMoveTo(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 1)
		c := h.consumer(h.srv.Connect(h), 1, InOrder)
		d := h.next(h.messages(c), "0", 1)
		h.must(d.MoveTo(h.Context(), Target{Life: h.Context(), Dir: "/dead", Prefix: ItemPrefix, MakeDir: func(ctx context.Context, s *session.Session, path string) error {
			return s.MakeDir(ctx, path)
		}}))
		if data, _ := h.srv.Get("/dead/qn-0000000000"); string(data) != "0" {
			h.Errorf("moved: %q", data)
		}
		h.close(c)
		h.wantLeft(0, 0)
	})
}

// The messages that a dead consumer had claimed go to another consumer, in order, and count as delivered once.
func TestRecoveryOfADeadConsumer(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 20)
		var gone atomic.Bool
		m := h.srv.Connect(h, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
			if gone.Load() {
				return nil, errors.New("the process is dead")
			}
			return h.srv.Dial(ctx, network, address)
		}))
		dead := h.consumer(m, 4, InOrder)
		ch := h.messages(dead)
		h.next(ch, "0", 1)
		other := h.consumer(h.srv.Connect(h), 128, InOrder)
		theirs := h.messages(other)
		synctest.Wait()
		s, err := m.Session(h.Context())
		h.must(err)
		gone.Store(true)
		h.srv.Partition(s.ID())
		time.Sleep(time.Minute)
		attempts := make(map[string]int)
		for range 20 {
			select {
			case d := <-theirs:
				attempts[string(d.Data)] = d.Attempts
				h.must(d.Ack(h.Context()))
			case <-time.After(time.Hour):
				h.Fatalf("no further message, after %v\n%s", attempts, h.srv.Dump())
			}
		}
		if attempts["0"] != 2 || attempts["19"] != 1 || len(attempts) != 20 {
			h.Errorf("attempts: %v", attempts)
		}
		h.close(other)
	})
}

// Close gives back the messages that were not settled, and does not count an attempt.
func TestCloseGivesBack(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 3)
		c := h.consumer(h.srv.Connect(h), 128, InOrder)
		h.next(h.messages(c), "0", 1)
		h.close(c)
		h.wantLeft(3, 0)
		other := h.consumer(h.srv.Connect(h), 128, InOrder)
		ch := h.messages(other)
		for i := range 3 {
			h.must(h.next(ch, fmt.Sprint(i), 1).Ack(h.Context()))
		}
		h.close(other)
		h.wantLeft(0, 0)
	})
}

// Internal errors of servers at Close do not make the delivery that Close has ended count.
func TestCloseGivesBackAfterAnInternalError(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
		inBubble(t, func(h harness) {
			h.put(0, 1)
			m := h.srv.Connect(h)
			c := h.consumer(m, 128, InOrder)
			h.next(h.messages(c), "0", 1)
			synctest.Wait()
			failed := h.srv.Inject(zksynctest.Fault{Op: zkserver.OpMulti, Times: 5, At: at, Do: zksynctest.Error(zkserver.ErrSystem)})
			h.close(c)
			h.wantLeft(1, 0)
			other := h.consumer(h.srv.Connect(h), 128, InOrder)
			h.must(h.next(h.messages(other), "0", 1).Ack(h.Context()))
			h.close(other)
			if failed.Count() == 0 {
				h.Error("the fault has not struck")
			}
		})
	}
}

// After the loss of its session a consumer gets its messages again at once, and an Ack of the former delivery fails.
func TestOwnSessionLost(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 2)
		m := h.srv.Connect(h)
		c := h.consumer(m, 128, InOrder)
		ch := h.messages(c)
		former := h.next(ch, "0", 1)
		s, err := m.Session(h.Context())
		h.must(err)
		h.srv.ExpireSession(s.ID())
		<-s.Done()
		if err := former.Ack(h.Context()); session.ClassOf(err) != session.ClassLost {
			h.Errorf("Ack: %v, want ErrLost", err)
		}
		got := []string{}
		for range 2 {
			d := <-ch
			got = append(got, string(d.Data))
			h.must(d.Ack(h.Context()))
		}
		if !slices.Equal(slices.Sorted(slices.Values(got)), []string{"0", "1"}) {
			h.Errorf("got %v", got)
		}
		h.close(c)
		h.wantLeft(0, 0)
	})
}

// A message whose data may not be read is skipped, and the others are delivered.
func TestUnreadableMessage(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 1)
		m := h.srv.Connect(h, session.WithAuth("digest", []byte("user:secret")))
		s, err := m.Session(h.Context())
		h.must(err)
		_, err = s.Create(h.Context(), testQueue+"/"+ItemPrefix, nil, zk.FlagSequence, zk.DigestACL(zk.PermAll, "user", "secret")...)
		h.must(err)
		h.put(1, 2)
		c := h.consumer(h.srv.Connect(h), 128, InOrder)
		ch := h.messages(c)
		h.must(h.next(ch, "0", 1).Ack(h.Context()))
		h.must(h.next(ch, "1", 1).Ack(h.Context()))
		if n, err := c.Skipped(); n != 1 || session.ClassOf(err) != session.ClassNoAuth && !strings.Contains(fmt.Sprint(err), "qn-") {
			h.Errorf("skipped %d, %v", n, err)
		}
		h.close(c)
		h.wantLeft(1, 0)
	})
}

// Whichever answer is lost, once or twice in a row, each message is acknowledged once.
func TestLostAnswers(t *testing.T) {
	for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
		for nth := 1; nth <= 24; nth++ {
			for times := 1; times <= 2; times++ {
				t.Run(fmt.Sprint(at, nth, times), func(t *testing.T) {
					inBubble(t, func(h harness) {
						h.put(0, 6)
						m := h.srv.Connect(h)
						s, err := m.Session(h.Context())
						h.must(err)
						h.srv.Inject(zksynctest.Fault{Session: s.ID(), Nth: nth, Times: times, At: at, Do: zksynctest.Disconnect})
						c := h.consumer(m, 3, InOrder)
						ch := h.messages(c)
						for i := range 6 {
							h.must(h.next(ch, fmt.Sprint(i), 1).Ack(h.Context()))
						}
						h.none(ch, time.Minute)
						h.close(c)
						h.wantLeft(0, 0)
					})
				})
			}
		}
	}
}

// A message wakes one of many idle consumers: it costs at most ten requests.
func TestIdleConsumers(t *testing.T) {
	inBubble(t, func(h harness) {
		got := make(chan string)
		for range 50 {
			c := h.consumer(h.srv.Connect(h), 128, InOrder)
			go c.Deliver(true, func(_ context.Context, d *Delivery) bool {
				got <- string(d.Data)
				return true
			})
		}
		time.Sleep(time.Minute)
		for i := range 10 {
			h.srv.ResetOps()
			h.put(i, i+1)
			if data := <-got; data != fmt.Sprint(i) {
				h.Errorf("received %s, want %d", data, i)
			}
			time.Sleep(time.Minute)
			var ops []string
			for _, op := range h.srv.Ops() {
				switch op.Code {
				case zkserver.OpGetChildren2, zkserver.OpGetData, zkserver.OpMultiRead, zkserver.OpMulti:
				default: // of put, or a proof that a session is alive
					if !strings.Contains(op.Path, idleName) {
						continue
					}
				}
				if len(op.Sub) == 1 && op.Sub[0].Code == zkserver.OpCheck {
					continue // a proof that the session is alive
				}
				ops = append(ops, fmt.Sprint(op.Conn, " ", op.Code, " ", op.Path, len(op.Sub)))
			}
			// The first messages find a second consumer that has looked before it was in line.
			if i > 2 && len(ops) > 10 {
				h.Errorf("message %d cost %d requests, want at most 10: %q", i, len(ops), ops)
			}
		}
	})
}

// Take removes the first message that no consumer has claimed.
func TestTakeBesideClaims(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 4)
		c := h.consumer(h.srv.Connect(h), 2, InOrder)
		ch := h.messages(c)
		first := h.next(ch, "0", 1)
		synctest.Wait()
		taker := h.consumer(h.srv.Connect(h), 1, InOrder)
		for _, want := range []string{"2", "3"} {
			if data, ok, err := taker.Take(h.Context(), false); string(data) != want || !ok || err != nil {
				h.Errorf("Take: %q, %v, %v, want %s", data, ok, err, want)
			}
		}
		if data, ok, err := taker.Take(h.Context(), false); ok || err != nil {
			h.Errorf("Take: %q, %v, %v, want nothing", data, ok, err)
		}
		h.must(first.Nack(h.Context()))
		h.close(c)
		for _, want := range []string{"0", "1"} {
			if data, _, err := taker.Take(h.Context(), true); string(data) != want || err != nil {
				h.Errorf("Take: %q, %v, want %s", data, err, want)
			}
		}
		h.close(taker)
		h.wantLeft(0, 0)
	})
}

// The order znode is replaced before its version wraps, while one or two consumers are at work.
func TestOrderZnodeIsReplaced(t *testing.T) {
	for consumers := 1; consumers <= 2; consumers++ {
		t.Run(fmt.Sprint(consumers), func(t *testing.T) {
			inBubble(t, func(h harness) {
				const n = 60
				h.put(0, n)
				received := make(chan *Delivery)
				var all []*Consumer
				for range consumers {
					c := h.consumer(h.srv.Connect(h), 2, InOrder)
					c.cfg.maxOrderVersion = 5
					all = append(all, c)
					go func() {
						for d := range h.messages(c) {
							received <- d
						}
					}()
				}
				seen, orders := make(map[string]int), make(map[string]bool)
				for range n {
					var d *Delivery
					select {
					case d = <-received:
					case <-time.After(time.Hour):
						h.Fatalf("no further message after %d\n%s", len(seen), h.srv.Dump())
					}
					seen[string(d.Data)]++
					h.must(d.Ack(h.Context()))
					name, _ := h.srv.Get(testQueue + "/" + claimsName)
					orders[string(name)] = true
				}
				if len(seen) != n || len(orders) < 4 {
					h.Errorf("%d messages, %d order znodes", len(seen), len(orders))
				}
				for _, c := range all {
					h.close(c)
				}
				h.wantLeft(0, 0)
			})
		})
	}
}
