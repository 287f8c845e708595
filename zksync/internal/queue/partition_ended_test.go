package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A consumer that only takes messages writes no claims, and does not remember each directory that was deleted: only those
// that may have a part in the claim table.
func TestEndedDirectoriesWithoutClaimsAreForgotten(t *testing.T) {
	table := &claimTable{partitions: make(map[int64]*partitionClaims)}
	table.of(1)
	for name, test := range map[string]struct {
		applied *orderState
		want    int
	}{
		"no state is known": {nil, 1000},
		"one part":          {&orderState{table: table}, 1},
	} {
		l := &partitionList{applied: test.applied}
		for czxid := range int64(1000) {
			l.endCzxid(czxid)
		}
		if got := len(l.ended); got != test.want {
			t.Errorf("%s: %d directories are remembered, want %d", name, got, test.want)
		}
	}
}

// A consumer that rests between two listings of many spans does not read all of their directories because another
// consumer has claimed a message of a span that it has not listed yet.
func TestConsumersReadNoSpansWhileTheyRest(t *testing.T) {
	const spans, trip = 8000, 10 * time.Millisecond
	inBubble(t, func(h harness) {
		h.put(0, 0)
		for i := range spans {
			h.must(h.srv.Create(testQueue+"/"+DelayPartition(time.Now().Add(10*time.Hour+time.Duration(i)*10*time.Second).UnixMilli()), nil))
		}
		for range 2 {
			link := h.srv.NewLink(h)
			m := link.Connect(h)
			link.Delay(trip / 2)
			ch := h.messages(h.consumer(m, 32, ByTime))
			go func() {
				for d := range ch {
					go d.Ack(h.Context())
				}
			}()
		}
		time.Sleep(2 * time.Second)
		h.srv.ResetOps()
		const n = 300
		for i := range n {
			due := time.Now().Add(-time.Duration(n-i) * 10 * time.Second).UnixMilli()
			dir := testQueue + "/" + DelayPartition(due)
			_ = h.srv.Create(dir, nil) // it may exist
			h.must(h.srv.Create(fmt.Sprintf("%s/%s%010d", dir, DelayedPrefix(due), i), []byte("x")))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		reads := 0
		for _, op := range h.srv.Ops() {
			if op.Code == zkserver.OpMultiRead && len(op.Sub) >= dirsPerRead {
				reads++
			}
		}
		if reads > 0 {
			h.Errorf("%d requests read %d spans each", reads, dirsPerRead)
		}
		if names, _ := h.srv.Children(testQueue); len(names) < spans {
			h.Errorf("%d children, want %d spans at least", len(names), spans)
		}
	})
}
