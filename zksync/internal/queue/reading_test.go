package queue

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A taking is a Take that runs in a goroutine.
type taking struct {
	cancel context.CancelFunc
	data   chan string // the message, or the error
}

// take starts a Take, and gives it the time to send its requests.
func (h harness) take(c *Consumer) taking {
	ctx, cancel := context.WithCancel(h.Context())
	t := taking{cancel, make(chan string, 1)}
	go func() {
		data, _, err := c.Take(ctx, true)
		if err != nil {
			data = []byte(err.Error())
		}
		t.data <- string(data)
	}()
	time.Sleep(time.Second)
	return t
}

// want fails the test if a Take has not returned a message within a minute.
func (t taking) want(h harness, data string) {
	h.Helper()
	select {
	case got := <-t.data:
		if got != data {
			h.Errorf("Take has returned %q, want %q", got, data)
		}
	case <-time.After(time.Minute):
		h.Errorf("Take has not returned, want %q", data)
	}
}

// wantNone fails the test if a Take returns within a second. Longer silence would break a connection that is held.
func (t taking) wantNone(h harness) {
	h.Helper()
	select {
	case got := <-t.data:
		h.Errorf("Take has returned %q, and must wait", got)
	case <-time.After(time.Second):
	}
}

// wantBoth fails the test if two Takes do not return two messages, in any order.
func (h harness) wantBoth(a, b taking, x, y string) {
	h.Helper()
	if first := <-a.data; first == y {
		b.want(h, x)
	} else {
		b.want(h, y)
	}
}

// withThrottledRead runs a test in which servers throttle the reads of the first message by the value a until release.
func withThrottledRead(t *testing.T, test func(h harness, a, b *Consumer, release func())) {
	inBubble(t, func(h harness) {
		h.put(0, 4)
		m := h.srv.Connect(h)
		a, b := h.consumer(m, 8, InOrder), h.consumer(h.srv.Connect(h), 8, InOrder)
		s, err := m.Session(h.Context())
		h.must(err)
		var released atomic.Bool
		h.srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: testQueue + "/" + itemName(0), Session: s.ID(), Times: -1,
			Match: func(zkserver.Op) bool { return !released.Load() }, Do: zkserver.Throttle})
		test(h, a, b, func() { released.Store(true) })
	})
}

// A Take returns no message while another Take of the value reads an earlier one, which another process could still get
// (partitionList.trySend: unsent; reading.compare).
func TestTakeWaitsForTheReadOfAnEarlierMessage(t *testing.T) {
	withThrottledRead(t, func(h harness, a, b *Consumer, release func()) {
		first, second := h.take(a), h.take(a)
		second.wantNone(h)
		h.take(b).want(h, "0")
		release()
		h.wantBoth(first, second, "1", "2")
	})
}

// A Take that has read a message returns an earlier one instead that another Take of the value has put back
// (partitionList.hasEarlier).
func TestTakePrefersAnEarlierMessageThatIsPutBack(t *testing.T) {
	withThrottledRead(t, func(h harness, a, b *Consumer, release func()) {
		first, second := h.take(a), h.take(a)
		first.cancel()
		release()
		second.want(h, "0")
		h.take(b).want(h, "1")
	})
}

// While the removal of a message is under way, a Take of the value may send a later removal, which fails with the first
// (partitionList.trySend: After; sender.prepare: failed).
func TestTakeFailsWithTheRemovalOfAnEarlierMessage(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 4)
		a, b := h.consumer(h.srv.Connect(h), 8, InOrder), h.consumer(h.srv.Connect(h), 8, InOrder)
		// The answer that refuses the removal waits, and then the second read of the message does, so that the value
		// cannot remove it again.
		removal := zksynctest.Fault{Op: zkserver.OpMulti, Path: testQueue + "/" + itemName(0), Do: zkserver.Throttle}
		h.srv.Inject(removal)
		refusal, answer := make(chan struct{}), make(chan struct{})
		removal.At, removal.Do = zksynctest.BeforeReply, zksynctest.Hold(refusal)
		h.srv.Inject(removal)
		first, second := h.take(a), h.take(a)
		h.srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: testQueue + "/" + itemName(0), Do: zksynctest.Hold(answer)})
		close(refusal)
		second.wantNone(h)
		h.take(b).want(h, "0")
		close(answer)
		h.wantBoth(first, second, "1", "2")
	})
}

// A Take picks again if an earlier message may wait that the next listing will show (partitionList.hasEarlier: unlisted).
func TestTakePicksAgainAfterAListing(t *testing.T) {
	withRig(t, 2, func(r rig) {
		c := r.open(InOrder, false)
		var picked []*reading
		for range 2 {
			sel, err := c.v.next(r.Context(), nil, nil, false)
			r.must(err)
			picked = append(picked, sel.reading)
		}
		l := &c.v.partitions
		l.requeue(picked[0].ref)
		l.endReading(picked[0])
		l.mu.Lock()
		l.relistAll()
		l.mu.Unlock()
		if e, again := l.trySend(picked[1], commit.Tx{}); e != nil || !again {
			r.Error("the removal was sent ahead of an earlier message that waits")
		}
	})
}

// The removals of messages of different partitions are sent in the order of the partitions (reading.compare).
func TestReadingsAreInTheOrderOfPartitions(t *testing.T) {
	var l readingList
	item := Item{Name: itemName(1), Seq: 1}
	l.add((&partition{key: 2}).ref(item))
	item.Seq = 5
	urgent := l.add((&partition{key: 1}).ref(item))
	if l.unsent[0] != urgent {
		t.Error("the removal from the later partition is the first")
	}
}

// A Take whose pick relies on an older state drops no message that a newer state has returned
// (partitionList.hasEarlier: applied).
func TestTakeByAnOlderStateDropsNoMessage(t *testing.T) {
	withRig(t, 6, func(r rig) {
		other, c := r.open(InOrder, true), r.open(InOrder, false)
		got := other.receive(3)
		pick := func() *reading {
			sel, err := c.v.next(r.Context(), nil, nil, false)
			r.must(err)
			return sel.reading
		}
		l := &c.v.partitions
		late := pick()
		r.must(giveBack(0, got...))
		time.Sleep(time.Second)
		c.forgetOrder()
		first := pick()
		if e, _ := l.trySend(first, commit.Tx{}); e == nil {
			r.Error("the removal of the first message was not sent")
		}
		if e, again := l.trySend(late, commit.Tx{}); e != nil || !again {
			r.Error("the removal of a later message was sent")
		}
		if next := pick().ref.Name; next != itemName(1) {
			r.Errorf("the next Take picks %s, want %s", next, itemName(1))
		}
	})
}

// A Take that waits for its turn says so when its context ends (Consumer.reason: readings; take.run: cancelled).
func TestTakeSaysThatItWaitsForItsTurn(t *testing.T) {
	withThrottledRead(t, func(h harness, a, _ *Consumer, release func()) {
		first, second := h.take(a), h.take(a)
		time.Sleep(time.Minute)
		second.cancel()
		if err := <-second.data; !strings.Contains(err, "another Take of this value reads an earlier one") {
			h.Errorf("the error does not tell why the Take has waited: %s", err)
		}
		release()
		first.want(h, "0")
	})
}
