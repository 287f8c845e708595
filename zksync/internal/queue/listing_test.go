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

// New spans of a DelayQueue do not make an idle consumer list all of many spans each, and a message in a new span comes in time.
func TestCostOfANewSpanBesideManySpans(t *testing.T) {
	inBubble(t, func(h harness) {
		const spans, more = 1000, 50
		span := func(i int) string {
			return testQueue + "/" + DelayPartition(time.Now().Add(time.Hour+time.Duration(i)*partitionWidth).UnixMilli())
		}
		h.must(h.srv.Create(testQueue, nil))
		for i := range spans {
			h.must(h.srv.Create(span(i), nil))
		}
		ch := h.messages(h.consumer(h.srv.Connect(h), 1, ByTime))
		time.Sleep(time.Second)
		h.srv.ResetOps()
		for i := range more {
			h.must(h.srv.Create(span(spans+i), nil))
			synctest.Wait()
		}
		began, due := time.Now(), time.Now().UnixMilli()
		now := testQueue + "/" + DelayPartition(due)
		h.must(h.srv.Create(now, nil))
		h.must(h.srv.Create(now+"/"+DelayedPrefix(due)+"0000000000", []byte("now")))
		h.must(h.next(ch, "now", 1).Ack(h.Context()))
		if took := time.Since(began); took > 2*spans*nameRest {
			h.Errorf("the message in a new span has come after %v, want %v at most", took, 2*spans*nameRest)
		}
		if n := h.listings(testQueue); n > 3 {
			h.Errorf("%d listings of the spans after %d new ones, want 3 at most", n, more+1)
		}
	})
}

// A view looks at no span that has not begun, but at one whose messages it may know, also if the clock was set back.
func TestSpansThatHaveBegun(t *testing.T) {
	l := partitionList{cfg: &Config{Path: testQueue, Kind: ByTime}}
	l.replace([]string{"t-0000000030", "t-0000000010", "t-0000000020"}, nil)
	for i, at := range []struct{ now, want int }{{9_999, 0}, {10_000, 1}, {29_999, 2}, {10_000, 2}, {30_000, 3}} {
		if n := len(l.begun(int64(at.now))); n != at.want {
			t.Errorf("look %d, at %d ms: %d spans have begun, want %d", i, at.now, n, at.want)
		}
	}
}
