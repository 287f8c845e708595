package session

import (
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// planCommit determines whether the present request is a commit; leases.mu is held. Five
// of twelve contacts are commits. A commit is made earlier if it moves a deadline that is
// near or a deadline that a caller waits for.
func (k *keeper) planCommit(w *wire.Conn, now time.Time, t *task) {
	v := k.v
	timeout := v.proof.timeout
	pace := timeout / commitFraction
	// A commit that was sent on a former connection has no answer to wait for.
	if k.beat == w.Number {
		return // the answer wakes the keeper
	}
	if now.Before(k.resume) {
		t.wait = min(t.wait, k.resume.Sub(now))
		return
	}
	near := v.proof.deadline.Sub(now) - pace
	if near > 0 {
		t.wait = min(t.wait, near)
	}
	if t.contact {
		// A commit in place of this contact saves the commit that would come before the
		// next contact, so that a hold costs no more in its first timeout than later. A
		// server that answers slowly, but within T/12, causes no early commits.
		near -= timeout/contactFraction - timeout/sampleFraction
	}
	if near <= 0 || v.wanted > 0 && !v.grantable(now) {
		if at, ok := v.useful(now); ok {
			switch soon := at.Sub(now); {
			case soon <= 0:
				t.commit = true
			case soon < timeout/sampleFraction:
				t.contact = false // a contact and a commit so soon after it count as one
				fallthrough
			default:
				t.wait = min(t.wait, soon)
			}
		}
	}
	t.commit = t.commit || t.contact && !v.due.After(now)
	if t.commit {
		// Count from the time at which the commit was due. So T has five commits,
		// although a commit waits for the turn of a contact.
		if v.due = v.due.Add(pace); v.due.Before(now) {
			v.due = now.Add(pace)
		}
	}
}

// useful returns the next time at which a commit can move the deadline or end a lapse;
// leases.mu is held.
func (v *leases) useful(now time.Time) (at time.Time, ok bool) {
	// written: a commit at the very moment at which a suspension was noticed counts as older.
	moves := v.proof.promise(v.record, v.proof.written(now)).After(v.proof.deadline)
	if moves && v.held > 0 && v.proof.deadline.Sub(now) <= v.proof.timeout/commitFraction {
		return now, true // a lapse delays grants, and not the deadline of a hold
	}
	if v.proof.lapsed && v.proof.resume.After(now) {
		return v.proof.resume, true // until then nothing is granted, regardless of the deadline
	}
	if v.proof.lapsed || moves {
		return now, true
	}
	return v.record.nextTouch(now, v.proof.timeout)
}

// alwaysThere are znodes that servers have and users may read, unless an administrator has
// changed their ACLs. The first of them is new in ZooKeeper 3.5.
var alwaysThere = [...]string{"/zookeeper/config", "/zookeeper", "/"}

// proveAlive sends a transaction that changes nothing and fires no watch: it checks that
// a znode of ours exists.
func (k *keeper) proveAlive(w *wire.Conn) {
	// The leader carries out a check only if the session is alive and connected to the
	// server that forwards the check.
	l, path := k.checked()
	k.v.mu.Lock()
	// Before the request is sent: the answer, which ends the beat, may arrive before
	// Send returns.
	k.beat, k.beatAt = w.Number, time.Now()
	k.v.mu.Unlock()
	r := &wire.Request{Op: wire.OpMulti, Own: true, Beat: true, Record: checkRecord(path)}
	r.Then = func(c *wire.Call) {
		if c.Err != nil {
			return // planCommit plans for the next connection
		}
		notice := func() {}
		defer func() { notice() }() // when mu is unlocked
		k.v.mu.Lock()
		defer k.v.mu.Unlock()
		k.beat = 0
		code := c.MultiCode()
		k.v.refusal = errorOfCode(code)
		gone := code == codeNoNode
		unreadable := code == codeNoAuth || classOfCode(code) == ClassFinal // or the path is invalid
		switch {
		case code == 0:
		case l != nil && l.path != path && (gone || unreadable):
			// The lease has got another znode meanwhile.
		case l == nil && (gone || unreadable):
			k.spare = (k.spare + 1) % len(alwaysThere)
			if k.spare == 0 {
				k.resume = time.Now().Add(k.v.proof.timeout / contactFraction)
			}
		case gone:
			notice = l.lose()
		case unreadable:
			l.unreadable = true
		default: // for example throttled
			// The commit takes the place of the next contact. Without it, a connection that falls silent
			// before the commit after that one could cost the session.
			k.resume = time.Now().Add(k.v.proof.timeout / contactFraction)
			k.v.due = k.resume
		}
		// While the commit was unanswered, planCommit planned no other.
		signal(k.v.kick)
	}
	w.Send(r)
}

// commitFirst sends a transaction on a connection that is about to be put to use, if a
// hold depends on the transaction.
func (k *keeper) commitFirst(w *wire.Conn) {
	// Later the answers to other requests, which may be large, would delay the answer.
	k.v.mu.Lock()
	urgent := k.v.held > 0 && time.Until(k.v.proof.deadline) < k.v.proof.timeout/2
	k.v.mu.Unlock()
	if urgent {
		k.proveAlive(w)
	}
}

// checked returns the lease whose znode the next commit checks, and the path of the
// znode. The lease is nil if no lease has a znode that is known and readable.
func (k *keeper) checked() (*Lease, string) {
	k.v.mu.Lock()
	defer k.v.mu.Unlock()
	best := k.takeTurn(false)
	if best == nil {
		// A check that fails is no commit for the lease, so the znode must exist.
		return nil, alwaysThere[k.spare]
	}
	return best, best.path
}

// takeTurn returns the lease whose znode the keeper asks about next, and ends the turn of this lease; leases.mu is held.
// If unreadable, it considers only leases whose znodes cannot be checked, and otherwise only the other leases. It returns
// nil if no lease is left.
func (k *keeper) takeTurn(unreadable bool) *Lease {
	var best *Lease
	for l := range k.v.open {
		if l.path == "" || l.gone || l.unreadable != unreadable {
			continue
		}
		// The znode of a hold is checked rather than the znode of a waiter: its removal ends the hold. The znodes of
		// many holds take turns, so that the removal of each is found in time.
		if best == nil || l.state > best.state || l.state == best.state && l.turn < best.turn {
			best = l
		}
	}
	if best != nil {
		best.endTurn()
	}
	return best
}

// lookForUnreadable asks whether the znode of a hold exists that no commit can check, because its ACL forbids it. The
// servers also hide from us that such a znode was deleted.
func (k *keeper) lookForUnreadable(w *wire.Conn) {
	k.v.mu.Lock()
	l, path := k.takeTurn(true), ""
	if l != nil && l.state == leaseHeld {
		path = l.path
	}
	k.v.mu.Unlock()
	if path == "" {
		return
	}
	r := &wire.Request{Op: wire.OpExists, Own: true, Record: wire.Encoder(nil).String(path).Bool(false)}
	r.Then = func(c *wire.Call) {
		if c.Err != nil || c.Code != codeNoNode {
			return
		}
		k.v.mu.Lock()
		notice := func() {}
		if l.path == path { // and no other znode meanwhile
			notice = l.lose()
		}
		k.v.mu.Unlock()
		notice()
	}
	w.Send(r)
}
