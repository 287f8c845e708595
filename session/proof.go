package session

import (
	"slices"
	"time"
)

// The fractions of the session timeout T that the lease is built on. They
// follow from how ZooKeeper tracks sessions; docs/architecture.md has the argument.
const (
	reportFraction  = 4  // a follower reports the sessions it has heard of at least every T/4
	marginFraction  = 20 // clock differences and delayed pings together are at most T/20
	lapseFraction   = 2  // leader contacts further apart than T/2 may hide a paused leader
	contactFraction = 12 // a contact is made every T/12 while something is held
	commitFraction  = 5  // and a commit every T/5
	idleFraction    = 3  // an idle session makes a contact every T/3
	silenceFraction = 4  // a connection that is silent for T/4 is dropped
	sampleFraction  = 64 // contacts closer together than T/64 are recorded as one
)

// An evidence says what an answered request proves. Every level includes the
// ones below it.
type evidence uint8

const (
	proofNothing evidence = iota // an answer to auth, or a notification
	proofContact                 // the connected server is there and has touched the session
	proofLeader                  // a server that considers itself the leader has answered
	proofCommit                  // a quorum has committed a transaction of the session
)

// A record holds what one connection has proven so far: the evidence of another
// connection may come from another server.
type record struct {
	opened   time.Time // when the ConnectRequest was written: it touches the session on the leader
	contacts []contact // answered contacts, the oldest first
}

// A contact is an answered request.
type contact struct{ sent, answered time.Time }

// add records a contact. Contacts in quick succession count as the first of
// them, which is the cautious choice, so that the record stays short.
func (r *record) add(c contact, timeout time.Duration) {
	if n := len(r.contacts); n > 0 && c.sent.Sub(r.contacts[n-1].sent) < timeout/sampleFraction {
		return
	}
	r.forget(c.sent, timeout)
	r.contacts = append(r.contacts, c)
}

// touched returns a time at which the leader surely knew the session to be
// alive, if it has committed a transaction that was written at commit. A contact
// that was answered a report before the commit reached the leader ahead of it, in
// the same ordered stream. The newest such contact may be missing: a follower can
// lose one touch while it takes its table. The second newest cannot.
func (r *record) touched(commit time.Time, timeout time.Duration) time.Time {
	reported := commit.Add(-timeout / reportFraction)
	i := len(r.contacts) - 1
	for i >= 0 && r.contacts[i].answered.After(reported) {
		i--
	}
	i-- // the newest may be lost
	if i < 0 || r.contacts[i].sent.Before(r.opened) {
		return r.opened
	}
	return r.contacts[i].sent
}

// forget drops the contacts that no commit needs that was written at sent or
// later.
func (r *record) forget(sent time.Time, timeout time.Duration) {
	reported := sent.Add(-timeout / reportFraction)
	last := 0
	for i, c := range r.contacts {
		if !c.answered.After(reported) {
			last = i
		}
	}
	if last > 1 {
		r.contacts = append(r.contacts[:0], r.contacts[last-1:]...)
	}
}

// nextTouch returns when a commit could next prove more than one that is
// written at now, if no further contact is made: as soon as one more contact must
// have been reported. ok is false if there is no such contact.
func (r *record) nextTouch(now time.Time, timeout time.Duration) (at time.Time, ok bool) {
	proven := r.touched(now, timeout)
	for i := 1; i < len(r.contacts); i++ {
		due := r.contacts[i].answered.Add(timeout / reportFraction)
		if due.After(now) && r.contacts[i-1].sent.After(proven) {
			return due, true
		}
	}
	return time.Time{}, false
}

// A proof is the state of a session's lease: until when the session is proven
// alive, and whether anything may be granted. It is not safe for concurrent use.
type proof struct {
	timeout  time.Duration // the smallest that any server has granted; 0 before the first
	deadline time.Time     // zero before the first commit
	leader   time.Time     // when the newest answered leader contact was written, on any connection
	lapsed   bool          // the leader may have been paused: see grantable
	resume   time.Time     // if lapsed, a commit that is written from then on ends the lapse

	suspensions []suspension // that were noticed within the last timeout
}

// A suspension is a time for which the machine did not run.
type suspension struct {
	noticed time.Time
	length  time.Duration
}

// connect records the ConnectResponse of a new connection, whose request was
// written at sent.
func (p *proof) connect(sent time.Time, timeout time.Duration) *record {
	sent = p.written(sent)
	if p.timeout == 0 || timeout < p.timeout {
		p.timeout = timeout
		// The leader counts the shorter timeout from this request on, whatever an
		// older answer has proven.
		if limit := sent.Add(timeout - timeout/marginFraction); p.deadline.After(limit) {
			p.deadline = limit
		}
	}
	// A leader that was paused answers the ConnectRequest of a session that it has picked
	// to end, so a new connection does not end the gap.
	if p.leader.IsZero() {
		p.leader = sent
	}
	return &record{opened: sent}
}

// answer records an answer that has arrived now, to a request that was written
// at sent. held says whether something depends on the deadline.
func (p *proof) answer(r *record, kind evidence, sent, now time.Time, held bool) {
	if kind == proofNothing {
		return
	}
	sent = p.written(sent)
	r.add(contact{sent, now}, p.timeout)
	if kind < proofLeader {
		return
	}
	if now.Sub(p.leader) > p.timeout/lapseFraction {
		p.lapse(now)
	}
	if sent.After(p.leader) {
		p.leader = sent
	}
	if kind < proofCommit {
		return
	}
	if p.lapsed && !sent.Before(p.resume) {
		p.lapsed = false
	}
	// A leader that was paused beyond the deadline may answer one more
	// transaction before it ends the session.
	if held && now.After(p.deadline) {
		return
	}
	if d := p.promise(r, sent); d.After(p.deadline) {
		p.deadline = d
	}
}

// promise returns the deadline that a commit written at sent proves.
func (p *proof) promise(r *record, sent time.Time) time.Time {
	return r.touched(sent, p.timeout).Add(p.timeout - p.timeout/marginFraction)
}

// lapse notes that a leader contact was answered now after a gap in which the
// leader may have been paused. On waking it ends the sessions whose time is up,
// which takes less than T/4; a commit that is written after that comes from a
// session that it has kept.
func (p *proof) lapse(now time.Time) {
	p.lapsed, p.resume = true, now.Add(p.timeout/reportFraction)
}

// suspended notes that the machine did not run for d, during which the
// monotonic clock stood still but the servers' clocks did not.
func (p *proof) suspended(r *record, d time.Duration, now time.Time) {
	p.deadline, p.leader = p.deadline.Add(-d), p.leader.Add(-d)
	p.lapse(now)
	// A request that is older than the timeout proves nothing, with or without d.
	p.suspensions = slices.DeleteFunc(p.suspensions, func(x suspension) bool { return now.Sub(x.noticed) > p.timeout })
	p.suspensions = append(p.suspensions, suspension{now, d})
	if r == nil {
		return
	}
	r.opened = r.opened.Add(-d)
	for i := range r.contacts {
		// The answers may have come before or after the suspension. Later is the
		// cautious choice.
		r.contacts[i].sent = r.contacts[i].sent.Add(-d)
	}
}

// written returns when a request was written that is answered now and was written at
// sent by the monotonic clock. For the servers the request is older by the suspensions
// that were noticed meanwhile.
func (p *proof) written(sent time.Time) time.Time {
	at := sent
	for _, x := range p.suspensions {
		if !sent.After(x.noticed) {
			at = at.Add(-x.length)
		}
	}
	return at
}

// grantable says whether something may be granted now.
func (p *proof) grantable(now time.Time) bool {
	return !p.lapsed && now.Before(p.deadline)
}
