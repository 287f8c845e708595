package enumeration_test

import (
	"context"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A settlement is a way to settle a message.
type settlement struct {
	verb string
	do   func(ctx context.Context, c *client, m *zksync.Message) error
	wait time.Duration // before it
}

var (
	ack   = settlement{"Ack", func(ctx context.Context, _ *client, m *zksync.Message) error { return m.Ack(ctx) }, 0}
	nack  = settlement{"Nack", func(ctx context.Context, _ *client, m *zksync.Message) error { return m.Nack(ctx) }, 0}
	retry = settlement{"Retry", func(ctx context.Context, _ *client, m *zksync.Message) error { return m.Retry(ctx, soon) }, 0}
	move  = settlement{"MoveTo", func(ctx context.Context, c *client, m *zksync.Message) error { return m.MoveTo(ctx, targetOf(c)) }, 0}
)

// targetOf returns the queue to which the clients move messages.
func targetOf(c *client) *zksync.Queue {
	return zksync.NewQueue(c.manager(), "/queues/target", c.stage.layout())
}

// settleAll receives with Messages like chanAll, settles the first message with first and
// acknowledges all others.
func (mb *mailbox) settleAll(c *client, first settlement) {
	for n := 0; !mb.failed(); n++ {
		over := mb.producers.over()
		select {
		case m, ok := <-mb.values.of(c).Messages():
			if !ok {
				mb.closed(c)
				return
			}
			mb.receivedOnce(c, m)
			c.wake()
			if n == 0 {
				mb.settle(c, m, first)
			} else {
				mb.settle(c, m, ack)
			}
		case <-mb.after(timeout):
			if over {
				return
			}
		}
	}
}

// receivedOnce records the delivery of a message, and checks its Attempts.
func (mb *mailbox) receivedOnce(c *client, m *zksync.Message) {
	mb.received(c, m.Data, func(known *message) {
		known.got++
		// A delivery counts even if its receiver has not settled the message.
		if m.Attempts <= known.receipts && mb.harm()&(removes|unorders) == 0 {
			mb.fail("client %d received %s with %d attempts after %d deliveries", c.number, m.Data, m.Attempts, known.receipts)
		}
		known.receipts++
		// The number is forgotten with the claims.
		if m.Attempts <= known.back && mb.harm()&(removes|unorders) == 0 {
			mb.fail("client %d received %s with %d attempts after %d were given back", c.number, m.Data, m.Attempts, known.back)
		}
	})
}

// settle settles a message.
func (mb *mailbox) settle(c *client, m *zksync.Message, how settlement) {
	id := idOf(m.Data)
	c.sleep(how.wait)
	if how.verb != ack.verb {
		// From the call on, and after any result, it may be delivered again.
		mb.mu.Lock()
		mb.messages[id].got--
		mb.mu.Unlock()
	} else if mb.harm()&(errs|misreads) != 0 {
		// An Ack that fails gives the message back, before it returns.
		mb.mu.Lock()
		mb.messages[id].mayReturn = true
		mb.mu.Unlock()
	}
	err := c.do(how.verb+" "+id, func(ctx context.Context) error { return how.do(ctx, c, m) }, orLost, mb.hostile)
	if err != nil {
		return
	}
	mb.mu.Lock()
	defer mb.mu.Unlock()
	switch how.verb {
	case ack.verb:
		mb.messages[id].settled++
	case move.verb:
		mb.messages[id].moved = true
	default:
		mb.messages[id].back++
	}
}

// drainTarget takes the messages that were moved. A message is in one queue alone.
func (mb *mailbox) drainTarget(c *client) error {
	q := targetOf(c)
	for {
		data, ok, err := mb.tryTake(q)
		if err != nil {
			return err
		}
		if !ok {
			return q.Close()
		}
		mb.say("client %d takes %s from the target", c.number, idOf(data))
		mb.mu.Lock()
		if m := mb.messages[idOf(data)]; m == nil || m.taken+m.got+m.settled > 0 {
			mb.fail("the target has %q, which was not put, or was received from the queue", data)
		} else {
			m.taken++
		}
		mb.mu.Unlock()
	}
}

var settleScenarios = slices.Concat(settleScenariosOf(queueKinds...), []*scenario{prefetchScenario}, hostileScenariosOf(queueKinds...))

// settleScenariosOf returns the scenarios of each kind of queue in which messages are settled in
// other ways than with Ack and Nack.
func settleScenariosOf(kinds ...queueKind) (all []*scenario) {
	for _, kind := range kinds {
		settling := func(first settlement) func(s *stage) {
			return func(s *stage) {
				mb := withQueue(s, kind)
				a, b := s.clients[0], s.clients[1]
				s.together(
					func() { mb.produce(a, "1", "2") },
					func() { b.sleep(soon); mb.settleAll(b, first) },
				)
			}
		}
		all = append(all,
			// B puts off the first message.
			&scenario{name: kind.name + "-retry", clients: 2, run: settling(retry)},
			// B moves the first message to another queue.
			&scenario{name: kind.name + "-move", clients: 2, run: settling(move)},
		)
	}
	return all
}

// B, which may have one message at a time, receives three messages.
var prefetchScenario = &scenario{name: "queue-prefetch", clients: 2, run: func(s *stage) {
	limited := queueKinds[0]
	limited.open = func(s *stage, m *session.Manager) anyQueue {
		return zksync.NewQueue(m, queuePath, s.layout(), zksync.WithPrefetch(1))
	}
	mb := withQueue(s, limited)
	a, b := s.clients[0], s.clients[1]
	s.together(
		func() { mb.put(a, "1"); mb.put(a, "2"); mb.produce(a, "3") },
		func() {
			b.sleep(soon)
			mb.receiveOneByOne(b)
		},
	)
}}

// receiveOneByOne receives and acknowledges messages, and waits for a second one before each Ack.
func (mb *mailbox) receiveOneByOne(c *client) {
	var m *zksync.Message
	for !mb.failed() {
		over := mb.producers.over()
		wait := timeout
		if m != nil {
			wait = soon
		}
		select {
		case next, ok := <-mb.values.of(c).Messages():
			if !ok {
				mb.closed(c)
				return
			}
			mb.received(c, next.Data, func(m *message) { m.got++ })
			c.wake()
			if m != nil && !mb.mayRepeat() {
				mb.fail("client %d received %s beside %s", c.number, next.Data, m.Data)
			}
			m = next
		case <-mb.after(wait):
			if m != nil {
				mb.settle(c, m, ack)
			} else if over {
				return
			}
			m = nil
		}
	}
}
