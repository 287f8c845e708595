package zksynctest_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// sessionOf returns the session of a Manager.
func sessionOf(t *testing.T, m *session.Manager) *session.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A client whose link is cut loses its hold before another client gets the lock, gets no new
// session until the link is healed, and then works again.
func TestLinkCutsAClientOff(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		link := srv.NewLink(t)
		m := link.Connect(t, session.WithTimeout(10*time.Second))
		mine, theirs := zksync.NewMutex(m, "/locks/a"), zksync.NewMutex(srv.Connect(t), "/locks/a")
		held, err := mine.LockContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first := sessionOf(t, m)

		link.Cut()
		if err := theirs.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if held.Err() == nil {
			t.Error("two clients hold the lock")
		}
		time.Sleep(time.Hour)
		if n := len(srv.Sessions()); n != 1 || m.State() == session.Connected {
			t.Errorf("%d sessions, want that of the other client alone; the Manager is %v", n, m.State())
		}

		link.Heal()
		if s := sessionOf(t, m); s.ID() == first.ID() {
			t.Error("the lost session is back")
		}
		if err := mine.Unlock(); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Unlock: %v, want ErrLost", err)
		}
		if err := theirs.Unlock(); err != nil {
			t.Error(err)
		}
		if err := mine.Lock(t.Context()); err != nil {
			t.Errorf("Lock after the cut: %v", err)
		}
	})
}

// A session survives a cut that is shorter than its timeout, and a Reset.
func TestLinkKeepsTheSession(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		link := srv.NewLink(t)
		m := link.Connect(t, session.WithTimeout(10*time.Second))
		s := sessionOf(t, m)
		for name, fault := range map[string]func(){
			"cut":   func() { link.Cut(); time.Sleep(2 * time.Second); link.Heal() },
			"reset": link.Reset,
		} {
			fault()
			if _, _, err := s.Exists(t.Context(), "/"); err != nil {
				t.Errorf("after a %s: %v", name, err)
			}
		}
		if now := sessionOf(t, m); now.ID() != s.ID() {
			t.Errorf("session %#x, want %#x still", now.ID(), s.ID())
		}
	})
}

// Delay makes a round trip longer by twice the delay, and does not divide the throughput.
func TestLinkDelay(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		const delay = 50 * time.Millisecond
		srv := zksynctest.Start(t)
		link := srv.NewLink(t)
		s := sessionOf(t, link.Connect(t))
		link.Delay(delay)
		began := time.Now()
		answers := make(chan error)
		for range 100 {
			go func() {
				_, _, err := s.Exists(t.Context(), "/")
				answers <- err
			}()
		}
		for range 100 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took < 2*delay || took > 3*delay {
			t.Errorf("100 requests at once take %v, want about %v", took, 2*delay)
		}
		link.Delay(0)
		began = time.Now()
		if _, _, err := s.Exists(t.Context(), "/"); err != nil || time.Since(began) > 0 {
			t.Errorf("after the delay: %v, %v", time.Since(began), err)
		}
	})
}

// A Link to an ensemble connects to all its servers.
func TestLinkToAnEnsemble(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		e := zksynctest.StartEnsemble(t, 3)
		m := e.NewLink(t).Connect(t)
		s := sessionOf(t, m)
		for i := 1; i <= 2; i++ {
			e.Kill(i)
			e.WaitReady()
			if err := s.SyncQuorum(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			e.Start(i)
			e.WaitReady()
		}
	})
}

// A Link also connects to real servers.
func TestLinkToARealServer(t *testing.T) {
	t.Parallel()
	e := zksynctest.RealShared(t)
	link := zksynctest.NewLink(new(net.Dialer).DialContext)
	t.Cleanup(func() {
		if err := link.Close(); err != nil {
			t.Error(err)
		}
	})
	m := e.Connect(t, session.WithTimeout(2*time.Second), session.WithDialer(link.Dial))
	first := sessionOf(t, m)
	mu := zksync.NewMutex(m, "/link/"+t.Name())
	held, err := mu.LockContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	link.Cut()
	<-held.Done()
	link.Heal()
	if err := mu.Unlock(); !errors.Is(err, zksync.ErrLost) {
		t.Errorf("Unlock: %v, want ErrLost", err)
	}
	<-first.Done()
	if again := sessionOf(t, m); again.ID() == first.ID() {
		t.Error("the lost session is back")
	}
}

// A client behind a Link learns of the end of its session as soon as a client without a Link.
func TestLinkPassesTheCloseOfTheServer(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		s := sessionOf(t, srv.NewLink(t).Connect(t, session.WithTimeout(30*time.Second)))
		began := time.Now()
		if err := srv.ExpireSession(s.ID()); err != nil {
			t.Fatal(err)
		}
		<-s.Done()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the client learned of the end of its session after %v", took)
		}
	})
}
