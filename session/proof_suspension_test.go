package session

import (
	"testing"
	"time"
)

// A request that was written before a suspension, and answered after it, proves the same as if monotonic time had
// continued. To see this test fail, remove the statement of proof.answer that calls written.
func TestARequestThatASuspensionInterruptsIsOlder(t *testing.T) {
	p := &proof{}
	r := p.connect(instant(0), proofTimeout)
	p.answer(r, proofCommit, instant(1), instant(2), false)
	p.suspended(r, 400*time.Millisecond, instant(1000))
	p.answer(r, proofLeader, instant(800), instant(1001), false)
	p.answer(r, proofLeader, instant(900), instant(1002), false)
	p.answer(r, proofCommit, instant(1302), instant(1303), false)
	if want := instant(800 - 400 + 1140); !p.deadline.Equal(want) {
		t.Errorf("the deadline is %v off", p.deadline.Sub(want))
	}
	// Only a request that is older than the timeout was written before that suspension.
	p.suspended(r, 100*time.Millisecond, instant(1000).Add(proofTimeout+1))
	if n := len(p.suspensions); n != 1 {
		t.Errorf("%d suspensions are remembered, want 1", n)
	}
}
