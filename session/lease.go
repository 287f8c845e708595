package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
	v     *leases
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

// Own names the ephemeral znode of the session that the lease is for. The
// session's transactions check that the znode exists. A lease may be given another
// znode while it is held, if a transaction has put that znode in the place of the
// former one.
func (l *Lease) Own(path string) {
	v := l.v
	v.mu.Lock()
	defer v.mu.Unlock()
	if l.gone && l.state == leaseHeld {
		// A check behind that transaction has found the former znode gone. What is
		// held goes on, and with it the deadline.
		v.held++
		defer v.kickIfLate()
	}
	l.path, l.gone, l.unreadable = l.v.m.full(path), false, false
}

// Prepare says that a grant is near: from now on the session is kept proven, so
// that Hold succeeds without a request. On a lease that is held it says that
// nothing is held any more, though the znode is still there.
func (l *Lease) Prepare() {
	l.v.mu.Lock()
	defer l.v.mu.Unlock()
	l.change(leasePrepared)
}

// Hold says that from now on something is held: if Session.Deadline passes, the
// Session's context ends. Hold sends nothing and does not block. It fails with
// ErrStale if nothing may be granted at present, because the session is not proven
// alive or the leader may have been paused; with ErrLost or ErrClosed if the
// session has ended; and with ErrNotOwned if the znode is known to be gone.
func (l *Lease) Hold() error {
	v := l.v
	if v.hold.Err() != nil {
		return context.Cause(v.hold)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	switch {
	case l.state == leaseEnded:
		return errLeaseEnded
	case l.gone:
		return ErrNotOwned
	case l.state == leaseHeld:
		return nil
	case !v.proof.grantable(now):
		return ErrStale
	}
	l.change(leaseHeld)
	return nil
}

// Grant is Hold that waits for a newer proof where Hold fails with ErrStale. The
// session makes the requests. Grant returns when the lease is held, when ctx ends,
// when the session or the lease has ended, or when the znode is known to be gone.
func (l *Lease) Grant(ctx context.Context) error {
	v := l.v
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
			path := v.m.strip(l.path)
			v.mu.Unlock()
			wait = v.m.StartWait("grant", path, func(context.Context) error {
				return fmt.Errorf("for a transaction that proves session %s alive: the server or its leader did not answer in time", sessionID(v.id.id))
			})
			v.mu.Lock()
			v.wanted++
			l.change(leasePrepared)
			v.mu.Unlock()
			signal(v.kick)
			continue // only callers that are counted are notified
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

// change moves the lease to another state; leases.mu is held. A lease that has
// ended stays so.
func (l *Lease) change(to leaseState) {
	v := l.v
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
			broadcast(&v.moved) // a Grant of this lease would wait for a proof that nobody makes
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
		l.v.held--
		l.endHold(ErrRemoved)
	}
	broadcast(&l.v.moved)
}

// errLeaseEnded is a programming error of Hold's caller.
var errLeaseEnded = errors.New("session: hold a lease that has ended")

// startHold notes that the lease is held; leases.mu is held.
func (l *Lease) startHold() {
	l.began = time.Since(epoch)
	if started := l.v.m.cfg.observer.HoldStarted; started != nil {
		started(HoldStarted{Path: l.directory(), Session: l.v.id.id})
	}
}

// endHold notes that the lease is not held any more, once; leases.mu is held.
func (l *Lease) endHold(lost error) {
	if l.began == 0 {
		return
	}
	if ended := l.v.m.cfg.observer.HoldEnded; ended != nil {
		ended(HoldEnded{Path: l.directory(), Session: l.v.id.id, Duration: time.Since(epoch) - l.began, Lost: lost})
	}
	l.began = 0
}

func (l *Lease) directory() string {
	if l.path == "" {
		return ""
	}
	dir, _ := split(l.v.m.strip(l.path))
	return dir
}
