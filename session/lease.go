package session

import (
	"context"
	"fmt"
	"time"
)

// A Lease keeps a session provably alive for one znode that excludes other clients, or
// for a wait for such a znode. The primitives build on it. Open a Lease before the znode
// is created. Call Own when the znode exists, Prepare when a grant is near, Hold or Grant
// when the znode is granted, Release when the znode is being deleted, and End when it is gone.
//
// While a lease is prepared or held, the session makes a request twelve times per session
// timeout. Five of these requests are transactions that change nothing. Each checks the
// znode of one lease, in turn; if the ACL of a held znode forbids the check, a read looks
// for the znode beside the transaction. Other requests of the session count, too, and its
// transactions take the place of these. The session closes a connection that does not answer for a
// quarter of the session timeout, so that the session can move to another server in time.
// While a lease is held and the Deadline is a quarter away, the session also closes a
// connection on which such a transaction is unanswered for a fifth of the timeout.
type Lease struct {
	v      *leases
	state  leaseState
	path   string // the znode, with the chroot; empty until Own
	gone   bool   // the znode does not exist any more
	onGone func() // to call when gone becomes true; may be nil

	// For the observer:
	began time.Duration // start of the hold, since epoch; 0 if no hold is reported
	place string        // the path of the report
	of    string        // see ReportAs; empty for the directory of the znode
	lost  error         // the loss of the hold

	unreadable bool   // the znode's ACL forbids us to check the znode
	turn       uint64 // the lease with the least turn is the next one whose znode is checked
}

type leaseState uint8

const (
	leaseOpen     leaseState = iota // no grant is near
	leaseReleased                   // the znode is being deleted
	leasePrepared                   // a grant is near, or the znode waits to be used again
	leaseHeld                       // a passed deadline ends the session
	leaseEnded
)

// Own sets the ephemeral znode of the lease. The znode belongs to the session. The
// session's transactions check that the znode exists. A held lease may be given another
// znode, if a transaction has replaced the former znode by the new one. Then the function
// of NotifyGone, which belongs to the former znode, is forgotten.
func (l *Lease) Own(path string) {
	v := l.v
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.gone && l.state == leaseHeld {
		// A check after that transaction has found the former znode gone. The hold
		// continues, and so the deadline applies to it again.
		v.held++
		defer v.kickIfLate()
	}
	l.path, l.gone, l.unreadable = l.v.m.full(path), false, false
	l.onGone, l.lost = nil, nil
	if l.began != 0 && l.place != "" && l.place != l.reported() {
		// The hold goes on in another directory, and a gauge of the holds at each path must not drift.
		l.endHold(nil)
		l.startHold()
	}
}

// ReportAs sets the path of the hold for the observer. Call it before Own. Without it, the
// observer gets the directory of the znode.
func (l *Lease) ReportAs(path string) {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.of = path
}

// NotifyGone calls f once when the znode of the lease is known to be gone, because Lose was called
// or because one of the session's transactions has checked the znode. If that is known
// already, NotifyGone calls f before it returns. f must not block. The next call of
// NotifyGone or Own replaces f, and a call of f that has begun continues.
func (l *Lease) NotifyGone(f func()) {
	l.v.mu.Lock()
	gone := l.gone
	if !gone {
		l.onGone = f
	}
	l.v.mu.Unlock()
	if gone {
		f()
	}
}

// Lose notes that the znode of the lease is gone although its hold was not released: the
// observer is told that the hold was lost.
func (l *Lease) Lose() {
	l.v.mu.Lock()
	if l.began != 0 {
		l.lost = ErrRemoved
	}
	notice := l.lose()
	l.v.mu.Unlock()
	notice()
}

// Release ends the hold while its znode is being deleted. The observer is told by End, since the
// deletion may show that another client has removed the znode: then call Lose before End.
func (l *Lease) Release() {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.change(leaseReleased)
}

// Prepare announces that a grant is near. From now on the session is kept proven, so that
// Hold succeeds without a request. On a held lease, Prepare ends the hold while the znode
// stays.
func (l *Lease) Prepare() {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.change(leasePrepared)
}

// Hold marks the lease as held: from now on the Session's context ends if
// Session.Deadline passes. Hold sends nothing and does not block. It returns ErrStale if
// nothing may be granted at present, because the session is not proven alive or the
// leader may have been paused. It returns ErrLost or ErrClosed if the session has ended,
// and ErrNotOwned if the znode is known to be gone.
func (l *Lease) Hold() error {
	v := l.v
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over != nil {
		return v.over
	}
	// now notices a suspension of the machine since the grant, and moves the deadline back.
	now := v.now()
	switch {
	case l.state == leaseEnded:
		return errLeaseEnded
	case l.gone:
		return ErrNotOwned
	case l.state == leaseHeld:
		return v.expired(now) // the keeper ends the session for the same reason, perhaps a little later
	// The answer that granted the znode may be late. Only a proof that is valid now shows
	// that no other client has the znode.
	case !v.grantable(now):
		return ErrStale
	}
	l.change(leaseHeld)
	return nil
}

// Grant is like Hold, but waits for a newer proof if Hold returns ErrStale. The session
// makes the requests. Grant returns when the lease is held, when ctx ends, when the
// session or the lease has ended, or when the znode is known to be gone.
func (l *Lease) Grant(ctx context.Context) error {
	if err := l.Hold(); err != ErrStale {
		return err
	}
	v := l.v
	v.mu.Lock()
	path := v.m.strip(l.path)
	v.wanted++
	l.change(leasePrepared)
	v.mu.Unlock()
	wait := v.m.StartWait("grant", path, func(context.Context) error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.refusal != nil {
			return fmt.Errorf("for a transaction that proves session %s alive: the server has refused the last one: %w", sessionID(v.id.id), v.refusal)
		}
		return fmt.Errorf("for a transaction that proves session %s alive: the server or its leader did not answer in time", sessionID(v.id.id))
	})
	defer func() {
		wait.Stop()
		v.mu.Lock()
		v.wanted--
		v.mu.Unlock()
	}()
	signal(v.kick)
	for {
		// Before Hold: a proof that arrives after Hold has returned must end the wait
		// below.
		v.mu.Lock()
		moved := v.moved
		v.mu.Unlock()
		if err := l.Hold(); err != ErrStale {
			return err
		}
		select {
		case <-moved:
		case <-v.hold.Done():
		case <-ctx.Done():
			return wait.Cancelled(ctx)
		}
	}
}

// End closes the lease. It may be called more than once.
func (l *Lease) End() {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.change(leaseEnded)
}

// change moves the lease to another state; leases.mu is held. An ended lease stays ended.
func (l *Lease) change(to leaseState) {
	v := l.v
	if l.state == to || l.state == leaseEnded {
		return
	}
	if l.state == leaseHeld && !l.gone { // lose has counted out the hold of a znode that is gone
		v.held--
	}
	if to != leaseReleased {
		l.endHold(l.lost)
	}
	l.state = to
	l.endTurn() // or many short holds would keep the znodes of long ones from being checked
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
			broadcast(&v.moved) // a Grant of this lease would wait for a proof that no request brings
		}
		return
	}
	v.kickIfLate()
}

// endTurn puts the lease behind all others; leases.mu is held.
func (l *Lease) endTurn() {
	l.v.turns++
	l.turn = l.v.turns
}

// lose records that the znode of the lease does not exist any more. leases.mu is held. The
// caller must call notice when it has unlocked leases.mu.
func (l *Lease) lose() (notice func()) {
	notice = l.onGone
	l.onGone = nil
	if notice == nil {
		notice = func() {}
	}
	if l.gone {
		return notice
	}
	l.gone = true
	// The hold is lost, so the deadline does not matter to it any more.
	if l.state == leaseHeld {
		// The end is reported when the owner ends the hold. Only the owner knows whether one of
		// its transactions has replaced the znode, in which case Own follows and the hold goes on.
		l.lost = ErrRemoved
		l.v.held--
	}
	// A Grant that waits for a proof must learn that the znode is gone.
	broadcast(&l.v.moved)
	return notice
}

// startHold reports the start of a hold to the observer; leases.mu is held.
func (l *Lease) startHold() {
	l.began, l.place = time.Since(epoch), l.reported()
	// Under mu, so that the observer gets the start and the end of a hold in this order.
	if started := l.v.m.cfg.observer.HoldStarted; started != nil {
		started(HoldStarted{Path: l.place, Session: l.v.id.id})
	}
}

// endHold reports the end of a hold to the observer, once; leases.mu is held.
func (l *Lease) endHold(lost error) {
	if l.began == 0 {
		return
	}
	if ended := l.v.m.cfg.observer.HoldEnded; ended != nil {
		ended(HoldEnded{Path: l.place, Session: l.v.id.id, Duration: time.Since(epoch) - l.began, Lost: lost})
	}
	l.began = 0
}

// reported returns the path of a hold for the observer.
func (l *Lease) reported() string {
	if l.of != "" || l.path == "" {
		return l.of
	}
	dir, _ := split(l.v.m.strip(l.path))
	return dir
}
