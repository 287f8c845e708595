package zksync

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A consumer is the side of a queue that takes messages out of it.
type consumer struct {
	q  *queue
	id []byte // the data of our claims

	ctx    context.Context // ends when Close begins
	cancel context.CancelCauseFunc
	life   context.Context // ends when Close does not wait any longer
	kill   context.CancelCauseFunc
	wg     sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	current  *outlook
	how      string // Chan or Messages
	bytes    chan []byte
	messages chan *Message
	err      error
	former   []int64 // the ids of sessions that were lost

	owed      owed
	unsettled unsettled
	skips     skips
}

func (c *consumer) init(q *queue) {
	c.q, c.id = q, []byte(znode.NewGUID())
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.life, c.kill = context.WithCancelCause(context.Background())
}

// close gives back the messages that were not received, waits for that as long as ctx
// lasts, and returns when no goroutine of the consumer runs any more. It may still
// use q.removals.
func (c *consumer) close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrQueueClosed)
	defer context.AfterFunc(ctx, func() { c.kill(ErrQueueClosed) })()
	c.wg.Wait()
	c.abandon()
	c.kill(ErrQueueClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		c.current.dismiss()
	}
}

// spawn runs f in a goroutine that close waits for. It reports false, and does
// nothing, once close has begun.
func (c *consumer) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(f)
	return true
}

// enter has close wait for leave, unless it has begun.
func (c *consumer) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrQueueClosed
	}
	c.wg.Add(1)
	return nil
}

func (c *consumer) leave() { c.wg.Done() }

// outlook is the one of a session.
func (c *consumer) outlook(s *session.Session) *outlook {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Err() != nil {
		// A caller with an old session must not replace the outlook of the next
		// session, which other goroutines use.
		return newOutlook(c, s)
	}
	if c.current == nil || c.current.s != s {
		if c.current != nil {
			c.current.dismiss()
		}
		c.current = newOutlook(c, s)
	}
	return c.current
}

// start begins to consume, once, in the way that is called how.
func (c *consumer) start(how string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.how != "" && c.how != how {
		panic(fmt.Sprintf("zksync: %s of the queue %s, which is consumed by %s: a value has one way of consuming", how, c.q.path, c.how))
	}
	if c.how == how {
		return
	}
	c.how = how
	p := &pump{c: c, limit: c.q.cfg.prefetch, kick: make(chan struct{}, 1)}
	var over func()
	if how == "Chan" {
		c.bytes = make(chan []byte)
		p.deliver = p.deliverBytes
		over = func() { close(c.bytes) }
	} else {
		c.messages = make(chan *Message)
		p.deliver = p.deliverMessage
		over = func() { close(c.messages) }
	}
	if c.err = c.q.usable(); c.err != nil || c.closed {
		over()
		return
	}
	c.wg.Go(func() {
		err := p.run()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
		over()
	})
}

// owed are the messages that were received and whose removal is not known to have
// come about, by their names, with the czxids of their znodes. They are removed
// without being delivered again, if we get hold of them again.
type owed struct {
	mu      sync.Mutex
	removal map[string]int64
}

func (o *owed) add(cl *claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.removal == nil {
		o.removal = make(map[string]int64)
	}
	o.removal[cl.claimName()] = cl.czxid
}

// settle reports whether a message is owed, and forgets it.
func (o *owed) settle(r ref, of int64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := r.claimName()
	czxid, ok := o.removal[name]
	if ok = ok && czxid == of; ok {
		delete(o.removal, name)
	}
	return ok
}

// keep forgets the messages of a lane that are not in its listing, because they have
// been removed.
func (o *owed) keep(l *lane, found []item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.removal) == 0 {
		return
	}
	there := make(map[string]struct{}, len(o.removal))
	for _, it := range found {
		name := ref{l, it}.claimName()
		if _, ok := o.removal[name]; ok {
			there[name] = struct{}{}
		}
	}
	for name := range o.removal {
		if _, ok := there[name]; !ok && l.claims(name) {
			delete(o.removal, name)
		}
	}
}
