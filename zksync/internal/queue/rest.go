package queue

import (
	"context"
	"math"
	"time"

	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// rest waits before a write of the order znode that relies on the state that this consumer has
// written itself. Only this consumer knows the version of that state: without a rest, it would win
// each race against consumers that must read the state first.
func (l *ledger) rest(ctx context.Context) error {
	if st := l.v.order.known(); st.isOwn() {
		return znode.WaitUntil(ctx, l.v.s, nil, st.restUntil)
	}
	return nil
}

// restAfter returns the end of the rest that follows a write of the order znode, whose answer took
// a time, beside other consumers. Others need a round trip between their read and their write.
func (l *ledger) restAfter(took time.Duration, consumers int) time.Time {
	if consumers <= 1 {
		return time.Time{}
	}
	rest := float64(2*max(took, leastTrip)) * math.Sqrt(float64(min(consumers, 16))) * (0.5 + l.line.rnd.Float64()/2)
	return time.Now().Add(time.Duration(rest))
}
