package queue

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksynctest"
)

const testQueue = "/queue"

// A harness is a queue on an embedded server.
type harness struct {
	*testing.T
	srv *zksynctest.Server
}

// inBubble runs a test in a bubble.
func inBubble(t *testing.T, test func(h harness)) {
	bounds.Bubble(t, func(t *testing.T) { test(harness{t, zksynctest.Start(t)}) })
}

// consumer returns a Consumer under a Manager.
func (h harness) consumer(m *session.Manager, prefetch int, kind Kind) *Consumer {
	h.Helper()
	removals := commit.New(m, kind.Child(testQueue, MarkersName), new(atomic.Bool))
	c := NewConsumer(Config{
		Manager: m, Path: testQueue, Kind: kind, Prefetch: prefetch, Removals: removals,
		MakeDir: func(ctx context.Context, s *session.Session, path string) error { return s.MakeDir(ctx, path) },
	})
	h.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if !c.isClosed() {
			c.Close(ctx)
		}
		removals.Close(ctx, ErrClosed)
	})
	return c
}

func (c *Consumer) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// put creates messages.
func (h harness) put(from, to int) {
	h.Helper()
	m := h.srv.Connect(h)
	s, err := m.Session(h.Context())
	if err != nil {
		h.Fatal(err)
	}
	if err := s.MakeDir(h.Context(), testQueue); err != nil {
		h.Fatal(err)
	}
	for i := from; i < to; i++ {
		if _, err := s.Create(h.Context(), testQueue+"/"+ItemPrefix, fmt.Append(nil, i), zk.FlagSequence); err != nil {
			h.Fatal(err)
		}
	}
	m.Close()
}

// messages starts to deliver, and returns the channel of deliveries.
func (h harness) messages(c *Consumer) <-chan *Delivery { return h.deliver(c, false) }

// acknowledged returns the messages that c delivers, each of which is acknowledged at its receipt.
func (h harness) acknowledged(c *Consumer) <-chan *Delivery { return h.deliver(c, true) }

func (h harness) deliver(c *Consumer, ack bool) <-chan *Delivery {
	ch := make(chan *Delivery)
	go func() {
		defer close(ch)
		c.Deliver(ack, func(ctx context.Context, d *Delivery) bool {
			select {
			case ch <- d:
				return true
			case <-d.Lost():
				return false
			case <-ctx.Done():
				return false
			}
		})
	}()
	return ch
}

// next receives a delivery, and fails the test if none comes or another one.
func (h harness) next(ch <-chan *Delivery, data string, attempts int) *Delivery {
	h.Helper()
	select {
	case d := <-ch:
		if d == nil {
			h.Fatalf("the channel was closed, want %q", data)
		}
		if string(d.Data) != data || d.Attempts != attempts {
			h.Fatalf("%q came, attempt %d, want %q, attempt %d", d.Data, d.Attempts, data, attempts)
		}
		return d
	case <-time.After(time.Hour):
		h.Fatalf("no message, want %q", data)
	}
	return nil
}

// none fails the test if a delivery comes within a time.
func (h harness) none(ch <-chan *Delivery, d time.Duration) {
	h.Helper()
	select {
	case m := <-ch:
		h.Errorf("%v came, want nothing for %v", m, d)
	case <-time.After(d):
	}
}

func (h harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// close closes a Consumer.
func (h harness) close(c *Consumer) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 5*time.Second)
	defer cancel()
	c.Close(ctx)
}

// wantLeft fails the test if other numbers of messages and ledgers are left.
func (h harness) wantLeft(messages, ledgers int) {
	h.Helper()
	synctest.Wait()
	count := func(path, prefix string) (n int) {
		names, _ := h.srv.Children(path)
		for _, name := range names {
			if strings.HasPrefix(name, prefix) {
				n++
			}
		}
		return n
	}
	if m, l := count(testQueue, ItemPrefix), count(testQueue+"/"+claimsName, ledgerPrefix); m != messages || l != ledgers {
		h.Errorf("%d messages and %d ledgers are left, want %d and %d\n%s", m, l, messages, ledgers, h.srv.Dump())
	}
	if idle := count(testQueue+"/"+idleName, idlePrefix); ledgers == 0 && idle > 0 {
		h.Errorf("%d contenders are left in the line of idle consumers", idle)
	}
}

// numbers are the numbers from a first to before a last one, as data.
func numbers(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}
