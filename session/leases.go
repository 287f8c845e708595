package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// leases is the part of a Session that proves the session alive. It has the leases that
// depend on the session, and the proof. The keeper (keeper.go) makes the requests, the
// answers of a connection move the proof (proof.go), and a passed deadline ends the
// session if a lease is held.
type leases struct {
	m    *shared
	id   *identity
	hold context.Context // the Session's context

	mu        sync.Mutex
	proof     proof
	record    *record   // of the newest connection
	heard     time.Time // when the newest frame arrived
	due       time.Time // when the next commit of the keeper is due
	suspended time.Duration
	refusal   error // of the newest commit of the keeper that was answered; nil if there is none

	open   map[*Lease]struct{} // prepared or held
	over   error               // why holds have ended; no further hold begins
	held   int
	turns  uint64        // that the leases have had, see Lease.turn
	wanted int           // callers of Grant that need a newer proof
	moved  chan struct{} // closed and replaced when the proof has moved or a znode is gone
	wake   time.Time     // when the keeper runs next
	kick   chan struct{}
}

func (v *leases) init(m *shared, id *identity, hold context.Context) {
	v.m, v.id, v.hold, v.suspended = m, id, hold, m.clock()
	v.open = make(map[*Lease]struct{})
	v.moved = make(chan struct{})
	v.kick = make(chan struct{}, 1)
}

// now returns the time, and accounts for a suspension of the machine; mu is held.
func (v *leases) now() time.Time {
	now := time.Now()
	suspended := v.m.clock()
	if d := suspended - v.suspended; d > v.proof.timeout/marginFraction && v.proof.timeout > 0 {
		v.suspended = suspended
		// The server was silent for d longer than the monotonic clock shows.
		v.heard = v.heard.Add(-d)
		v.proof.suspended(v.record, d, now)
		// The timer of the keeper stood still, and the deadline may have passed.
		signal(v.kick)
	}
	return now
}

// proving reports whether the session must be kept proven.
func (v *leases) proving() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.open) > 0
}

// timeout returns Session.Timeout.
func (v *leases) timeout() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.proof.timeout
}

// deadline returns Session.Deadline.
func (v *leases) deadline() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.now() // moves the deadline back if the machine was suspended
	return v.proof.deadline
}

// kickIfLate wakes the keeper if the keeper would run too late for a lease that has just
// been prepared or held; mu is held.
func (v *leases) kickIfLate() {
	// A wake-up for each lease would cost a step of the keeper for each Lock. While the
	// session is kept proven, the next contact is near enough.
	if due := time.Now().Add(v.proof.timeout / contactFraction); v.wake.After(due) || v.proof.deadline.Before(v.wake) {
		signal(v.kick)
	}
}

// connected handles the ConnectResponse of a new connection. Its request was written at
// sent.
func (v *leases) connected(sent time.Time, timeout time.Duration) *record {
	v.mu.Lock()
	defer v.mu.Unlock()
	// Before connect: a suspension during the handshake makes the request older.
	v.heard = v.now()
	v.record = v.proof.connect(sent, timeout)
	signal(v.kick)
	return v.record
}

// hear records that a frame has arrived.
func (v *leases) hear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = time.Now()
}

// answered handles an answer.
func (v *leases) answered(r *record, c *wire.Call) {
	kind := proves(c)
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now() // the next reader of the deadline accounts for a suspension
	v.heard = now
	before, lapsed := v.proof.deadline, v.proof.lapsed
	v.proof.answer(r, kind, c.Sent, now, v.held > 0)
	// A commit of a caller proves as much as a commit of the keeper, which then makes
	// its next one later.
	if due := c.Sent.Add(v.proof.timeout / commitFraction); kind == proofCommit && !c.Beat && due.After(v.due) {
		v.due = due
	}
	// Only callers of Grant wait for moved. Without them every answer would replace the
	// channel in vain.
	if v.wanted > 0 && (v.proof.deadline != before || v.proof.lapsed != lapsed) {
		broadcast(&v.moved)
	}
	// The plan of the keeper is from before the lapse, and has no commit at its end.
	if v.wanted > 0 && v.proof.lapsed && !lapsed {
		signal(v.kick)
	}
}

// grantable reports whether a hold may begin now; mu is held.
func (v *leases) grantable(now time.Time) bool {
	if !v.proof.grantable(now) {
		return false
	}
	// The hold lasts beyond the deadline only if the next commit that moves the deadline is answered
	// before that.
	next, ok := v.useful(now)
	if !ok {
		next = now.Add(v.proof.timeout / reportFraction) // when a contact that is made now is useful
	}
	return v.proof.deadline.Sub(next) > v.proof.timeout/answerFraction
}

// patience returns the time that Close waits for requests and functions in flight: until
// the deadline, or, if no lease is held, for as long as a server was heard of recently.
func (v *leases) patience() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	wait := v.proof.deadline.Sub(now)
	// An idle session makes no commits, so its deadline has passed although the server
	// is alive.
	if v.held == 0 {
		// After two thirds of the timeout the silent connection ends.
		wait = max(wait, v.heard.Add(v.proof.timeout*2/3).Sub(now))
	}
	return wait
}

// expired returns the reason why the session is over by the local clock, or nil.
func (v *leases) expired(now time.Time) error {
	switch {
	case v.held > 0 && !now.Before(v.proof.deadline):
		// Even if the server answers: a deposed leader answers for some ticks, while its
		// successor ends the session.
		return fmt.Errorf("%w: no transaction was committed in time to prove it alive beyond its deadline", ErrLost)
	// Callers should not wait longer: the next session may find a server that answers.
	// closeOnServer ends this session if the servers still have it.
	case now.Sub(v.heard) >= v.proof.timeout:
		return fmt.Errorf("%w: nothing was heard for %v, the session timeout", ErrLost, v.proof.timeout)
	}
	return nil
}

// endHolds reports to the observer that every hold is lost with the session.
func (v *leases) endHolds(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	// The Session's context ends a little later. A hold that begins in between would end without
	// the reason.
	if v.over == nil {
		v.over = why
	}
	for l := range v.open {
		l.endHold(why)
	}
}
