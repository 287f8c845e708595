package session

import (
	"testing"
	"time"
)

// instant is a time of a test, in milliseconds; the session timeout is 1200.
func instant(ms int) time.Time { return time.Unix(1e9, 0).Add(time.Duration(ms) * time.Millisecond) }

const proofTimeout = 1200 * time.Millisecond // T/20 = 60, T/12 = 100, T/4 = 300, T/2 = 600

// A proofStep is an answered request, and the expected state of the proof after it.
type proofStep struct {
	kind         evidence
	sent, at     int
	deadline     int // 0 stands for none
	notGrantable bool
}

func runProof(t *testing.T, held bool, steps []proofStep) {
	t.Helper()
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	for i, s := range steps {
		p.answer(r, s.kind, instant(s.sent), instant(s.at), held && i > 0)
		want := time.Time{}
		if s.deadline != 0 {
			want = instant(s.deadline)
		}
		if !p.deadline.Equal(want) {
			t.Errorf("step %d: the deadline is %d ms after the connection, want %d", i+1, p.deadline.Sub(instant(0)).Milliseconds(), s.deadline)
		}
		if got := p.grantable(instant(s.at)); got == s.notGrantable {
			t.Errorf("step %d: grantable is %v", i+1, got)
		}
	}
}

// Only a commit moves the deadline: servers that have lost their quorum may answer reads, pings and syncs.
func TestOnlyACommitMovesTheDeadline(t *testing.T) {
	runProof(t, false, []proofStep{
		{proofContact, 10, 20, 0, true},
		{proofLeader, 30, 40, 0, true},
		{proofNothing, 50, 60, 0, true},
		{proofCommit, 70, 80, 0 + 1140, false},
	})
}

// The Deadline counts from the second newest contact that was answered T/4 before the transaction was sent, or from the
// ConnectRequest.
func TestTheDeadlineCountsFromAContactThatWasReported(t *testing.T) {
	runProof(t, false, []proofStep{
		{proofContact, 100, 110, 0, true},
		{proofContact, 200, 210, 0, true},
		{proofLeader, 300, 310, 0, true},
		// At 509 the contact of 210 need not have been reported.
		{proofCommit, 509, 510, 1140, false},
		// At 610 the contacts of 110, 210 and 310 have been reported, and one report may be lost.
		{proofCommit, 610, 611, 200 + 1140, false},
		// A commit is a contact as well.
		{proofCommit, 909, 910, 300 + 1140, false},
		{proofCommit, 911, 912, 509 + 1140, false},
	})
}

// Answers on one connection prove nothing for another connection.
func TestAConnectionStartsWithoutContacts(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	for i := 0; i < 1000; i += 100 {
		p.answer(r, proofCommit, instant(i), instant(i+5), i > 0)
	}
	before := p.deadline
	r = p.connect(instant(1000), proofTimeout)
	if !p.deadline.Equal(before) {
		t.Error("a ConnectResponse has moved the deadline")
	}
	p.answer(r, proofLeader, instant(1010), instant(1015), true)
	if !p.deadline.Equal(before) {
		t.Error("a sync has moved the deadline")
	}
	p.answer(r, proofCommit, instant(1020), instant(1025), true)
	if want := instant(1000 + 1140); !p.deadline.Equal(want) {
		t.Errorf("the deadline is %v off", p.deadline.Sub(want))
	}
}

// An answer that arrives after the deadline of a holder does not count: the
// leader may have been paused, and be about to end the session.
func TestAnAnswerBehindTheDeadlineDoesNotCountForAHolder(t *testing.T) {
	steps := []proofStep{
		{proofCommit, 10, 20, 1140, false},
		{proofContact, 500, 510, 1140, false},
		{proofContact, 600, 610, 1140, false},
		{proofContact, 700, 710, 1140, false},
		{proofCommit, 1100, 1141, 1140, true},
	}
	runProof(t, true, steps)
	steps[4].deadline = 600 + 1140
	runProof(t, false, steps) // the lapse prevents a grant
}

// After a gap of more than T/2 between leader contacts a grant waits for the answer to a transaction that was sent
// T/4 after the first answer behind the gap.
func TestALapseKeepsAGrantBack(t *testing.T) {
	runProof(t, false, []proofStep{
		{proofLeader, 100, 110, 0, true},
		{proofLeader, 500, 690, 0, true}, // 590 after the last one was written: no lapse
		{proofCommit, 700, 710, 1140, false},
	})
	runProof(t, false, []proofStep{
		{proofContact, 300, 301, 0, true},
		{proofContact, 500, 501, 0, true},
		{proofContact, 700, 701, 0, true},
		{proofCommit, 1000, 1010, 300 + 1140, true}, // 1010 after the ConnectRequest
		{proofCommit, 1309, 1312, 500 + 1140, true}, // written before 1310
		{proofCommit, 1311, 1313, 700 + 1140, false},
	})
}

// A ConnectResponse does not end a gap between leader contacts: a leader that was paused
// answers the ConnectRequest of a session that it is about to end.
func TestANewConnectionDoesNotEndAGap(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	p.answer(r, proofLeader, instant(100), instant(110), false)
	r = p.connect(instant(1300), proofTimeout) // answered when the leader runs again
	p.answer(r, proofCommit, instant(1600), instant(1610), false)
	if p.grantable(instant(1610)) {
		t.Error("something may be granted right behind a gap of 1.5 s")
	}
	p.answer(r, proofCommit, instant(1911), instant(1915), false)
	if !p.grantable(instant(1915)) {
		t.Error("nothing may be granted a quarter of the session timeout after the gap")
	}
}

// The shortest timeout that a server has granted counts, from its ConnectRequest on, and a longer one has no effect.
func TestTheShortestTimeoutCounts(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	p.answer(r, proofCommit, instant(1), instant(2), false)
	p.connect(instant(100), 2*proofTimeout)
	if p.timeout != proofTimeout || !p.deadline.Equal(instant(1140)) {
		t.Errorf("a longer timeout: %v, deadline %v off", p.timeout, p.deadline.Sub(instant(1140)))
	}
	p.connect(instant(200), proofTimeout/2)
	if want := instant(200 + 570); p.timeout != proofTimeout/2 || !p.deadline.Equal(want) {
		t.Errorf("a shorter timeout: %v, deadline %v off", p.timeout, p.deadline.Sub(want))
	}
}

// The time for which the machine is suspended counts as time.
func TestASuspensionCountsAsTime(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	p.answer(r, proofCommit, instant(1), instant(2), false)
	p.suspended(r, 400*time.Millisecond, instant(10))
	if want := instant(1140 - 400); !p.deadline.Equal(want) {
		t.Errorf("the deadline is %v off", p.deadline.Sub(want))
	}
	if p.grantable(instant(10)) {
		t.Error("something may be granted right after a suspension")
	}
	// The connection was opened 400 ms earlier than the monotonic clock says.
	p.answer(r, proofCommit, instant(320), instant(321), true)
	if want := instant(1140 - 400); !p.deadline.Equal(want) || p.grantable(instant(321)) {
		t.Errorf("after a commit the deadline is %v off, grantable %v", p.deadline.Sub(want), p.grantable(instant(321)))
	}
	// The gap between the leader contacts was 721 ms long; now T/4 has passed.
	p.answer(r, proofCommit, instant(621), instant(622), true)
	if !p.grantable(instant(622)) {
		t.Error("nothing may be granted after the end of the lapse")
	}
}

// A record stays short, regardless of the number of answered requests, and keeps every contact that a commit needs.
func TestARecordOfManyContactsStaysShort(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	for i := range 100_000 {
		p.answer(r, proofCommit, instant(i), instant(i+1), i > 0)
		if len(r.contacts) > 2*sampleFraction {
			t.Fatalf("%d contacts are kept", len(r.contacts))
		}
		// The second newest contact that was answered 300 before, in steps of T/64.
		if old := instant(i).Sub(p.deadline.Add(-1140 * time.Millisecond)); i > 400 && (old < 300*time.Millisecond || old > 342*time.Millisecond) {
			t.Fatalf("at %d the deadline counts from %v before", i, old)
		}
	}
}

// nextTouch returns the time from which another commit proves more.
func TestNextTouch(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	if _, ok := r.nextTouch(instant(1), proofTimeout); ok {
		t.Error("without a contact there is nothing to wait for")
	}
	for _, at := range []int{100, 200, 300} {
		p.answer(r, proofContact, instant(at), instant(at+10), false)
	}
	for _, step := range []struct{ now, want int }{{350, 510}, {509, 510}, {510, 610}, {609, 610}} {
		if at, ok := r.nextTouch(instant(step.now), proofTimeout); !ok || !at.Equal(instant(step.want)) {
			t.Errorf("at %d: %v, %v, want %d", step.now, at.Sub(instant(0)), ok, step.want)
		}
		before, after := r.touched(instant(step.want-1), proofTimeout), r.touched(instant(step.want), proofTimeout)
		if !after.After(before) {
			t.Errorf("a commit at %d proves no more than one before", step.want)
		}
	}
	if _, ok := r.nextTouch(instant(610), proofTimeout); ok {
		t.Error("all contacts count already")
	}
}
