package session

import (
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// noteProgress counts bytes that have arrived as a sign of life of the server, so that
// a session is not given up in the middle of an answer. Only whole answers are
// evidence for the lease. leases.mu is held.
func (k *keeper) noteProgress(w *wire.Conn) {
	if w == nil {
		return
	}
	if at := w.LastArrival(); at.After(k.progress) {
		k.progress = at
		if at.After(k.v.heard) {
			k.v.heard = at
		}
	}
}

// patience returns until when an answer is awaited of which some has arrived; it is
// called again then. leases.mu is held.
func (k *keeper) patience(p wire.Partial, got int, now time.Time) time.Time {
	v := k.v
	timeout, critical := v.proof.timeout, k.critical()
	limit := p.Began.Add(min(timeout, 2*maxIdlePace))
	switch {
	case v.held > 0 && p.Began.After(critical):
		// After a late reconnect there is no time for another one. And the commit goes
		// ahead of large answers on a new connection, see commitFirst.
		return limit
	case v.held > 0:
		// The answer that would move the deadline waits behind this one.
		return earlier(limit, critical)
	case v.wanted > 0 || now.Before(limit):
		return limit
	case float64(got) < minAnswerSpeed*now.Sub(p.Began).Seconds():
		return now
	}
	return now.Add(min(timeout/4, maxIdlePace))
}

// critical returns until when another connection can surely save what is held: it takes
// T/6, and the first transaction on it T/12. leases.mu is held.
func (k *keeper) critical() time.Time {
	return k.v.proof.deadline.Add(-k.v.proof.timeout / 4)
}

// stuckAt returns when a connection is given up on which a commit of a holder is
// unanswered. Events, and answers to go-zookeeper, may arrive all the time, so that the
// connection is not silent. A commit that takes less than T/5, the pace of commits, is only
// slow, as where a disk is busy: to leave for that reason would add to the load. A commit
// that was sent after the critical time is awaited, because another connection takes
// longer. leases.mu is held.
func (k *keeper) stuckAt(w *wire.Conn) (due time.Time, ok bool) {
	critical := k.critical()
	if k.v.held == 0 || k.beat != w.Number || k.beatAt.After(critical) {
		return time.Time{}, false
	}
	due = k.beatAt.Add(k.v.proof.timeout / commitFraction)
	if due.Before(critical) {
		due = critical
	}
	return due, true
}

// guiltOf returns how much an answer has contributed to the end of its connection.
func (k *keeper) guiltOf(p wire.Partial, w *wire.Conn, now time.Time) int {
	fair := min(k.v.timeout(), 2*maxIdlePace) / contactFraction
	switch {
	case now.Sub(p.Began) < fair:
		return 0 // the answers ahead of it took the time
	case now.Sub(w.LastArrival()) >= fair:
		return wire.GuiltOfStall
	}
	return wire.GuiltOfAnswer
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
