package zkserver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// expiresAt waits for the end of the only session of s, and returns the time of the end since
// began.
func expiresAt(t *testing.T, s *zkserver.Server, began time.Time) time.Duration {
	t.Helper()
	for len(s.Sessions()) > 0 {
		if time.Sleep(100 * time.Millisecond); time.Since(began) > time.Minute {
			t.Fatal("the session does not expire")
		}
		synctest.Wait() // for the other actions of this instant
	}
	return time.Since(began)
}

// The leader hears of a session at once from its own clients and from reconnects. All other touches
// at a follower, forwarded requests included, reach the leader with the follower's next report, or
// never.
func TestWhatTouchesASession(t *testing.T) {
	// The followers report at 1 s; the session then lives until 6 s. With a touch at 1.6 s it lives
	// until 8 s.
	const silent, touched = 6 * time.Second, 8 * time.Second
	request := func(op zkserver.OpCode, body []byte) func(*zkserver.Server, *raw, int) {
		return func(_ *zkserver.Server, r *raw, _ int) { r.want(0, op, body) }
	}
	refused := func(s *zkserver.Server, r *raw, _ int) {
		s.Inject(zkserver.Fault{Op: zkserver.OpAuth, At: zkserver.BeforeCommit, Do: zkserver.Error(zkserver.ErrAuthFailed)})
		r.want(zkserver.ErrAuthFailed, zkserver.OpAuth, rec{}.i32(0).str("digest").str("a:b"))
	}
	reconnect := func(s *zkserver.Server, r *raw, i int) { r.moved(s, i).welcome() }
	for _, c := range []struct {
		name     string
		endpoint int
		do       func(*zkserver.Server, *raw, int)
		cut      bool // cut off the follower before its next report
		want     time.Duration
	}{
		{"nothing", 1, func(*zkserver.Server, *raw, int) {}, false, silent},
		{"ping to a follower", 1, request(zkserver.OpPing, nil), false, touched},
		{"ping to a follower that is cut off", 1, request(zkserver.OpPing, nil), true, silent},
		{"sync with a follower that is cut off", 1, request(zkserver.OpSync, rec{}.str("/")), true, silent},
		{"write to a follower", 1, request(zkserver.OpSetData, setRec("/")), false, touched},
		{"write to a follower that is cut off", 1, request(zkserver.OpSetData, setRec("/")), true, silent},
		{"reconnect to a follower that is cut off", 1, reconnect, true, touched},
		{"reconnect to another follower that is cut off", 2, reconnect, true, touched},
		{"ping to the leader", 3, request(zkserver.OpPing, nil), false, touched},
		{"write to the leader", 3, request(zkserver.OpSetData, setRec("/")), false, touched},
		{"reconnect to the leader", 3, reconnect, false, touched},
		{"auth with the leader", 3, request(zkserver.OpAuth, rec{}.i32(0).str("digest").str("a:b")), false, silent},
		{"refused auth with the leader", 3, refused, false, silent},
		{"auth with a follower", 1, request(zkserver.OpAuth, rec{}.i32(0).str("digest").str("a:b")), false, silent},
	} {
		t.Run(c.name, func(t *testing.T) {
			three(t, func(t *testing.T, s *zkserver.Server) {
				began := time.Now()
				from := c.endpoint
				if from == 2 {
					from = 1
				}
				r := at(t, s, from, 4500*time.Millisecond)
				time.Sleep(1600 * time.Millisecond)
				c.do(s, r, c.endpoint)
				synctest.Wait()
				if c.cut {
					s.Endpoint(c.endpoint).CutFromLeader()
				}
				if at := expiresAt(t, s, began); at != c.want {
					t.Errorf("the session expired at %v, want %v", at, c.want)
				}
			})
		})
	}
}

// The commit of a new session leaves a touch at every follower, which the followers report.
func TestEveryFollowerReportsANewSession(t *testing.T) {
	for _, cut := range []bool{false, true} {
		three(t, func(t *testing.T, s *zkserver.Server) {
			began := time.Now()
			time.Sleep(1400 * time.Millisecond)
			at(t, s, 3, 4500*time.Millisecond) // lives until 6 s, and until 8 s with a report at 2 s
			want := 8 * time.Second
			if cut {
				want = 6 * time.Second
				s.Endpoint(1).CutFromLeader()
				if err := s.Endpoint(2).Restart(); err != nil {
					t.Fatal(err)
				}
				if s.Leader() != 3 {
					t.Fatalf("endpoint %d leads", s.Leader())
				}
			}
			if at := expiresAt(t, s, began); at != want {
				t.Errorf("cut off %v: the session expired at %v, want %v", cut, at, want)
			}
		})
	}
}

// LoseTouches loses one touch of a session with each report: one of two touches in the same half
// tick is reported.
func TestLoseTouches(t *testing.T) {
	for pings, want := range []time.Duration{6 * time.Second, 6 * time.Second, 8 * time.Second, 8 * time.Second} {
		three(t, func(t *testing.T, s *zkserver.Server) {
			began := time.Now()
			r := at(t, s, 1, 4500*time.Millisecond)
			s.LoseTouches(r.id, true)
			time.Sleep(1600 * time.Millisecond)
			for range pings {
				r.want(0, zkserver.OpPing, nil)
			}
			if at := expiresAt(t, s, began); at != want {
				t.Errorf("%d pings: the session expired at %v, want %v", pings, at, want)
			}
		})
	}
	three(t, func(t *testing.T, s *zkserver.Server) {
		began := time.Now()
		r := at(t, s, 1, 4500*time.Millisecond)
		s.LoseTouches(r.id, true)
		s.LoseTouches(r.id, false)
		time.Sleep(1600 * time.Millisecond)
		r.want(0, zkserver.OpPing, nil)
		if at := expiresAt(t, s, began); at != 8*time.Second {
			t.Errorf("switched off: the session expired at %v, want 8s", at)
		}
	})
}

// Sessions live and expire correctly with ticks from half their timeout to a twentieth of it.
func TestTicksFromHalfTheTimeoutToATwentieth(t *testing.T) {
	const timeout = 6 * time.Second
	for parts := time.Duration(2); parts <= 20; parts++ {
		for _, endpoint := range []int{1, 3} {
			ensemble(t, 3, zkserver.Config{TickTime: timeout / parts}, func(t *testing.T, s *zkserver.Server) {
				tick := timeout / parts
				r := at(t, s, endpoint, timeout)
				if got := time.Duration(r.timeout) * time.Millisecond; got != timeout {
					t.Fatalf("a tick of %v allows %v, want %v", tick, got, timeout)
				}
				for range 20 {
					time.Sleep(timeout / 3)
					r.want(0, zkserver.OpPing, nil)
				}
				last := time.Now()
				r.closed()
				latest := timeout + tick
				if endpoint != 3 {
					latest += tick / 2 // until the next report
				}
				if d := time.Since(last); d <= timeout || d > latest+time.Millisecond {
					t.Errorf("a tick of %v, endpoint %d: expired after %v, want more than %v and at most %v", tick, endpoint, d, timeout, latest)
				}
			})
		}
	}
}

// SetSessionTimeouts changes the timeouts that an endpoint grants: a leader uses the timeout that
// was negotiated last, and the next leader uses the timeout with which the session was created.
func TestTheNextLeaderCountsWithTheFirstTimeout(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		r := at(t, s, 1, 40*time.Second)
		if err := s.Endpoint(2).SetSessionTimeouts(time.Second, 8*time.Second); err != nil {
			t.Fatal(err)
		}
		r = r.moved(s, 2).welcome()
		if r.timeout != 8000 {
			t.Fatalf("negotiated %d ms, want 8000", r.timeout)
		}
		s.Endpoint(3).Stop()
		began := time.Now()
		if n := s.Leader(); n != 2 {
			t.Fatalf("endpoint %d leads", n)
		}
		if at := expiresAt(t, s, began); at <= 40*time.Second || at > 42*time.Second {
			t.Fatalf("expired %v after the next leader began, want 40s to 42s", at)
		}
	})
	// The shorter timeout counts with the leader of the reconnect, and with a leader that hears of
	// the session over such a connection.
	for _, endpoint := range []int{2, 3} {
		for _, pings := range []int{0, 1} {
			three(t, func(t *testing.T, s *zkserver.Server) {
				r := at(t, s, 1, 40*time.Second)
				if err := s.Endpoint(endpoint).SetSessionTimeouts(time.Second, 8*time.Second); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				began := time.Now()
				r = r.moved(s, endpoint).welcome()
				for range pings {
					time.Sleep(5 * time.Second)
					began = time.Now()
					r.want(0, zkserver.OpPing, nil)
				}
				if at := expiresAt(t, s, began); at <= 8*time.Second || at > 11*time.Second {
					t.Errorf("endpoint %d: expired %v after the reconnect and %d pings, want 8s to 11s", endpoint, at, pings)
				}
			})
		}
	}
}

// SetSessionTimeouts refuses invalid bounds and keeps the old bounds.
func TestSetSessionTimeoutsRefusesNonsense(t *testing.T) {
	three(t, func(t *testing.T, s *zkserver.Server) {
		for _, bounds := range [][2]time.Duration{{0, time.Second}, {-1, 1}, {2, 1}, {time.Second, 1 << 62}} {
			if err := s.Endpoint(1).SetSessionTimeouts(bounds[0], bounds[1]); err == nil {
				t.Errorf("%v to %v were taken", bounds[0], bounds[1])
			}
		}
		if r := at(t, s, 1, time.Hour); r.timeout != 40_000 {
			t.Errorf("negotiated %d ms, want the 20 ticks of the configuration", r.timeout)
		}
	})
}
