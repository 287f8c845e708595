package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// keepAll receives messages until no more come, and settles none of them.
func keepAll(ch <-chan *zksync.Message) (kept []*zksync.Message) {
	for {
		select {
		case msg := <-ch:
			kept = append(kept, msg)
		case <-time.After(time.Minute):
			return kept
		}
	}
}

// WithPrefetch limits the messages that are claimed and not settled, received messages
// included: each Ack or Nack makes room for one more (stream.go: the
// window in waitForRoom).
func TestPrefetchLimitsUnsettledMessages(t *testing.T) {
	for name, c := range map[string]struct {
		opts  []zksync.QueueOption
		limit int
	}{
		"default": {nil, 128},
		"1":       {[]zksync.QueueOption{zksync.WithPrefetch(1)}, 1},
		"10":      {[]zksync.QueueOption{zksync.WithPrefetch(10)}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 500)
				q := newQueue(t, srv, c.opts...)
				kept := keepAll(q.Messages())
				if len(kept) != c.limit {
					t.Errorf("%d messages were received and none was settled, want %d", len(kept), c.limit)
				}
				wantLeft(t, srv, 500, c.limit)
				ack(t, kept[0])
				if more := keepAll(q.Messages()); len(more) != 1 || string(more[0].Data) != fmt.Sprint(c.limit) {
					t.Errorf("%d messages came after one Ack, want one: %d", len(more), c.limit)
				}
				wantLeft(t, srv, 499, c.limit)
				if c.limit == 1 {
					return
				}
				nack(t, kept[1])
				next(t, q.Messages(), "1")
				closeQueue(t, q)
				wantLeft(t, srv, 499, 0)
			})
		})
	}
}

// The Takes of a value do not use up the prefetch of its channel.
func TestPrefetchBesideTakes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		q := newQueue(t, srv, zksync.WithPrefetch(1))
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			background(ctx, func(ctx context.Context) error { _, err := q.Take(ctx); return err })
		}
		messages := q.Messages()
		offer(t, srv.Connect(t), queuePath, 0, 4)
		synctest.Wait()
		cancel()
		if got := keepAll(messages); len(got) != 1 {
			t.Errorf("%d messages, want 1", len(got))
		}
		closeQueue(t, q)
	})
}

// The transaction that closes a session stays small, however many messages the values
// of the session have claimed, because each value has one ephemeral for all its claims
// (ledger.go: openLedger).
func TestPrefetchOfManyValues(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const values = 6
		m, producer := srv.Connect(t), srv.Connect(t)
		long := "/" + strings.Repeat("q", 200)
		claims := func() (bytes int) {
			for i := range values {
				names, _ := srv.Children(fmt.Sprint(long, i, "/zksync-claims"))
				for _, name := range names {
					bytes += len(long) + len("1/zksync-claims/") + len(name) + 4
				}
			}
			return bytes
		}
		var all []*zksync.Message
		for i := range values {
			path := fmt.Sprint(long, i)
			offer(t, producer, path, 0, 1100)
			q := zksync.NewQueue(m, path, zksync.WithPrefetch(1024))
			defer q.Close()
			got := keepAll(q.Messages())
			if len(got) == 0 {
				t.Errorf("the value %d received nothing", i)
			}
			all = append(all, got...)
		}
		if n := claims(); n == 0 || n > 100<<10 {
			t.Errorf("the claims of the session are %d bytes, want at most 100 kB", n)
		}
		before := len(all)
		for _, msg := range all[:100] {
			ack(t, msg)
		}
		if n := claims(); n > 100<<10 || before < 100 {
			t.Errorf("then %d bytes, want at most 100 kB", n)
		}
	})
}

// Takes that come and go beside a channel never give its value more claims than
// WithPrefetch allows.
func TestPrefetchBesideManyTakes(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1000)
		q := newQueue(t, srv, zksync.WithPrefetch(1))
		first := next(t, q.Messages(), "0")
		for range 16 {
			go func() {
				for {
					if _, ok, err := q.TryTake(t.Context()); !ok || err != nil {
						return
					}
				}
			}()
		}
		if more := keepAll(q.Messages()); len(more) > 0 {
			t.Errorf("%d more messages, though the first is not settled", len(more))
		}
		ack(t, first)
		closeQueue(t, q)
	})
}

// The transaction that closes a session stays small if many values of the session
// wait, and get messages at one moment (ledger.go: openLedger).
func TestPrefetchOfManyValuesAtOneMoment(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		const values = 100
		m, producer := srv.Connect(t), srv.Connect(t)
		long := "/" + strings.Repeat("q", 400)
		for i := range values {
			q := zksync.NewQueue(m, fmt.Sprint(long, i))
			defer q.Close()
			q.Messages() // nothing is received
		}
		synctest.Wait() // all wait
		for i := range values {
			p := zksync.NewQueue(producer, fmt.Sprint(long, i))
			defer p.Close()
			go p.PutAll(t.Context(), make([][]byte, 20)...)
		}
		synctest.Wait()
		bytes := 0
		for i := range values {
			dir := fmt.Sprint(long, i, "/zksync-claims/")
			names, _ := srv.Children(strings.TrimSuffix(dir, "/"))
			if len(names) == 0 {
				t.Errorf("the value %d has claimed nothing", i)
			}
			for _, name := range names {
				bytes += len(dir) + len(name) + 4
			}
		}
		if bytes == 0 || bytes > 100<<10 {
			t.Errorf("the claims of the session are %d bytes, want at most 100 kB", bytes)
		}
	})
}

// A number that would let a session grow too large is refused, with the valid range.
func TestPrefetchIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		for _, n := range []int{-1, 0, 100_001, 1_000_000} {
			q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(n))
			if _, ok := <-q.Messages(); ok {
				t.Errorf("a message with WithPrefetch(%d)", n)
			}
			if err := q.Err(); !errors.Is(err, session.ErrInvalidOption) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%d, want 1 to 100000", n)) {
				t.Error("Err:", err)
			}
			closeQueue(t, q)
		}
	})
}
