package enumeration_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// anyQueue has the common methods of the three queues.
type anyQueue interface {
	Take(ctx context.Context) ([]byte, error)
	TryTake(ctx context.Context) ([]byte, bool, error)
	Chan() <-chan []byte
	Messages() <-chan *zksync.Message
	Err() error
	Close() error
}

// A queueKind is one of the three queues.
type queueKind struct {
	name string
	open func(s *stage, m *session.Manager) anyQueue
	put  func(ctx context.Context, q anyQueue, data []byte) error
}

const queuePath = "/queues/q"

var queueKinds = []queueKind{
	{"queue",
		func(s *stage, m *session.Manager) anyQueue {
			return zksync.NewQueue(m, queuePath, s.layout())
		},
		func(ctx context.Context, q anyQueue, data []byte) error { return q.(*zksync.Queue).Put(ctx, data) }},
	{"priority",
		func(_ *stage, m *session.Manager) anyQueue {
			return zksync.NewPriorityQueue(m, queuePath)
		},
		func(ctx context.Context, q anyQueue, data []byte) error {
			return q.(*zksync.PriorityQueue).Put(ctx, data, 7)
		}},
	{"delay",
		func(_ *stage, m *session.Manager) anyQueue {
			return zksync.NewDelayQueue(m, queuePath)
		},
		func(ctx context.Context, q anyQueue, data []byte) error {
			return q.(*zksync.DelayQueue).Put(ctx, data, soon)
		}},
}

// A mailbox records the messages of a queue and checks their deliveries.
type mailbox struct {
	*stage
	kind   queueKind
	values *values[anyQueue]

	producers countdown
	hostile   allowance // of errors of Ack that another client causes

	mu       sync.Mutex
	messages map[string]*message
}

// A message is the recorded state of a message.
type message struct {
	sure     bool // Put has returned nil
	never    bool // Put has reported that the message will not be in the queue
	taken    int  // by Take
	got      int  // by Chan or Messages
	settled  int  // acknowledged
	moved    bool // MoveTo has returned nil
	receipts int  // deliveries by Messages
	back     int  // calls of Nack and Retry that have returned nil

	behind    bool // it was put behind a fault that deletes messages
	returned  bool // a Take returned it without knowing whether it has removed the message
	mayReturn bool // an Ack may fail by an internal error of a server, and give it back
}

func withQueue(s *stage, kind queueKind) *mailbox {
	mb := &mailbox{stage: s, kind: kind, messages: make(map[string]*message), hostile: or(nil)}
	mb.producers.left.Store(1)
	s.putAgain = func(id string) {
		mb.mu.Lock()
		defer mb.mu.Unlock()
		mb.messages[id] = &message{sure: true, behind: true}
	}
	s.deleted = func() {
		mb.mu.Lock()
		defer mb.mu.Unlock()
		for _, m := range mb.messages {
			m.behind = false
		}
	}
	mb.values = valuesOf(func(_ *client, m *session.Manager) anyQueue { return kind.open(s, m) })
	s.mayRemain(s.beside("zksync-markers/*"), closes) // markers of a Manager that was closed before its queues
	s.mayRemain(s.beside("zksync-later"), unorders)
	s.probe("the messages that are left", mb.drain)
	return mb
}

// orUnknown allows an unknown outcome of an operation if its call was ended.
func orUnknown(s *stage, err error) bool {
	return s.harm()&(cancels|closes|wipes) != 0 && errors.Is(err, zksync.ErrOutcomeUnknown)
}

// put puts a message.
func (mb *mailbox) put(c *client, id string) {
	m := &message{}
	mb.mu.Lock()
	mb.messages[id] = m
	mb.mu.Unlock()
	defer mb.giveUpAlone(c)()
	err := c.do("Put "+id, func(ctx context.Context) error { return mb.kind.put(ctx, mb.values.of(c), mb.payload(id)) }, orUnknown)
	mb.mu.Lock()
	defer mb.mu.Unlock()
	m.sure = err == nil
	m.never = err != nil && !errors.Is(err, zksync.ErrOutcomeUnknown)
}

// received records a delivery of a message.
func (mb *mailbox) received(c *client, data []byte, note func(m *message)) {
	id := idOf(data)
	mb.say("client %d receives %s", c.number, id)
	mb.mu.Lock()
	defer mb.mu.Unlock()
	m := mb.messages[id]
	switch {
	case m == nil:
		mb.fail("client %d received %q, which was not put", c.number, id)
		return
	case m.never:
		mb.fail("client %d received %s, of which Put has said that it will never be there", c.number, id)
	case (m.taken > 0 || m.settled > 0 || m.moved) && !mb.mayNotKnow():
		mb.fail("client %d received %s again after it was taken, acknowledged or moved", c.number, id)
	case m.got > 0 && !m.mayReturn && !mb.mayRepeat():
		mb.fail("client %d received %s again", c.number, id)
	}
	note(m)
}

// mayNotKnow reports whether a consumer may not know yet that another client has deleted its ledger: its
// session checks the ledger once in a quarter of its timeout.
func (mb *mailbox) mayNotKnow() bool {
	mb.stage.mu.Lock()
	last := mb.last
	mb.stage.mu.Unlock()
	return mb.harm()&removes != 0 && time.Since(last) < timeout/2
}

// mayRepeat reports whether messages may be delivered again: after the loss of a session, after the
// end of a Manager, and if the servers have refused to remove a message.
func (mb *mailbox) mayRepeat() bool {
	return mb.harm()&(loses|closes|refuses|removes|forbids|touches) != 0
}

// takeAll takes messages until all producers are done, and then until none comes for a while.
func (mb *mailbox) takeAll(c *client) {
	for !c.gone() && !mb.failed() {
		over := mb.producers.over()
		var data []byte
		err := c.impatiently("Take", timeout, func(ctx context.Context) (err error) {
			data, err = mb.values.of(c).Take(ctx)
			return err
		}, orUnknown)
		if data != nil {
			mb.took(c, data, err)
		} else if over && errors.Is(err, context.DeadlineExceeded) {
			return
		}
	}
}

// took records a message that Take has returned. With ErrOutcomeUnknown the message may still be in
// the queue.
func (mb *mailbox) took(c *client, data []byte, err error) {
	if !errors.Is(err, zksync.ErrOutcomeUnknown) {
		if id := idOf(data); mb.isStolen(id) {
			mb.fail("client %d took %s, which another client had taken", c.number, id)
		}
		mb.received(c, data, func(m *message) { m.taken++ })
		return
	}
	mb.say("client %d may have taken %s", c.number, idOf(data))
	mb.mu.Lock()
	defer mb.mu.Unlock()
	if m := mb.messages[idOf(data)]; m == nil {
		mb.fail("client %d took %q, which was not put", c.number, data)
	} else {
		m.returned = true
	}
}

// drain takes all remaining messages, and checks that no message is lost. The last client drains a
// queue for all clients.
func (mb *mailbox) drain(_ context.Context, c *client) error {
	if old := mb.values.of(c); c.number < len(mb.clients)-1 {
		return old.Close()
	}
	if err := mb.values.of(c).Close(); err != nil {
		return err
	}
	// The claims of a consumer that could not close disappear with its session.
	wait, cancel := context.WithTimeout(mb.ctx, 4*timeout)
	defer cancel()
	if err := mb.awaitSessions(wait); err != nil {
		return err
	}
	mb.pause(2 * soon) // the last message of a DelayQueue is due then
	q := mb.kind.open(mb.stage, c.manager())
	for {
		data, ok, err := mb.tryTake(q)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		mb.received(c, data, func(m *message) { m.taken++ })
	}
	if err := mb.drainTarget(c); err != nil {
		return err
	}
	mb.mu.Lock()
	defer mb.mu.Unlock()
	for id, m := range mb.messages {
		deleted := mb.isStolen(id) || mb.harm()&wipes != 0 && !m.behind
		if m.sure && m.taken+m.got == 0 && !m.returned && !deleted {
			mb.fail("message %s is lost", id)
		}
	}
	return q.Close()
}

// chanAll receives with Chan until all producers are done, and then until no message comes for a
// while.
func (mb *mailbox) chanAll(c *client) {
	for !mb.failed() {
		over := mb.producers.over()
		select {
		case data, ok := <-mb.values.of(c).Chan():
			if !ok {
				mb.closed(c)
				return
			}
			mb.received(c, data, func(m *message) { m.got++ })
			c.wake()
		case <-mb.after(timeout):
			if over {
				return
			}
		}
	}
}

// closed checks the reason for which a channel was closed.
func (mb *mailbox) closed(c *client) {
	if err := mb.values.of(c).Err(); !mb.refused(err) && (mb.harm()&forbids == 0 || !errors.Is(err, zk.ErrNoAuth)) && (!c.gone() || !errors.Is(err, session.ErrClosed)) {
		mb.fail("client %d: the channel was closed: %v", c.number, err)
	}
}

// A countdown counts the producers that have messages left to put.
type countdown struct{ left atomic.Int64 }

func (n *countdown) over() bool { return n.left.Load() == 0 }

// produce puts messages, and counts as a producer until all of them are put.
func (mb *mailbox) produce(c *client, ids ...string) {
	for i, id := range ids {
		if i > 0 {
			c.sleep(while)
		}
		mb.put(c, id)
	}
	mb.producers.left.Add(-1)
}
