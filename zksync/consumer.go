package zksync

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session"
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
	view     *queueView
	how      string // Chan or Messages
	bytes    chan []byte
	messages chan *Message
	err      error
	former   []int64 // the ids of sessions that were lost

	pending   pendingRemovals
	unsettled unsettledMessages
	skips     skips
}

func (c *consumer) init(q *queue) {
	c.q, c.id = q, []byte(newGUID())
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
	if c.view != nil {
		c.view.dismiss()
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

// view is the one of a session.
func (c *consumer) viewOf(s *session.Session) *queueView {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Err() != nil {
		// A caller with an old session must not replace the view of the next
		// session, which other goroutines use.
		return newQueueView(c, s)
	}
	if c.view == nil || c.view.s != s {
		if c.view != nil {
			c.view.dismiss()
		}
		c.view = newQueueView(c, s)
	}
	return c.view
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
