package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// events is an observer that keeps all events.
type events struct {
	mu  sync.Mutex
	all []any
}

func keep[T any](r *events) func(T) {
	return func(event T) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = append(r.all, event)
	}
}

func (r *events) observer() session.Observer {
	return session.Observer{
		StateChanged: keep[session.StateChange](r), RequestDone: keep[session.RequestDone](r), WaitEnded: keep[session.WaitEnded](r),
		HoldStarted: keep[session.HoldStarted](r), HoldEnded: keep[session.HoldEnded](r),
	}
}

func eventsOf[T any](r *events) (found []T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.all {
		if e, ok := e.(T); ok {
			found = append(found, e)
		}
	}
	return found
}

// An observer gets the states, the requests with their latency and class, the waits, and the holds, each of which
// ends once, with the cause if the hold was lost. Each of two observers gets all events. Breaks if any of the hooks
// is missing.
func TestObserver(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var r, second events
		m := connect(t, srv, three, session.WithObserver(r.observer()), session.WithObserver(second.observer()))
		s := current(t, m)
		srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, At: zkserver.BeforeCommit, Do: zkserver.Delay(50 * time.Millisecond)})
		s.Get(t.Context(), "/none")
		i := 0
		requests := eventsOf[session.RequestDone](&r)
		for i < len(requests) && requests[i].Op != "get" {
			i++
		}
		if i == len(requests) || requests[i].Path != "/none" || requests[i].Class != session.ClassNoNode || requests[i].Latency != 50*time.Millisecond || requests[i].Own {
			t.Errorf("requests %+v, want a get that took 50ms", requests)
		}

		released, lost := s.Lease(), s.Lease()
		for path, l := range map[string]*session.Lease{"/a/1": released, "/b/1": lost} {
			if err := s.MakeDir(t.Context(), path[:2]); err != nil {
				t.Fatal(err)
			}
			create(t, s, path, zk.FlagEphemeral)
			l.Own(path)
			if err := l.Grant(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		released.End()
		srv.ExpireSession(s.ID())
		<-s.Done()
		lost.End()
		started, ended := eventsOf[session.HoldStarted](&r), eventsOf[session.HoldEnded](&r)
		if len(started) != 2 || len(ended) != 2 {
			t.Fatalf("holds %+v, ends %+v, want two each", started, ended)
		}
		for _, e := range ended {
			if e.Duration != time.Second || e.Session != s.ID() || (e.Path == "/b") != errors.Is(e.Lost, session.ErrLost) || (e.Path == "/a") != (e.Lost == nil) {
				t.Errorf("end %+v, want that of /b to be a loss, after a second each", e)
			}
		}

		w := m.StartWait("lock", "/l", func(context.Context) error { return errors.New("for x") })
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.Cancelled(ctx)
		w.Stop()
		if waits := eventsOf[session.WaitEnded](&r); len(waits) != 1 || waits[0] != (session.WaitEnded{Op: "lock", Path: "/l", Duration: time.Second, Cancelled: true}) {
			t.Errorf("waits %+v", waits)
		}
		current(t, m)
		m.Close()
		var states []string
		for _, c := range eventsOf[session.StateChange](&r) {
			states = append(states, c.To.String())
		}
		if got := strings.Join(states, " "); got != "Connected Lost Connecting Connected Closed" && got != "Connected Suspended Lost Connecting Connected Closed" {
			t.Errorf("states %s", got)
		}
		if a, b := len(r.all), len(second.all); a != b {
			t.Errorf("%d and %d events, want the same", a, b)
		}
	})
}

// Without an observer, and with an observer that does nothing, a request allocates the same.
func TestAnObserverDoesNotAllocate(t *testing.T) {
	srv := zksynctest.Start(t)
	measure := func(opts ...session.Option) float64 {
		s := current(t, srv.Connect(t, opts...))
		return testing.AllocsPerRun(2000, func() {
			if err := s.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		})
	}
	var n int
	absent := measure()
	present := measure(session.WithObserver(session.Observer{RequestDone: func(e session.RequestDone) { n += len(e.Op) }}))
	if present > absent+0.5 {
		t.Errorf("%.1f allocations for each request with an observer, %.1f without", present, absent)
	}
}

// WithSlog writes the lines of the Manager, with their levels, fields and order.
func TestSlog(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var b bytes.Buffer
		m := connect(t, srv, "127.0.0.1:2181", session.WithSlog(slog.New(slog.NewTextHandler(&b, nil))))
		s := current(t, m)
		m.Logger().Debug("not shown")
		m.Close()
		want := fmt.Sprintf("level=INFO msg=connected server=127.0.0.1:2181 session=0x%x", uint64(s.ID()))
		if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "not shown") {
			t.Errorf("log %q, want %q", got, want)
		}
	})
	_, err := session.Connect(t.Context(), three, session.WithSlog(nil))
	mustBe(t, err, session.ErrInvalidOption)
}

// Stats shows the session, the requests, the holds and the waits, and the servers while there is no connection.
func TestStats(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		l := hold(t, s)
		var waits []*session.Wait
		for i := range 150 {
			waits = append(waits, m.StartWait("lock", fmt.Sprint("/", i), nil))
		}
		waits[0].Stop()
		waits[149].Stop()
		waits[75].Stop()
		for _, path := range []string{"/a", "/b"} {
			_, _, w, err := s.WatchExists(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			if path == "/b" {
				w.Stop()
			}
		}
		st := m.Stats()
		if st.Watches != 2 || st.IdleWatches != 1 {
			t.Errorf("%d watches, %d of them idle", st.Watches, st.IdleWatches)
		}
		if st.State != "Connected" || st.Session != fmt.Sprintf("0x%x", uint64(s.ID())) || st.Held != 1 || st.Connections != 1 || st.Requests == 0 || st.Server == "" || st.Servers != nil {
			t.Errorf("stats %+v", st)
		}
		if st.WaitCount != 147 || len(st.Waits) != 100 || st.Waits[0].Path != "/1" || st.Waits[99].Path != "/101" {
			t.Errorf("%d waits, %d listed: %v", st.WaitCount, len(st.Waits), st.Waits)
		}
		for _, w := range waits {
			w.Stop()
		}
		l.End()
		srv.Stop()
		time.Sleep(time.Minute)
		if st := m.Stats(); st.State == "Connected" || st.Lost != 1 || len(st.Servers) != 3 || st.WaitCount != 0 || st.Server != "" {
			t.Errorf("stats without a server %+v", st)
		}
	})
}

// Stats counts no hold of a Manager that was closed, although its holder has not released it.
func TestStatsOfAClosedManager(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		l := hold(t, current(t, m))
		defer l.End()
		m.Close()
		if st := m.Stats(); st.State != "Closed" || st.Held != 0 || st.Watches != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

// The reads of a stream are requests of a caller for the observer, with their path.
func TestReadsOfStreamsAreRequestsOfCallers(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		srv.Create("/config", []byte("x"))
		var mu sync.Mutex
		reads := 0
		m := srv.Connect(t, session.WithObserver(session.Observer{RequestDone: func(r session.RequestDone) {
			mu.Lock()
			defer mu.Unlock()
			if r.Op == "get" || r.Op == "children" || r.Op == "multi" {
				reads++
				if r.Own || r.Path != "/config" {
					t.Errorf("a read of the caller's stream is %+v", r)
				}
			}
		}}))
		in := current(t, m).NewInbox()
		defer in.Close()
		in.Data("/config", nil)
		in.Children("/config", nil)
		in.SyncQuorum("/config", nil)
		for answers := 0; answers < 3; {
			all, err := in.Receive(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range all {
				if d.Kind == session.InboxAnswer {
					answers++
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if reads != 3 {
			t.Errorf("%d reads were observed, want 3", reads)
		}
	})
}

// The Stats of a closed Manager have no watches, also while the last reads are still to return.
func TestStatsAfterCloseHaveNoWatches(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		session.PinWatch(current(t, m), "/a")
		if n := m.Stats().Watches; n != 1 {
			t.Errorf("%d watches before Close, want 1", n)
		}
		m.Close()
		if n := m.Stats().Watches; n != 0 {
			t.Errorf("%d watches after Close, want 0", n)
		}
	})
}
