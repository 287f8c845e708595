package session

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// The lease is how a holder learns of a loss before the server gives away what
// it held. The fractions of the session timeout T below are the design's: a
// server expires a session no sooner than T after the leader last heard of it,
// and what a follower has heard reaches the leader with its pings, every half
// tick, a tick being at most T/2. So two thirds of T after a request that the
// leader must have handled itself, the leader still counts the session alive.
type lease struct {
	mu       sync.Mutex
	proven   time.Time // when the newest request was sent that the leader has answered
	heard    time.Time // when anything at all was last heard
	renewing int       // how many want it renewed
	held     int       // how many of them hold something
	wake     time.Time // when the keeper looks again
	kick     chan struct{}
}

// past says whether d has gone by since t. The monotonic clock may stand still
// while a machine is suspended, so the wall clock is asked as well.
func past(t, now time.Time, d time.Duration) bool {
	return now.Sub(t) >= d || now.Round(0).Sub(t.Round(0)) >= d
}

func (s *Session) leaseTime() time.Duration { return s.timeout * 2 / 3 }

// Deadline is until when the session is proven alive. It moves on with every
// request that the leader has answered; while a Lease is open, one is sent at
// least every sixth of the session timeout.
func (s *Session) Deadline() time.Time {
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	return s.lease.proven.Add(s.leaseTime())
}

func (s *Session) prove(sent time.Time) {
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	if sent.After(s.lease.proven) {
		s.lease.proven = sent
	}
}

func (s *Session) hear(zxid int64) {
	if zxid > s.lastZxid.Load() {
		s.lastZxid.Store(zxid) // there is one reader at a time
	}
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	s.lease.heard = time.Now()
}

// A Lease is a claim that something depends on the session: a znode that
// excludes others, or a wait for one. While a session has leases open, it is
// renewed six times in a session timeout, and a connection that no longer
// reaches the leader is given up early. Recipes are built on it: open one
// before creating the znode, Hold when it is granted, End when it is gone.
type Lease struct {
	s     *Session
	held  bool
	ended bool
}

// Lease opens a lease.
func (s *Session) Lease() *Lease {
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	s.lease.renewing++
	return &Lease{s: s}
}

// Hold says that from now on something is held: if the Deadline passes, the
// Session's context ends. It fails with ErrStale if the Deadline has passed
// already, in which case nothing may be granted before a request to the leader,
// as Sync, has moved it on; and with ErrLost or ErrClosed if the session is gone.
func (l *Lease) Hold() error {
	s := l.s
	if err := s.hold.Err(); err != nil {
		return s.cause()
	}
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	switch {
	case l.ended:
		return errLeaseEnded
	case l.held:
		return nil
	case past(s.lease.proven, time.Now(), s.leaseTime()):
		return ErrStale
	}
	l.held = true
	s.lease.held++
	if s.lease.proven.Add(s.leaseTime()).Before(s.lease.wake) {
		s.kickKeeper()
	}
	return nil
}

// errLeaseEnded is a programming error of Hold's caller.
var errLeaseEnded = errors.New("session: hold a lease that has ended")

// End closes the lease. It may be called more than once.
func (l *Lease) End() {
	l.s.lease.mu.Lock()
	defer l.s.lease.mu.Unlock()
	if l.ended {
		return
	}
	l.ended = true
	l.s.lease.renewing--
	if l.held {
		l.s.lease.held--
	}
}

func (s *Session) renewing() bool {
	s.lease.mu.Lock()
	defer s.lease.mu.Unlock()
	return s.lease.renewing > 0
}

func (s *Session) kickKeeper() {
	select {
	case s.lease.kick <- struct{}{}:
	default:
	}
}

// keep renews the lease and ends the session when that fails. It runs from the
// first handshake to the end of the session.
func (s *Session) keep() {
	var beat *call
	timer := time.NewTimer(s.timeout / 6)
	defer timer.Stop()
	for {
		select {
		case <-s.dead:
			return
		case <-timer.C:
		case <-s.lease.kick:
		}
		now := time.Now()
		s.lease.mu.Lock()
		proven, heard := s.lease.proven, s.lease.heard
		renewing, held := s.lease.renewing > 0, s.lease.held > 0
		s.lease.mu.Unlock()

		switch {
		case held && past(proven, now, s.leaseTime()):
			s.lose(fmt.Errorf("%w: no request reached the leader for %v, two thirds of the session timeout", ErrLost, s.leaseTime()), true)
			return
		case past(heard, now, s.timeout):
			s.lose(fmt.Errorf("%w: nothing was heard for %v, the session timeout", ErrLost, s.timeout), true)
			return
		}

		next := min(s.timeout/6, heard.Add(s.timeout).Sub(now))
		if renewing {
			beat = s.renew(beat, now, proven)
			if beat != nil {
				next = min(next, beat.sent.Add(s.timeout/4).Sub(now))
			} else if due := proven.Add(s.timeout / 6).Sub(now); due > 0 {
				next = min(next, due)
			}
		}
		s.lease.mu.Lock()
		// In one step, because Hold kicks us only if wake is too late for it.
		if s.lease.held > 0 {
			next = min(next, s.lease.proven.Add(s.leaseTime()).Sub(now))
		}
		s.lease.wake = now.Add(next)
		s.lease.mu.Unlock()
		timer.Reset(next)
	}
}

// renew sends the next heartbeat if it is due and returns the one that is
// under way, if any. A connection that leaves one unanswered for a quarter of
// the session timeout is closed, even if it answers other things: another
// server may still reach the leader.
func (s *Session) renew(beat *call, now, proven time.Time) *call {
	w := s.currentWire()
	if beat != nil {
		select {
		case <-beat.done:
		default:
			if now.Sub(beat.sent) < s.timeout/4 {
				return beat
			}
			if w != nil && w.number == beat.conn {
				w.end(fmt.Errorf("no answer from the leader for %v", now.Sub(beat.sent)))
				return nil
			}
		}
	}
	if w == nil || now.Sub(proven) < s.timeout/6 {
		return nil
	}
	beat = &call{op: opSync, done: make(chan struct{})}
	fill := func(b []byte) []byte { return appendString(b, "/") }
	if s.m.cfg.strict {
		beat.op = opMulti
		fill = appendMultiEnd
	}
	w.send(beat, fill)
	select {
	case <-beat.done: // the connection had ended
		return nil
	default:
		return beat
	}
}
