package queue

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// shareBacklog has consumers receive n messages, and returns how many each of them has received in the second half. Then
// it has called atHalf. Each request takes a time, and the work takes none.
func (h harness) shareBacklog(consumers, n int, request time.Duration, atHalf func()) []int {
	h.put(0, n)
	h.srv.Inject(zksynctest.Fault{Times: -1, Do: zksynctest.Delay(request)})
	counts := make([]int, consumers)
	received := make(chan int)
	for i := range consumers {
		c := h.consumer(h.srv.Connect(h), 128, InOrder)
		go c.Deliver(true, func(ctx context.Context, _ *Delivery) bool {
			select {
			case received <- i:
				return true
			case <-ctx.Done():
				return false
			}
		})
		defer h.close(c)
	}
	for got := range n {
		if got == n/2 {
			atHalf()
			clear(counts)
		}
		select {
		case i := <-received:
			counts[i]++
		case <-time.After(time.Hour):
			h.Fatalf("no further message after %v", counts)
		}
	}
	return counts
}

// Consumers that claim messages of a backlog at the same time take turns: no consumer receives more than twice its share,
// and few claims are refused.
func TestConsumersTakeTurns(t *testing.T) {
	inBubble(t, func(h harness) {
		const consumers, n = 8, 8000
		counts := h.shareBacklog(consumers, 2*n, time.Millisecond, func() {})
		if slices.Max(counts) > 2*n/consumers {
			h.Errorf("the consumers have received %v messages, want at most %d each", counts, 2*n/consumers)
		}
		claims, refused := 0, 0
		for _, op := range h.srv.Ops() {
			if op.Code == zkserver.OpMulti && len(op.Sub) > 1 {
				claims++
				if slices.ContainsFunc(op.Sub, func(s zkserver.SubOp) bool { return s.Err == -103 }) {
					refused++
				}
			}
		}
		if refused > claims/5 {
			h.Errorf("%d of %d transactions were refused, want at most a fifth", refused, claims)
		}
	})
}

// Consumers far from the servers take turns, too, and give up no request although each takes longer than a short turn.
func TestTurnsFarFromTheServers(t *testing.T) {
	inBubble(t, func(h harness) {
		const consumers, n = 4, 8000
		var ops []zkserver.Op // not those of Close, which may end a creation
		counts := h.shareBacklog(consumers, 2*n, 2*maxPause, func() { ops = h.srv.Ops() })
		if slices.Max(counts) > 2*n/consumers {
			h.Errorf("the consumers have received %v messages, want at most %d each", counts, 2*n/consumers)
		}
		for _, op := range ops {
			// A consumer that does not know whether its contender was created lists the line.
			if op.Code == zkserver.OpGetChildren2 && op.Path == testQueue+"/"+idleName {
				h.Fatalf("a contender was given up: %v", op)
			}
		}
	})
}

// A frozen consumer at the front of the line does not keep messages from consumers that claim at the same time.
func TestTurnBehindAFrozenConsumer(t *testing.T) {
	inBubble(t, func(h harness) {
		s, err := h.srv.Connect(h).Session(h.Context())
		h.must(err)
		counts := h.shareBacklog(2, 40000, time.Millisecond, func() {
			_, err := s.Create(h.Context(), testQueue+"/"+idleName+"/"+idlePrefix, nil, zk.FlagEphemeral|zk.FlagSequence)
			h.must(err)
		})
		if slices.Min(counts) < 5000 {
			h.Errorf("the consumers have received %v messages behind a frozen one, want at least 5,000 each", counts)
		}
	})
}

// A consumer that is refused again and again claims by a state of the order znode that it has read after its pause.
func TestRefusedConsumerDoesNotStarve(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 4000)
		h.srv.Inject(zksynctest.Fault{Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		c := h.consumer(h.srv.Connect(h), 8, InOrder)
		ctx, cancel := context.WithTimeout(h.Context(), 10*time.Second)
		defer cancel()
		received := h.acknowledged(c)
		// Other clients write the order znode every few milliseconds.
		go func() {
			dir := testQueue + "/" + claimsName
			for ctx.Err() == nil {
				time.Sleep(4 * time.Millisecond)
				name, _ := h.srv.Get(dir)
				if data, ok := h.srv.Get(dir + "/" + string(name)); ok {
					h.must(h.srv.Set(dir+"/"+string(name), data))
				}
			}
		}()
		n := 0
		for ctx.Err() == nil {
			select {
			case <-received:
				n++
			case <-ctx.Done():
			}
		}
		if n < 1000 {
			h.Errorf("%d messages in 10 s, want at least 1,000", n)
		}
		h.close(c)
	})
}

// A message that a consumer at the front of the line begins to skip is delivered to the idle consumers behind it.
func TestIdleConsumerBehindOneThatBeginsToSkip(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 0)
		a, b := h.messages(h.consumer(h.srv.Connect(h), 8, InOrder)), h.messages(h.consumer(h.srv.Connect(h), 8, InOrder))
		// The consumer that receives the last message is the last one in the line.
		var last *Delivery
		received := make(map[<-chan *Delivery]*Delivery)
		for i := 0; len(received) < 2; i++ {
			time.Sleep(time.Second)
			h.put(i, i+1)
			select {
			case last = <-a:
				received[a] = last
			case last = <-b:
				received[b] = last
			}
		}
		time.Sleep(time.Second)
		skipped, from := received[a], b
		if skipped == last {
			skipped, from = received[b], a
		}
		h.must(h.srv.Create(skipped.ID+"/child", nil))
		if err := skipped.Ack(h.Context()); session.ClassOf(err) != session.ClassNotEmpty {
			h.Errorf("Ack: %v, want that the message has a child", err)
		}
		h.next(from, string(skipped.Data), 2)
	})
}

// A consumer that ends while it does not know whether it has joined the line does not hold up the line.
func TestEndWhileItJoinsTheLine(t *testing.T) {
	const line = testQueue + "/" + idleName
	for name, do := range map[string]func(h harness, s int64) (after func()){
		"Close does not wait for the answer": func(h harness, s int64) func() {
			answer := make(chan struct{})
			h.srv.Inject(zksynctest.Fault{Session: s, Path: line + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Hold(answer)})
			return func() { close(answer) }
		},
		"the answer is an internal error": func(h harness, s int64) func() {
			h.srv.Inject(zksynctest.Fault{Session: s, Path: line + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Error(-1)})
			return func() {}
		},
		"the answer is lost, and the look-up fails twice": func(h harness, s int64) func() {
			h.srv.Inject(zksynctest.Fault{Session: s, Path: line + "/*", At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
			h.srv.Inject(zksynctest.Fault{Session: s, Path: line, Op: zkserver.OpGetChildren2, Times: 2, At: zksynctest.BeforeReply, Do: zksynctest.Error(-1)})
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(h harness) {
				h.put(0, 0)
				h.must(h.srv.Create(line, nil))
				a := h.messages(h.consumer(h.srv.Connect(h), 8, InOrder))
				time.Sleep(time.Second)
				m := h.srv.Connect(h)
				s, err := m.Session(h.Context())
				h.must(err)
				after := do(h, s.ID())
				ended := h.consumer(m, 8, InOrder)
				h.messages(ended)
				time.Sleep(time.Second)
				ctx, cancel := context.WithTimeout(h.Context(), time.Second)
				defer cancel()
				ended.Close(ctx)
				after()
				time.Sleep(time.Minute)
				b := h.messages(h.consumer(h.srv.Connect(h), 8, InOrder))
				for i := range 10 {
					h.put(i, i+1)
					select {
					case <-a:
					case <-b:
					case <-time.After(time.Hour):
						h.Fatalf("message %d comes to no consumer", i)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}
