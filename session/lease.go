package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// leases is the part of a Session that proves the session alive: what depends
// on the session, and how far the proof reaches. The keeper (keeper.go) makes the
// requests, the answers of a connection move the proof (proof.go), and a passed
// deadline ends the session if anything is held.
type leases struct {
	mu        sync.Mutex
	proof     proof
	record    *record   // of the newest connection
	heard     time.Time // when the newest frame arrived
	commit    time.Time // when the newest commit of somebody other than the keeper was written
	suspended time.Duration
	clock     clock

	open   map[*Lease]struct{} // near or held
	held   int
	wanted int           // callers of Grant that need a newer proof
	moved  chan struct{} // closed and replaced when the proof has moved or a znode is gone
	wake   time.Time     // when the keeper looks again
	kick   chan struct{}
}

func (v *leases) init(c clock) {
	v.clock, v.suspended = c, c()
	v.open = make(map[*Lease]struct{})
	v.moved = make(chan struct{})
	v.kick = make(chan struct{}, 1)
}

// A Lease keeps a session provably alive for one znode that excludes others, or
// for a wait for such a znode. Recipes are built on it. Open a Lease before the
// znode is created. Call Own when the znode is there, Prepare when a grant is
// near, Hold or Grant when it is granted, and End when the znode is gone.
//
// While a lease is prepared or held, the session makes a request twelve times in
// the session timeout, five of which are transactions that change nothing. Other
// requests of the session count, too. A connection that does not answer for a
// quarter of the session timeout is closed then, so that the session can move to
// another server in time. While the lease is held, the same goes for a connection on
// which such a transaction is unanswered for a fifth of the timeout, and the Deadline is
// a quarter away.
type Lease struct {
	s     *Session
	state leaseState
	path  string // the znode as the server knows it; empty until Own
	gone  bool   // the znode does not exist any more

	began time.Duration // of what is held, since epoch; 0 if nothing is

	unreadable bool // the znode's ACL denies us to check it
}

type leaseState uint8

const (
	leaseOpen     leaseState = iota // nothing is granted soon
	leasePrepared                   // a grant is near, or the znode waits to be used again
	leaseHeld                       // the deadline ends the session
	leaseEnded
)

// Lease opens a lease.
func (s *Session) Lease() *Lease {
	s.m.ExpectHolds()
	return &Lease{s: s}
}

// ExpectHolds says that sessions of m are going to hold something: from now on an
// idle session sends a sync instead of each ping, every third of the session
// timeout. Without it the first grant in a session that was idle for longer than half its timeout
// waits for a quarter of the timeout, because a leader that was paused might be
// about to end the session. Opening a Lease has the same effect on later grants.
// It does nothing on a nil Manager, whose other methods report their absence.
func (m *Manager) ExpectHolds() {
	if m != nil {
		m.holds.Store(true)
	}
}

// Own names the ephemeral znode of the session that the lease is for. The
// session's transactions check that the znode exists. A lease may be given another
// znode while it is held, if a transaction has put that znode in the place of the
// former one.
func (l *Lease) Own(path string) {
	v := &l.s.leases
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.gone && l.state == leaseHeld {
		// A check behind that transaction has found the former znode gone. What is
		// held goes on, and with it the deadline.
		v.held++
		defer v.kickIfLate()
	}
	l.path, l.gone, l.unreadable = l.s.m.full(path), false, false
}

// Prepare says that a grant is near: from now on the session is kept proven, so
// that Hold succeeds without a request. On a lease that is held it says that
// nothing is held any more, though the znode is still there.
func (l *Lease) Prepare() {
	l.s.leases.mu.Lock()
	defer l.s.leases.mu.Unlock()
	l.change(leasePrepared)
}

// Hold says that from now on something is held: if Session.Deadline passes, the
// Session's context ends. Hold sends nothing and does not block. It fails with
// ErrStale if nothing may be granted at present, because the session is not proven
// alive or the leader may have been paused; with ErrLost or ErrClosed if the
// session has ended; and with ErrNotOwned if the znode is known to be gone.
func (l *Lease) Hold() error {
	s := l.s
	if s.hold.Err() != nil {
		return s.cause()
	}
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	now := s.leases.now()
	switch {
	case l.state == leaseEnded:
		return errLeaseEnded
	case l.gone:
		return ErrNotOwned
	case l.state == leaseHeld:
		return nil
	case !s.leases.proof.grantable(now):
		return ErrStale
	}
	l.change(leaseHeld)
	return nil
}

// Grant is Hold that waits for a newer proof where Hold fails with ErrStale. The
// session makes the requests. Grant returns when the lease is held, when ctx ends,
// when the session or the lease has ended, or when the znode is known to be gone.
func (l *Lease) Grant(ctx context.Context) error {
	v := &l.s.leases
	waiting := false
	var wait *Wait
	defer func() {
		wait.Stop()
		if waiting {
			v.mu.Lock()
			v.wanted--
			v.mu.Unlock()
		}
	}()
	for {
		v.mu.Lock()
		moved := v.moved
		v.mu.Unlock()
		err := l.Hold()
		if err != ErrStale {
			return err
		}
		if !waiting {
			waiting = true
			v.mu.Lock()
			path := l.s.m.strip(l.path)
			v.mu.Unlock()
			wait = l.s.m.StartWait("grant", path, func(context.Context) error {
				return fmt.Errorf("for a transaction that proves session %s alive: the server or its leader did not answer in time", sessionID(l.s.id))
			})
			v.mu.Lock()
			v.wanted++
			l.change(leasePrepared)
			v.mu.Unlock()
			v.kickKeeper()
			continue // only callers that are counted are notified
		}
		select {
		case <-moved:
		case <-l.s.hold.Done():
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// End closes the lease. It may be called more than once.
func (l *Lease) End() {
	l.s.leases.mu.Lock()
	defer l.s.leases.mu.Unlock()
	l.change(leaseEnded)
}

// change moves the lease to another state; leases.mu is held. A lease that has
// ended stays so.
func (l *Lease) change(to leaseState) {
	v := &l.s.leases
	if l.state == to || l.state == leaseEnded {
		return
	}
	if l.state == leaseHeld && !l.gone {
		v.held--
		l.endHold(nil)
	}
	l.state = to
	switch to {
	case leasePrepared:
		v.open[l] = struct{}{}
	case leaseHeld:
		v.open[l] = struct{}{}
		v.held++
		l.startHold()
	case leaseEnded:
		delete(v.open, l)
		if v.wanted > 0 {
			v.notify() // a Grant of this lease would wait for a proof that nobody makes
		}
		return
	}
	v.kickIfLate()
}

// lose notes that the znode of the lease does not exist any more: whatever was
// held by it is lost, so the deadline does not matter to it. leases.mu is held.
func (l *Lease) lose() {
	if l.gone {
		return
	}
	l.gone = true
	if l.state == leaseHeld {
		l.s.leases.held--
		l.endHold(ErrRemoved)
	}
	l.s.leases.notify()
}

// errLeaseEnded is a programming error of Hold's caller.
var errLeaseEnded = errors.New("session: hold a lease that has ended")

// now takes notice of a suspension of the machine and returns the time; mu is
// held.
func (v *leases) now() time.Time {
	now := time.Now()
	suspended := v.clock()
	if d := suspended - v.suspended; d > v.proof.timeout/marginFraction && v.proof.timeout > 0 {
		v.suspended = suspended
		v.heard = v.heard.Add(-d)
		v.proof.suspended(v.record, d, now)
	}
	return now
}

// active says whether the session must be kept proven; mu is held.
func (v *leases) active() bool { return len(v.open) > 0 }

// proving says whether the session must be kept proven.
func (s *Session) proving() bool {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	return s.leases.active()
}

// notify wakes callers of Grant; mu is held.
func (v *leases) notify() {
	close(v.moved)
	v.moved = make(chan struct{})
}

func (v *leases) kickKeeper() {
	select {
	case v.kick <- struct{}{}:
	default:
	}
}

// kickIfLate makes the keeper look again if it would do so too late for a lease
// that has just been prepared or held; mu is held.
func (v *leases) kickIfLate() {
	if due := time.Now().Add(v.proof.timeout / contactFraction); v.wake.After(due) || v.proof.deadline.Before(v.wake) {
		v.kickKeeper()
	}
}

// connected takes in the ConnectResponse of a new connection. The request was
// written at sent.
func (v *leases) connected(sent time.Time, timeout time.Duration) *record {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = v.now()
	v.record = v.proof.connect(sent, timeout)
	v.kickKeeper()
	return v.record
}

// hear notes that a frame has arrived.
func (v *leases) hear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = time.Now()
}

// answered takes in an answer.
func (v *leases) answered(r *record, c *call) {
	kind := c.proves()
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now() // the next reader of the deadline takes a suspension into account
	v.heard = now
	before, lapsed := v.proof.deadline, v.proof.lapsed
	v.proof.answer(r, kind, c.sent, now, v.held > 0)
	if kind == proofCommit && !c.beat && c.sent.After(v.commit) {
		v.commit = c.sent
	}
	if v.wanted > 0 && (v.proof.deadline != before || v.proof.lapsed != lapsed) {
		v.notify()
	}
	if v.wanted > 0 && v.proof.lapsed && !lapsed {
		v.kickKeeper()
	}
}

// Deadline is until when the session is proven alive: no server ends it before,
// unless an administrator does. The Deadline moves on when a transaction of the session is
// answered, and passes while the session has no transactions. While a Lease is
// held it is kept ahead, and the Session's context ends if it passes. It is the
// zero time before the first transaction.
func (s *Session) Deadline() time.Time {
	s.leases.mu.Lock()
	defer s.leases.mu.Unlock()
	s.leases.now()
	return s.leases.proof.deadline
}

// patience is how long Close waits for requests and functions under way: while
// the session is proven alive, or, if nothing is held, while a server has been
// heard of lately.
func (v *leases) patience() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	wait := v.proof.deadline.Sub(now)
	if v.held == 0 {
		wait = max(wait, v.heard.Add(v.proof.timeout*2/3).Sub(now))
	}
	return wait
}

// expired says why the session is over by its own clock, nil if it is not.
func (v *leases) expired(now time.Time) error {
	switch {
	case v.held > 0 && !now.Before(v.proof.deadline):
		return fmt.Errorf("%w: no transaction was committed in time to prove it alive beyond its deadline", ErrLost)
	case now.Sub(v.heard) >= v.proof.timeout:
		return fmt.Errorf("%w: nothing was heard for %v, the session timeout", ErrLost, v.proof.timeout)
	}
	return nil
}
