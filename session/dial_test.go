package session_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// dials records the addresses that a Manager dials, and decides the result of each dial.
type dials struct {
	mu   sync.Mutex
	at   []time.Time
	all  []string
	then func(ctx context.Context, network, address string) (net.Conn, error)
}

func (d *dials) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.at, d.all = append(d.at, time.Now()), append(d.all, address)
	d.mu.Unlock()
	return d.then(ctx, network, address)
}

func (d *dials) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

func refuse(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }

func hang(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// The names of the connection string are resolved at each dial.
func TestNamesAreResolvedAtEachDial(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		d := &dials{then: srv.Dial}
		m := connect(t, srv, "zk.example.test,zk2.example.test:2182", session.WithDialer(d.dial))
		s := current(t, m)
		for range 5 {
			srv.Disconnect(s.ID())
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		all := d.seen()
		if len(all) != 6 {
			t.Errorf("%d dials, want 6", len(all))
		}
		for _, a := range all {
			if a != "zk.example.test:2181" && a != "zk2.example.test:2182" {
				t.Errorf("dialed %q, want a name as it was given", a)
			}
		}
	})
}

// A reconnect to a single server that runs takes no pause, and a client leaves dead servers for live ones.
func TestReconnectIsQuick(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, "127.0.0.1:2181")
		s := current(t, m)
		for range 10 {
			time.Sleep(2 * time.Second)
			srv.Disconnect(s.ID())
			within(t, 0, "the reconnect", func() {
				if err := s.Sync(t.Context(), "/"); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	for name, dead := range map[string]func(context.Context, string, string) (net.Conn, error){"refuse": refuse, "hang": hang, "silent": nil} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				if dead == nil {
					silent := zksynctest.Start(t)
					silent.HangHandshake(true)
					dead = silent.Dial
				}
				d := &dials{then: func(ctx context.Context, network, address string) (net.Conn, error) {
					if !strings.HasPrefix(address, "127.0.0.3:") {
						return dead(ctx, network, address)
					}
					return srv.Dial(ctx, network, address)
				}}
				m := connect(t, srv, three, session.WithDialer(d.dial))
				if n := len(d.seen()); n > 3 {
					t.Errorf("%d dials until the server that lives, want three at most", n)
				}
				s := current(t, m)
				for range 10 {
					before := len(d.seen())
					time.Sleep(time.Minute)
					srv.Disconnect(s.ID())
					if err := s.Sync(t.Context(), "/"); err != nil {
						t.Fatal(err)
					}
					if n := len(d.seen()) - before; n > 3 {
						t.Errorf("%d dials, want each server once at most", n)
					}
				}
				if s.Err() != nil {
					t.Error(s.Err())
				}
			})
		})
	}
}

// The pauses between rounds of failed dials grow, with jitter.
func TestBackoffGrowsWithJitter(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		d := &dials{then: refuse}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		_, err := session.Connect(ctx, three, session.WithDialer(d.dial))
		mustBe(t, err, context.DeadlineExceeded)
		if n := len(d.at); n < 80 || n > 300 {
			t.Errorf("%d attempts in two minutes, want about one a second", n)
		}
		var gaps []time.Duration
		for i := 1; i < len(d.at); i++ {
			gaps = append(gaps, d.at[i].Sub(d.at[i-1]))
		}
		if gaps[0] != 0 || gaps[1] != 0 {
			t.Errorf("pauses %v before all three were tried, want none", gaps[:2])
		}
		if slices.Max(gaps) > 1500*time.Millisecond {
			t.Errorf("a pause of %v, want at most 1.5s", slices.Max(gaps))
		}
		late := gaps[len(gaps)-20:]
		if slices.Min(late) < 500*time.Millisecond || slices.Min(late) == slices.Max(late) {
			t.Errorf("the last pauses are %v, want about a second, each a little different", late)
		}
		// Every server was tried as often as the others.
		for _, a := range strings.Split(three, ",") {
			n := 0
			for _, b := range d.all {
				if a == b {
					n++
				}
			}
			if n < len(d.all)/3-1 {
				t.Errorf("%s was tried %d times of %d", a, n, len(d.all))
			}
		}
	})
}

// A client does not flood a server that accepts connections and closes them.
func TestAServerThatHangsUpIsNotHammered(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		d := &dials{then: srv.Dial}
		m := connect(t, srv, "127.0.0.1:2181", session.WithDialer(d.dial))
		s := current(t, m)
		stop := time.Now().Add(time.Minute)
		for time.Now().Before(stop) {
			srv.Disconnect(s.ID())
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(d.seen()); n > 60*60 {
			t.Errorf("%d connections in a minute", n)
		}
	})
}

// Without a server Connect ends with its ctx, at once, and its error has the outcome of the attempts for each server.
func TestConnectWithoutServers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		d := &dials{then: func(ctx context.Context, network, address string) (net.Conn, error) {
			switch {
			case strings.HasPrefix(address, "127.0.0.1:"):
				return nil, errors.New("no route to this host")
			case strings.HasPrefix(address, "127.0.0.2:"):
				return hang(ctx, network, address)
			}
			return srv.Dial(ctx, network, address)
		}}
		srv.HangHandshake(true)
		for _, patience := range []time.Duration{0, time.Millisecond, time.Second, timeout / 3, 30 * time.Second} {
			cause := errors.New("the caller's cause")
			ctx, cancel := context.WithTimeoutCause(t.Context(), patience, cause)
			var err error
			within(t, patience, "Connect", func() { _, err = session.Connect(ctx, three, session.WithDialer(d.dial)) })
			cancel()
			mustBe(t, err, context.DeadlineExceeded, cause)
			for _, a := range strings.Split(three, ",") {
				if !strings.Contains(err.Error(), a) {
					t.Errorf("error %v does not name %s", err, a)
				}
			}
			if patience < 30*time.Second {
				continue
			}
			for _, what := range []string{"no route to this host", "the handshake was not answered within"} {
				if !strings.Contains(err.Error(), what) {
					t.Errorf("error %v does not say %q", err, what)
				}
			}
		}
	})
}

// A dialer that returns neither a connection nor an error counts as a failed dial, and the error says so.
func TestDialerThatReturnsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := session.Connect(ctx, three, session.WithDialer(func(context.Context, string, string) (net.Conn, error) { return nil, nil }))
		if err == nil || !strings.Contains(err.Error(), "the dialer returned neither") {
			t.Errorf("error %v", err)
		}
	})
}

// Over TCP, Connect leaves a silent server and an unused port for a server that answers.
func TestConnectPastDeadServersOverTCP(t *testing.T) {
	srv := zksynctest.Start(t, zksynctest.WithTick(500*time.Millisecond))
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	stopped := zksynctest.Start(t)
	list := strings.Join([]string{silent.Addr().String(), stopped.Addr(), srv.Addr()}, ",")
	stopped.Stop()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			start := time.Now()
			m, err := session.Connect(ctx, list, session.WithTimeout(3*time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			if took := time.Since(start); took > 1700*time.Millisecond {
				t.Errorf("connected after %v, want about a third of the timeout at most", took)
			}
			m.Close()
		})
	}
	wg.Wait()
}
