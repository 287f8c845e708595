package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// listings returns the number of listings of a directory since the operations were reset.
func (h harness) listings(dir string) (n int) {
	for _, op := range h.srv.Ops() {
		if op.Code == zkserver.OpGetChildren2 && op.Path == dir {
			n++
		}
	}
	return n
}

// A Retry beside many messages that are put off does not make idle consumers list all of them, and its message comes in time.
func TestCostOfARetryBesideManyMessages(t *testing.T) {
	inBubble(t, func(h harness) {
		const putOff, retries = 1000, 50
		dir := testQueue + "/" + laterName
		h.put(0, retries)
		ch := h.messages(h.consumer(h.srv.Connect(h), retries, InOrder))
		h.must(h.next(ch, "0", 1).Retry(h.Context(), 2*time.Hour))
		for i := range putOff {
			h.must(h.srv.Create(fmt.Sprintf("%s/%s%010d", dir, laterPrefix(dueAfter(time.Hour), 1), 1000+i), nil))
		}
		time.Sleep(time.Second)
		h.srv.ResetOps()
		for i := 1; i < retries-1; i++ {
			h.must(h.next(ch, fmt.Sprint(i), 1).Retry(h.Context(), 2*time.Hour))
			synctest.Wait()
		}
		last := h.next(ch, fmt.Sprint(retries-1), 1)
		began := time.Now()
		h.must(last.Retry(h.Context(), 0))
		h.must(h.next(ch, fmt.Sprint(retries-1), 2).Ack(h.Context()))
		if took := time.Since(began); took > 2*putOff*nameRest {
			h.Errorf("the message of Retry has come after %v, want %v at most", took, 2*putOff*nameRest)
		}
		time.Sleep(time.Second)
		if n := h.listings(dir); n > 4 {
			h.Errorf("%d listings of the messages of Retry for %d calls, want 4 at most", n, retries-1)
		}
	})
}
