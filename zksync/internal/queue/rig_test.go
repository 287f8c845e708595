package queue

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A rig is a queue on a server. Its tests carry out the steps of consumers one by one.
type rig struct {
	*testing.T
	srv *zksynctest.Server
}

// A tester is a consumer whose steps a test carries out.
type tester struct {
	rig
	*Consumer
	v *view
}

// withRig runs a test in a bubble, with a queue of n messages at /q.
func withRig(t *testing.T, n int, test func(r rig)) {
	bounds.Bubble(t, func(t *testing.T) {
		r := rig{t, zksynctest.Start(t)}
		r.must(r.srv.Create("/q", nil))
		for i := range n {
			r.put(i)
		}
		test(r)
	})
}

func (r rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func itemName(i int) string { return fmt.Sprintf("%s%010d", ItemPrefix, i) }

func (r rig) put(i int) {
	r.Helper()
	r.must(r.srv.Create("/q/"+itemName(i), fmt.Append(nil, i)))
}

func (r rig) exists(path string) bool {
	_, ok := r.srv.Get(path)
	return ok
}

// open opens a consumer. If claims, the consumer has a ledger.
func (r rig) open(k Kind, claims bool, opts ...session.Option) *tester {
	r.Helper()
	m := r.srv.Connect(r.T, opts...)
	removals := commit.New(m, "/q/"+MarkersName, new(atomic.Bool))
	makeDir := func(ctx context.Context, s *session.Session, path string) error { return s.MakeDir(ctx, path) }
	c := &tester{rig: r, Consumer: NewConsumer(Config{Manager: m, Path: "/q", Kind: k, Prefetch: 128, Removals: removals, MakeDir: makeDir})}
	r.Cleanup(func() {
		c.close()
		removals.Close(context.Background(), ErrClosed)
	})
	s, err := m.Session(r.Context())
	r.must(err)
	c.v = c.viewOf(s)
	if claims {
		_, err = c.openClaims(r.Context(), c.v)
		r.must(err)
	}
	return c
}

// close closes the consumer.
func (c *tester) close() {
	select {
	case <-c.closed:
	default:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c.Close(ctx)
	}
}

// die ends the session of the consumer.
func (c *tester) die() {
	c.Helper()
	c.must(c.srv.ExpireSession(c.v.s.ID()))
	<-c.v.s.Done()
}

// forgetOrder makes the consumer read the order znode again.
func (c *tester) forgetOrder() { c.v.order.forget(c.v.order.known()) }

// pick picks messages.
func (c *tester) pick(most int) selection {
	c.Helper()
	sel, err := c.v.next(c.Context(), func(int, int) int { return most }, nil, false)
	c.must(err)
	return sel
}

// one is a quota of one message.
func one(int, int) int { return 1 }

// claim claims picked messages, and reads them.
func (c *tester) claim(sel selection) ([]*Delivery, bool) {
	c.Helper()
	if len(sel.refs) == 0 {
		c.Fatal("there is no message to claim")
	}
	done, err := c.ledger.claim(func(*orderState, int) selection { return sel }, nil, &idleLine{v: c.v})
	if err == errConflict {
		return nil, false
	}
	c.must(err)
	c.v.order.watchLedgers()
	return c.read(done.all), true
}

// read reads claimed messages.
func (c *tester) read(all []*Delivery) (found []*Delivery) {
	c.Helper()
	reader := &messageReader{v: c.v}
	for len(all) > 0 {
		some, unread, err := reader.read(c.Context(), all, nil)
		c.must(err)
		found, all = append(found, some...), unread
	}
	return found
}

// receive claims and reads messages.
func (c *tester) receive(most int) []*Delivery {
	c.Helper()
	for range 10 {
		if all, ok := c.claim(c.pick(most)); ok {
			return all
		}
	}
	c.Fatal("the claim failed again and again")
	return nil
}

// state reads the order znode.
func (c *tester) state() *orderState {
	c.Helper()
	path, err := c.v.order.open(c.Context())
	c.must(err)
	st, err := c.v.order.read(c.Context(), path)
	c.must(err)
	return st
}

// wantNames fails the test if the ledger has another number of names.
func (c *tester) wantNames(n int) {
	c.Helper()
	data, _ := c.srv.Get(c.ledger.path)
	if names, err := LedgerNames(data); err != nil || len(names) != n {
		c.Errorf("the ledger has the names %v (%v), want %d", names, err, n)
	}
}

func itemData(i int) string { return fmt.Sprint(i) }
