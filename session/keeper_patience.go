package session

import (
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// noteProgress counts the arrival of bytes as a sign of life of the server. leases.mu is
// held.
func (k *keeper) noteProgress(w *wire.Conn) {
	if w == nil {
		return
	}
	if at := w.LastArrival(); at.After(k.progress) {
		k.progress = at
		// A session must not be given up in the middle of an answer. Only complete answers
		// are evidence for the lease.
		if at.After(k.v.heard) {
			k.v.heard = at
		}
	}
}

// patience returns the time until which the keeper waits for the rest of a partial
// answer. The keeper calls patience again at that time. leases.mu is held.
func (k *keeper) patience(p wire.Partial, got int, now time.Time) time.Time {
	v := k.v
	timeout, critical := v.proof.timeout, k.critical()
	limit := p.Began.Add(min(timeout, 2*maxIdlePace))
	switch {
	case v.held > 0 && p.Began.After(critical):
		// After a late reconnect there is no time for another reconnect. On a new
		// connection the commit goes before large answers: see commitFirst.
		return limit
	case v.held > 0 && critical.Before(limit):
		// The answer that would move the deadline waits behind this answer.
		return critical
	case v.held > 0 || v.wanted > 0 || now.Before(limit):
		return limit
	case float64(got) < minAnswerSpeed*now.Sub(p.Began).Seconds():
		return now
	}
	return now.Add(min(timeout/4, maxIdlePace))
}

// critical returns the last time at which another connection can still save a hold.
// leases.mu is held.
func (k *keeper) critical() time.Time {
	// The connection takes up to T/6, and the first transaction on it up to T/12.
	return k.v.proof.deadline.Add(-k.v.proof.timeout / 4)
}

// stuckAt returns the time at which the keeper closes a connection because a commit of a
// holder is unanswered. leases.mu is held.
func (k *keeper) stuckAt(w *wire.Conn) (due time.Time, ok bool) {
	// Such a connection need not be silent, because events may keep arriving. For a commit
	// that was sent after the critical time the keeper waits, because another connection
	// takes longer.
	critical := k.critical()
	if k.v.held == 0 || k.beat != w.Number || k.beatAt.After(critical) {
		return time.Time{}, false
	}
	// A commit that takes less than T/5, the pace of commits, is only slow, for example
	// because of a busy disk, and a reconnect would add to the load.
	due = k.beatAt.Add(k.v.proof.timeout / commitFraction)
	if due.Before(critical) {
		due = critical
	}
	return due, true
}

// dropSlow closes a connection on which an answer arrives too slowly.
func (k *keeper) dropSlow(w *wire.Conn, p wire.Partial, now time.Time) {
	guilt := k.guiltOf(p, w, now)
	err := w.Blame(p, now, guilt)
	if err == nil {
		signal(k.v.kick) // the answer has become complete, so plan the rest
		return
	}
	if guilt == 0 {
		err = errManyAnswers // the speed of the last answer alone would mislead
	}
	w.End(err)
}

// guiltOf returns how much an answer has contributed to the end of its connection.
func (k *keeper) guiltOf(p wire.Partial, w *wire.Conn, now time.Time) int {
	fair := min(k.v.timeout(), 2*maxIdlePace) / contactFraction
	switch {
	case now.Sub(p.Began) < fair:
		return 0 // the answers before this one took the time
	case now.Sub(w.LastArrival()) >= fair:
		return wire.GuiltOfStall
	}
	return wire.GuiltOfAnswer
}
