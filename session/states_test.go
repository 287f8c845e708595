package session_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// States reports the present state and each change, in order, and is closed after Closed.
func TestStatesInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		states := m.States(t.Context())
		expect := func(what string, want ...session.State) {
			t.Helper()
			for _, w := range want {
				if got := <-states; got != w {
					t.Fatalf("%s: %v, want %v of %v", what, got, w, want)
				}
			}
			if got := m.State(); got != want[len(want)-1] {
				t.Errorf("%s: State is %v, want %v", what, got, want[len(want)-1])
			}
		}
		expect("at first", session.Connected)
		srv.Stop()
		expect("server stopped", session.Suspended)
		srv.Start()
		expect("server started", session.Connected)
		srv.Partition(current(t, m).ID())
		expect("partition", session.Suspended)
		// A reader that is not scheduled in time would find Connected in place of Connecting.
		srv.HangHandshake(true)
		expect("time passed", session.Lost, session.Connecting)
		srv.HangHandshake(false)
		expect("another session", session.Connected)
		srv.HangHandshake(true)
		srv.ExpireSession(current(t, m).ID())
		expect("expired", session.Suspended)
		time.Sleep(time.Minute)
		m.Close()
		for _, w := range []session.State{session.Lost, session.Connecting, session.Closed} {
			// Lost waits for its reader; Connecting was overtaken by Closed.
			if w == session.Connecting {
				continue
			}
			if got := <-states; got != w {
				t.Fatalf("%v, want %v", got, w)
			}
		}
		if got, open := <-states; open {
			t.Errorf("%v behind Closed, want a closed channel", got)
		}
	})
}

// A slow reader of States gets the newest state, and never misses Lost or Closed.
func TestSlowReaderOfStates(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		slow := m.States(t.Context())
		for range 1000 {
			if err := srv.Disconnect(current(t, m).ID()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(5 * time.Second)
		}
		if got := <-slow; got != session.Connected {
			t.Errorf("after 1000 reconnects %v, want Connected", got)
		}
		select {
		case st := <-slow:
			t.Errorf("%v behind the newest state", st)
		default:
		}
		for range 200 {
			if err := srv.ExpireSession(current(t, m).ID()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			time.Sleep(5 * time.Second)
		}
		m.Close()
		var got []session.State
		for st := range slow {
			got = append(got, st)
		}
		if want := []session.State{session.Lost, session.Closed}; !slices.Equal(got, want) {
			t.Errorf("read behind 200 expiries and Close: %v, want %v", got, want)
		}
	})
}

// Readers that keep up or fall behind at random see only possible transitions, end with Closed, and see at least one
// Lost if a session was lost.
func TestStatesUnderQuickChanges(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		const readers = 8
		seen := make(chan []session.State)
		for i := range readers {
			states := m.States(t.Context())
			go func() {
				var all []session.State
				for st := range states {
					all = append(all, st)
					time.Sleep(time.Duration(i) * 300 * time.Millisecond)
				}
				seen <- all
			}()
		}
		const rounds = 334 // three changes each, at least
		for i := range rounds {
			id := current(t, m).ID()
			if i%3 == 0 {
				srv.ExpireSession(id)
			} else {
				srv.Disconnect(id)
			}
			synctest.Wait()
			time.Sleep(50 * time.Millisecond)
		}
		m.Close()
		for range readers {
			all := <-seen
			if len(all) == 0 || all[len(all)-1] != session.Closed {
				t.Fatalf("states %v, want Closed at the end", all)
			}
			if !slices.Contains(all, session.Lost) {
				t.Errorf("%d states without a Lost", len(all))
			}
			for i := 1; i < len(all); i++ {
				if all[i] == all[i-1] && all[i] != session.Suspended && all[i] != session.Connected && all[i] != session.Lost {
					t.Errorf("%v twice in a row", all[i])
				}
				if all[i-1] == session.Closed {
					t.Errorf("%v behind Closed", all[i])
				}
			}
		}
	})
}

// The channel of States is closed when its ctx ends.
func TestStatesEndWithTheirContext(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		ctx, cancel := context.WithCancel(t.Context())
		states := m.States(ctx)
		<-states
		cancel()
		if st, open := <-states; open {
			t.Errorf("%v after ctx has ended, want a closed channel", st)
		}
		m.Close()
		late := m.States(t.Context())
		if st := <-late; st != session.Closed {
			t.Errorf("of a closed Manager: %v, want Closed", st)
		}
		if _, open := <-late; open {
			t.Error("the channel stays open behind Closed")
		}
	})
}

// onMessage is a logger that calls f for every message, in the goroutine that logs.
func onMessage(f func(msg string)) *zap.Logger {
	core := zapcore.NewNopCore()
	return zap.New(hooked{core, f})
}

type hooked struct {
	zapcore.Core
	f func(string)
}

func (hooked) Enabled(zapcore.Level) bool { return true }

func (h hooked) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, h)
}

func (h hooked) Write(e zapcore.Entry, _ []zapcore.Field) error {
	h.f(e.Message)
	return nil
}

// A connection that breaks at its first use is reported as Suspended, whether its reader or its writer notices first.
func TestStateOfAConnectionThatBreaksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var slow atomic.Bool
		log := onMessage(func(msg string) {
			if slow.Load() && msg == "connected" {
				srv.Stop()
				time.Sleep(timeout / 2) // the reader; a ping makes the writer notice
			}
		})
		m := connect(t, srv, three, session.WithLogger(log))
		s := current(t, m)
		slow.Store(true)
		srv.Disconnect(s.ID())
		time.Sleep(timeout * 6 / 10)
		if st := m.State(); st != session.Suspended {
			t.Errorf("%v though there is no connection, want Suspended", st)
		}
		slow.Store(false)
		srv.Start()
		if _, _, err := s.Get(t.Context(), "/"); err != nil {
			t.Error(err)
		}
	})
}

// Every State has its name, and an unknown one its number.
func TestStateNames(t *testing.T) {
	for st, want := range map[session.State]string{
		session.Connecting: "Connecting", session.Connected: "Connected", session.Suspended: "Suspended",
		session.Lost: "Lost", session.Closed: "Closed", session.State(9): "State(9)",
	} {
		if got := st.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
