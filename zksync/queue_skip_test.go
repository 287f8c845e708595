package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"net"
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

// commonQueue has the methods that the three queues share.
type commonQueue interface {
	Take(context.Context) ([]byte, error)
	TryTake(context.Context) ([]byte, bool, error)
	Peek(context.Context) ([]byte, bool, error)
	Chan() <-chan []byte
	Messages() <-chan *zksync.Message
	Err() error
	Skipped() int
	Close() error
}

const usualPrefetch = 128

// threeQueues open the queues at queuePath, with a Put.
var threeQueues = map[string]func(m *session.Manager, prefetch int) (commonQueue, func(context.Context, []byte) error){
	"Queue": func(m *session.Manager, prefetch int) (commonQueue, func(context.Context, []byte) error) {
		q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(prefetch))
		return q, q.Put
	},
	"PriorityQueue": func(m *session.Manager, prefetch int) (commonQueue, func(context.Context, []byte) error) {
		q := zksync.NewPriorityQueue(m, queuePath, zksync.WithPrefetch(prefetch))
		return q, func(ctx context.Context, data []byte) error { return q.Put(ctx, data, 7) }
	},
	"DelayQueue": func(m *session.Manager, prefetch int) (commonQueue, func(context.Context, []byte) error) {
		q := zksync.NewDelayQueue(m, queuePath, zksync.WithPrefetch(prefetch))
		return q, func(ctx context.Context, data []byte) error { return q.Put(ctx, data, 0) }
	},
}

// deliveries are the ways to get n messages from a queue.
var deliveries = map[string]func(t *testing.T, q commonQueue, n int) []string{
	"Chan": func(t *testing.T, q commonQueue, n int) []string { return receive(t, q.Chan(), n) },
	"Messages": func(t *testing.T, q commonQueue, n int) (got []string) {
		for range n {
			select {
			case msg, open := <-q.Messages():
				if !open {
					t.Fatalf("closed after %v: %v", got, q.Err())
				}
				ack(t, msg)
				got = append(got, string(msg.Data))
			case <-time.After(patience):
				t.Fatalf("no message after %v", got)
			}
		}
		return got
	},
	"Take": func(t *testing.T, q commonQueue, n int) (got []string) {
		for range n {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			data, err := q.Take(ctx)
			cancel()
			if err != nil {
				t.Fatal("Take:", err)
			}
			got = append(got, string(data))
		}
		return got
	},
	"TryTake": func(t *testing.T, q commonQueue, n int) (got []string) {
		for range n {
			data, ok, err := q.TryTake(t.Context())
			if err != nil || !ok {
				t.Fatal("TryTake:", ok, err)
			}
			got = append(got, string(data))
		}
		return got
	},
}

// messagesIn are the paths of the messages below a znode.
func messagesIn(srv *zksynctest.Server, path string) (all []string) {
	names, _ := srv.Children(path)
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "qn-"):
			all = append(all, path+"/"+name)
		case strings.HasPrefix(name, "p-"), strings.HasPrefix(name, "t-"):
			all = append(all, messagesIn(srv, path+"/"+name)...)
		}
	}
	return all
}

func putNow(t *testing.T, put func(context.Context, []byte) error, data string) {
	t.Helper()
	if err := put(t.Context(), []byte(data)); err != nil {
		t.Fatal("Put:", err)
	}
	time.Sleep(2 * time.Millisecond) // the order of a DelayQueue
}

// A message that the consumer may not read holds up no other message. Skipped counts it
// and Err reports it.
func TestUnreadableMessageIsSkipped(t *testing.T) {
	for kind, open := range threeQueues {
		for way, deliver := range deliveries {
			for _, consumers := range []int{1, 2} {
				t.Run(fmt.Sprint(kind, way, consumers), func(t *testing.T) {
					bubble(t, func(t *testing.T, srv *zksynctest.Server) {
						producer, put := open(srv.Connect(t), usualPrefetch)
						defer closeQueue(t, producer)
						private, putPrivate := open(srv.Connect(t, session.WithAuth("digest", []byte("user:secret")), session.WithACL(zk.AuthACL(zk.PermAll)...)), usualPrefetch)
						defer closeQueue(t, private)
						putNow(t, put, "0")
						putNow(t, putPrivate, "private")
						for i := 1; i < 5; i++ {
							putNow(t, put, fmt.Sprint(i))
						}
						m := srv.Connect(t)
						if consumers == 2 {
							other, _ := open(srv.Connect(t), 1)
							defer closeQueue(t, other)
							if way == "Chan" {
								other.Chan()
							}
						}
						q, _ := open(m, usualPrefetch)
						if data, ok, err := q.Peek(t.Context()); err != nil && consumers == 1 || ok && string(data) != "0" && consumers == 1 {
							t.Errorf("Peek: %q, %v, %v", data, ok, err)
						}
						n := 5
						if consumers == 2 && way == "Chan" {
							n = 4 // the other value has one
						}
						got := deliver(t, q, n)
						if consumers == 1 {
							want(t, got, numbers(0, 5))
						}
						if q.Skipped() != 1 || !errors.Is(q.Err(), zk.ErrNoAuth) || !strings.Contains(fmt.Sprint(q.Err()), "qn-") {
							t.Errorf("skipped %d, Err: %v; want 1 and why", q.Skipped(), q.Err())
						}
						time.Sleep(2 * time.Minute) // a partition of a past time is looked at for the last time
						if data, ok, err := q.Peek(t.Context()); ok || consumers == 1 && !errors.Is(err, zk.ErrNoAuth) {
							t.Errorf("Peek: %q, %v, %v; want why there is nothing to see", data, ok, err)
						}
						synctest.Wait()
						srv.ResetOps()
						time.Sleep(time.Minute)
						if ops := requests(srv); len(ops) > 0 {
							t.Errorf("%d requests behind a skipped message: %v", len(ops), ops)
						}
						closeQueue(t, q)
						if left := messagesIn(srv, queuePath); len(left) < 1 {
							t.Error("the message that cannot be read is gone")
						}
					})
				})
			}
		}
	}
}

// A message with a child holds up no other message, and is not delivered again and again.
// Skipped counts it and Err reports it.
func TestUnremovableMessageIsSkipped(t *testing.T) {
	for kind, open := range threeQueues {
		for way, deliver := range deliveries {
			t.Run(kind+way, func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					producer, put := open(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, producer)
					for i := range 5 {
						putNow(t, put, fmt.Sprint(i))
					}
					if err := srv.Create(messagesIn(srv, queuePath)[1]+"/child", nil); err != nil {
						t.Fatal(err)
					}
					q, _ := open(srv.Connect(t), usualPrefetch)
					if way != "Messages" {
						all := numbers(0, 5)
						if strings.HasSuffix(way, "Take") {
							all = append(numbers(0, 1), numbers(2, 5)...)
						}
						want(t, deliver(t, q, len(all)), all)
					} else {
						for i := range 5 {
							if err := next(t, q.Messages(), fmt.Sprint(i)).Ack(t.Context()); (i == 1) != errors.Is(err, zk.ErrNotEmpty) || i != 1 && err != nil {
								t.Errorf("Ack of %d: %v", i, err)
							}
						}
					}
					synctest.Wait()
					putNow(t, put, "5")
					want(t, deliver(t, q, 1), []string{"5"})
					synctest.Wait()
					if q.Skipped() != 1 || !errors.Is(q.Err(), zk.ErrNotEmpty) {
						t.Errorf("skipped %d, Err: %v; want 1 and why", q.Skipped(), q.Err())
					}
					closeQueue(t, q)
					if left := messagesIn(srv, queuePath); len(left) != 1 {
						t.Errorf("left: %v", left)
					}
					if _, claims := leftItems(srv, queuePath); len(claims) > 0 {
						t.Errorf("claims are left: %v", claims)
					}
				})
			})
		}
	}
}

// One request reads 16 messages at most, also behind small messages, because the sizes of
// the next messages are not known.
func TestReadsAreBounded(t *testing.T) {
	for _, others := range []int{0, 1} {
		t.Run(fmt.Sprint("others ", others), func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer := zksync.NewQueue(srv.Connect(t), queuePath)
				defer closeQueue(t, producer)
				large := make([]byte, 500<<10)
				for range others {
					other := newQueue(t, srv, zksync.WithPrefetch(1))
					other.Messages()
				}
				var all [][]byte
				for range 1000 {
					all = append(all, []byte("small"))
				}
				if err := producer.PutAll(t.Context(), all...); err != nil {
					t.Fatal(err)
				}
				for range 60 {
					if err := producer.Put(t.Context(), large); err != nil {
						t.Fatal(err)
					}
				}
				srv.ResetOps()
				q := newQueue(t, srv)
				seen := 0
				for range 1060 - others {
					seen += len(receive(t, q.Chan(), 1)[0])
				}
				if seen < 60*len(large) {
					t.Errorf("%d bytes were received", seen)
				}
				most := 0
				for _, op := range srv.Ops() {
					if op.Code == zkserver.OpMultiRead {
						most = max(most, len(op.Sub))
					}
				}
				if most < 2 || most > 16 {
					t.Errorf("one request has read %d messages, want at most 16", most)
				}
			})
		})
	}
}

// A message that is larger than the largest answer which the consumer's Manager receives is skipped:
// the other messages are delivered.
func TestTooLargeMessageIsSkipped(t *testing.T) {
	for kind, open := range threeQueues {
		for way, deliver := range deliveries {
			t.Run(fmt.Sprint(kind, way), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					producer, put := open(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, producer)
					putNow(t, put, "0")
					putNow(t, put, strings.Repeat("x", 8192))
					for i := 1; i < 5; i++ {
						putNow(t, put, fmt.Sprint(i))
					}
					q, _ := open(srv.Connect(t, session.WithMaxAnswer(4096)), usualPrefetch)
					want(t, deliver(t, q, 5), numbers(0, 5))
					if q.Skipped() != 1 || !errors.Is(q.Err(), session.ErrAnswerTooLarge) || !strings.Contains(fmt.Sprint(q.Err()), "qn-") {
						t.Errorf("skipped %d, Err: %v; want 1 and why", q.Skipped(), q.Err())
					}
					if data, ok, err := q.Peek(t.Context()); ok || !errors.Is(err, session.ErrAnswerTooLarge) {
						t.Errorf("Peek: %d bytes, %v, %v; want why there is nothing to see", len(data), ok, err)
					}
					closeQueue(t, q)
					large, _ := open(srv.Connect(t), usualPrefetch)
					defer closeQueue(t, large)
					if got := deliver(t, large, 1); len(got[0]) != 8192 {
						t.Errorf("another consumer got %d bytes, want the message of 8192", len(got[0]))
					}
				})
			})
		}
	}
}

// A slowLink is a connection whose reads are slow while slow is set.
type slowLink struct {
	net.Conn
	slow *atomic.Bool
}

func (c slowLink) Read(b []byte) (int, error) {
	if c.slow.Load() {
		time.Sleep(time.Second / 2)
		b = b[:min(len(b), 4<<10)]
	}
	return c.Conn.Read(b)
}

// slowManager connects a Manager whose connections are slow while slow is set.
func slowManager(t *testing.T, srv *zksynctest.Server, slow *atomic.Bool) *session.Manager {
	m := srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := srv.Dial(ctx, network, address)
		return slowLink{c, slow}, err
	}))
	live(t, m)
	return m
}

// A network that is too slow for a large message delays this message, and does not hold up the others. The channel
// delivers the large message when the network is fast again.
func TestSlowNetworkOnlyDelaysMessages(t *testing.T) {
	for kind, open := range threeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer, put := open(srv.Connect(t), usualPrefetch)
				defer closeQueue(t, producer)
				putNow(t, put, strings.Repeat("x", 900<<10))
				putNow(t, put, "small")
				var slow atomic.Bool
				m := slowManager(t, srv, &slow)
				q, _ := open(m, usualPrefetch)
				slow.Store(true)
				want(t, receive(t, q.Chan(), 1), []string{"small"})
				if q.Skipped() == 0 || !errors.Is(q.Err(), session.ErrAnswerTooSlow) {
					t.Errorf("skipped %d, Err: %v; want why the large message has not come", q.Skipped(), q.Err())
				}
				time.Sleep(10 * time.Minute)
				slow.Store(false)
				if got := receive(t, q.Chan(), 1); len(got[0]) != 900<<10 {
					t.Errorf("received %d bytes, want the large message", len(got[0]))
				}
				closeQueue(t, q)
			})
		})
	}
}

// A first message whose answer is too slow keeps neither Take nor Peek from the messages behind it.
func TestTakeBehindASlowMessage(t *testing.T) {
	for kind, open := range threeQueues {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				producer, put := open(srv.Connect(t), usualPrefetch)
				defer closeQueue(t, producer)
				putNow(t, put, strings.Repeat("x", 900<<10))
				putNow(t, put, "small")
				var slow atomic.Bool
				q, _ := open(slowManager(t, srv, &slow), usualPrefetch)
				defer closeQueue(t, q)
				slow.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				if data, ok, err := q.Peek(ctx); string(data) != "small" {
					t.Errorf("Peek: %.9q, %v, %v; want the small message", data, ok, err)
				}
				if data, err := q.Take(ctx); string(data) != "small" {
					t.Errorf("Take: %.9q, %v; want the small message", data, err)
				}
				slow.Store(false)
				if data, err := q.Take(ctx); len(data) != 900<<10 {
					t.Errorf("Take: %.9q, %v; want the large message", data, err)
				}
			})
		})
	}
}

// A listing whose answer is too slow again and again does not end the channel.
func TestSlowListingOnlyDelaysMessages(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 20_000)
		var slow atomic.Bool
		m := slowManager(t, srv, &slow)
		q := zksync.NewQueue(m, queuePath)
		slow.Store(true)
		q.Chan()
		time.Sleep(10 * time.Minute)
		slow.Store(false)
		want(t, receive(t, q.Chan(), 10), numbers(0, 10))
		closeQueue(t, q)
	})
}
