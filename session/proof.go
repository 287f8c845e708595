package session

import (
	"slices"
	"time"
)

// The fractions of the session timeout T that the lease uses. They follow from the way in
// which ZooKeeper tracks sessions: see docs/architecture.md.
const (
	reportFraction  = 4  // a follower reports the sessions that it has heard of at least every T/4
	marginFraction  = 20 // clock differences and delayed pings together are at most T/20
	lapseFraction   = 2  // leader contacts further apart than T/2 may hide a paused leader
	contactFraction = 12 // a contact is made every T/12 while a lease is held
	commitFraction  = 5  // and a commit every T/5
	idleFraction    = 4  // an idle session makes a contact every T/4
	silenceFraction = 4  // a connection that is silent for T/4 is closed
	answerFraction  = 8  // a hold begins only if its next commit has T/8 to be answered
	sampleFraction  = 64 // contacts closer together than T/64 are recorded as one
)

// An evidence is the proof that an answered request provides. Every level includes the
// lower levels.
type evidence uint8

const (
	proofNothing evidence = iota // an answer to auth, or a notification
	proofContact                 // the connected server works and has touched the session
	proofLeader                  // a server that considers itself the leader has answered
	proofCommit                  // a quorum has committed a transaction of the session
)

// A record holds the evidence of one connection. The evidence of another connection may
// come from another server.
type record struct {
	opened   time.Time // when the ConnectRequest was written: it touches the session on the leader
	contacts []contact // answered contacts, the oldest first
}

// A contact is an answered request.
type contact struct{ sent, answered time.Time }

// add records a contact.
func (r *record) add(c contact, timeout time.Duration) {
	// Of contacts in quick succession only the first counts, which is the cautious choice
	// and keeps the record short.
	if n := len(r.contacts); n > 0 && c.sent.Sub(r.contacts[n-1].sent) < timeout/sampleFraction {
		return
	}
	// touched needs two of the contacts that were reported.
	if i := r.reported(c.sent, timeout); i > 1 {
		r.contacts = append(r.contacts[:0], r.contacts[i-1:]...)
	}
	r.contacts = append(r.contacts, c)
}

// touched returns a time at which the leader certainly knew the session to be alive, if
// the leader has committed a transaction that was written at commit.
func (r *record) touched(commit time.Time, timeout time.Duration) time.Time {
	// A follower can lose one touch while it takes its table, so the newest such contact may
	// be missing. The second newest cannot be missing.
	i := r.reported(commit, timeout) - 1
	if i < 0 || r.contacts[i].sent.Before(r.opened) {
		return r.opened
	}
	return r.contacts[i].sent
}

// reported returns the index of the newest contact that the leader knew when it committed a
// transaction that was written at commit, unless a follower has lost its touch. It is -1 if there is
// none.
func (r *record) reported(commit time.Time, timeout time.Duration) int {
	// A contact that was answered one report interval before the commit reached the leader
	// before the commit, in the same ordered stream.
	reported := commit.Add(-timeout / reportFraction)
	i := len(r.contacts) - 1
	for i >= 0 && r.contacts[i].answered.After(reported) {
		i--
	}
	return i
}

// nextTouch returns the next time at which a commit can prove more than a commit that is
// written at now, if no further contact is made. ok is false if there is no such time.
func (r *record) nextTouch(now time.Time, timeout time.Duration) (at time.Time, ok bool) {
	proven := r.touched(now, timeout)
	for i := 1; i < len(r.contacts); i++ {
		// From then on one more contact has been reported.
		due := r.contacts[i].answered.Add(timeout / reportFraction)
		if due.After(now) && r.contacts[i-1].sent.After(proven) {
			return due, true
		}
	}
	return time.Time{}, false
}

// A proof is the state of a session's lease: the time until which the session is proven
// alive, and whether anything may be granted. It is not safe for concurrent use.
type proof struct {
	timeout  time.Duration // the smallest that any server has granted; 0 before the first
	deadline time.Time     // zero before the first commit
	leader   time.Time     // when the newest answered leader contact was written, on any connection
	lapsed   bool          // the leader may have been paused: see grantable
	resume   time.Time     // if lapsed, a commit that is written at this time or later ends the lapse

	suspensions []suspension // the suspensions noticed within the last timeout
}

// A suspension is a period in which the machine did not run.
type suspension struct {
	noticed time.Time
	length  time.Duration
}

// connect records the ConnectResponse of a new connection. Its request was written at
// sent.
func (p *proof) connect(sent time.Time, timeout time.Duration) *record {
	sent = p.written(sent)
	if p.timeout == 0 || timeout < p.timeout {
		p.timeout = timeout
		// The leader counts the shorter timeout from this request on, regardless of the
		// proof of older answers.
		if limit := sent.Add(timeout - timeout/marginFraction); p.deadline.After(limit) {
			p.deadline = limit
		}
	}
	// A leader that was paused answers the ConnectRequest even of a session that it is
	// about to end, so a new connection does not end the gap.
	if p.leader.IsZero() {
		p.leader = sent
	}
	return &record{opened: sent}
}

// answer records an answer that has arrived now, to a request that was written at sent.
// held reports whether a hold depends on the deadline.
func (p *proof) answer(r *record, kind evidence, sent, now time.Time, held bool) {
	if kind == proofNothing {
		return
	}
	sent = p.written(sent)
	r.add(contact{sent, now}, p.timeout)
	if kind < proofLeader {
		return
	}
	// From the write of the one to the answer of the other: the leader may have been paused
	// at any moment in between.
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
	// A leader that was paused beyond the deadline may answer one more transaction before
	// it ends the session.
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

// lapse records that a leader contact was answered now after a gap in which the leader
// may have been paused.
func (p *proof) lapse(now time.Time) {
	// A leader that wakes ends the sessions whose timeout has passed, within T/4. So a
	// commit that is written after T/4 shows that the leader has kept the session.
	p.lapsed, p.resume = true, now.Add(p.timeout/reportFraction)
}

// suspended records that the machine did not run for d.
func (p *proof) suspended(r *record, d time.Duration, now time.Time) {
	// The monotonic clock stood still in this time, but the servers' clocks did not.
	p.deadline, p.leader = p.deadline.Add(-d), p.leader.Add(-d)
	p.lapse(now)
	// A request that is older than the timeout proves nothing, with or without d.
	p.suspensions = slices.DeleteFunc(p.suspensions, func(x suspension) bool { return now.Sub(x.noticed) > p.timeout })
	p.suspensions = append(p.suspensions, suspension{now, d})
	r.opened = r.opened.Add(-d)
	for i := range r.contacts {
		// answered stays unchanged: the answer may have arrived before or after the
		// suspension, and the later time is the cautious choice.
		r.contacts[i].sent = r.contacts[i].sent.Add(-d)
	}
}

// written returns the time at which a request was written, as the servers count time. The
// request is answered now and was written at sent by the monotonic clock.
func (p *proof) written(sent time.Time) time.Time {
	at := sent
	// A suspension that was noticed after the write makes the request older. Whether the
	// machine stopped before or after the write is unknown, so the cautious choice counts.
	for _, x := range p.suspensions {
		if !sent.After(x.noticed) {
			at = at.Add(-x.length)
		}
	}
	return at
}

// grantable reports whether something may be granted now.
func (p *proof) grantable(now time.Time) bool {
	return !p.lapsed && now.Before(p.deadline)
}
