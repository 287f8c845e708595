package faults

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A client is one Manager and its lock.
type client struct {
	s       *stage
	name    string
	session string // its first session
	m       *session.Manager
	mu      *zksync.Mutex
	server  atomic.Int64 // server that dial connects to, if the client has one server
}

// connect opens a session with the given servers, for a client called name. If it has one server,
// move can later connect it to another server.
func (s *stage) connect(name string, timeout time.Duration, servers ...int) *client {
	s.t.Helper()
	c := &client{s: s, name: name}
	opts := []session.Option{session.WithTimeout(timeout)}
	if len(servers) == 1 {
		c.server.Store(int64(servers[0]))
		opts = append(opts, session.WithDialer(c.dial))
	}
	var addrs []string
	for _, i := range servers {
		addrs = append(addrs, s.e.Addr(i))
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var err error
	if c.m, err = session.Connect(ctx, strings.Join(addrs, ","), opts...); err != nil {
		s.t.Fatalf("connect client %s to servers %v: %v", name, servers, err)
	}
	s.t.Cleanup(func() { c.m.Close() })
	c.mu = zksync.NewMutex(c.m, s.path())
	sess, err := c.m.Session(ctx)
	if err != nil {
		s.t.Fatalf("session of client %s: %v", name, err)
	}
	c.session = fmt.Sprintf("at first session %#x with T = %v, on servers %v", sess.ID(), sess.Timeout(), servers)
	return c
}

// dial connects to the one server of the client, and ignores the address.
func (c *client) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, c.s.e.Addr(int(c.server.Load())))
}

// move breaks the client's connection and waits until the client is connected to
// another server.
func (c *client) move(to int) {
	c.s.t.Helper()
	ctx, cancel := context.WithTimeout(c.s.t.Context(), patience)
	defer cancel()
	sess, err := c.m.Session(ctx)
	if err != nil {
		c.s.t.Fatalf("session of client %s: %v", c.name, err)
	}
	before := sess.Connection()
	from := c.server.Swap(int64(to))
	c.s.e.Reset(zksynctest.Client, int(from))
	c.s.until("client "+c.name+" to reconnect", func() bool {
		now := sess.Connection()
		return now != 0 && now != before || sess.Err() != nil
	})
	c.s.note(time.Now(), "%s moved from server %d to server %d", c, from, to)
}

// String describes the client in a timeline.
func (c *client) String() string { return fmt.Sprintf("client %s (%s)", c.name, c.session) }

// current describes the client's session of this moment.
func (c *client) current() string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	sess, err := c.m.Session(ctx)
	if err != nil {
		return fmt.Sprintf("no session that is connected (%v)", c.m.State())
	}
	return fmt.Sprintf("session %#x", sess.ID())
}

// A hold is a lock that a client has acquired.
type hold struct {
	granted time.Time
	ended   chan time.Time // receives the end of the held context, once
}

// lock waits for the lock in the background. The channel receives the hold, or is closed if the
// client gives up.
func (c *client) lock() <-chan hold {
	got := make(chan hold, 1)
	ctx, cancel := context.WithTimeout(c.s.t.Context(), patience+3*c.s.size.timeout)
	done := make(chan struct{})
	c.s.t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		defer close(got)
		held, err := c.mu.LockContext(ctx)
		granted := time.Now()
		if err != nil {
			c.s.note(granted, "client %s did not get the lock: %v", c.name, err)
			return
		}
		h := hold{granted: granted, ended: make(chan time.Time, 1)}
		context.AfterFunc(held, func() {
			now := time.Now()
			c.s.note(now, "%s: the held context ended: %v", c, context.Cause(held))
			h.ended <- now
		})
		got <- h
		token, _ := zksync.Token(held)
		c.s.note(granted, "%s got the lock, token %#x, under %s", c, token, c.current())
	}()
	return got
}

// inLine waits until the client is in line for the lock behind another client.
func (c *client) inLine() {
	c.s.t.Helper()
	c.s.until("client "+c.name+" to stand in line", func() bool {
		return c.contenders() == 2
	})
}

// contenders returns the number of znodes in line for the lock, or -1 if no server answers.
func (c *client) contenders() int {
	ctx, cancel := context.WithTimeout(c.s.t.Context(), time.Second)
	defer cancel()
	n := -1
	_ = c.m.Do(ctx, func(ctx context.Context, sess *session.Session) error {
		names, _, err := sess.Children(ctx, c.s.path())
		if err == nil {
			n = len(names)
		}
		return err
	})
	return n
}
