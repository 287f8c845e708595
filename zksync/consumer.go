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

	ctx        context.Context // ends when Close begins
	cancel     context.CancelCauseFunc
	cleanupCtx context.Context // ends when Close stops waiting
	endCleanup context.CancelCauseFunc
	wg         sync.WaitGroup

	mu           sync.Mutex
	closed       bool
	view         *queueView
	mode         string // Chan or Messages; empty before the first call
	bytes        chan []byte
	messages     chan *Message
	err          error
	lostSessions []int64 // the ids of sessions that were lost

	pending   pendingRemovals
	unsettled unsettledMessages
	skips     skips
}

func (c *consumer) init(q *queue) {
	c.q, c.id = q, []byte(znode.NewGUID())
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.cleanupCtx, c.endCleanup = context.WithCancelCause(context.Background())
}

// stopConsuming gives back the messages that were not received, waits for that until ctx
// ends, and returns when no goroutine of the consumer runs any more. It uses q.removals,
// which must be closed later.
func (c *consumer) stopConsuming(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrQueueClosed)
	defer context.AfterFunc(ctx, func() { c.endCleanup(ErrQueueClosed) })()
	c.wg.Wait()
	// No Ack is under way any more, so that the messages which are still unsettled stay
	// unsettled.
	c.nackUnsettled()
	c.endCleanup(ErrQueueClosed)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil {
		c.view.stopWatches()
	}
}

// spawn runs f in a goroutine that stopConsuming waits for. It reports false, and does
// nothing, after stopConsuming has begun.
func (c *consumer) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(f)
	return true
}

// beginCall makes stopConsuming wait for endCall, unless stopConsuming has begun.
func (c *consumer) beginCall() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrQueueClosed
	}
	c.wg.Add(1)
	return nil
}

func (c *consumer) endCall() { c.wg.Done() }

// viewOf returns the view of the queue through a session.
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
			c.view.stopWatches()
		}
		c.view = newQueueView(c, s)
	}
	return c.view
}

// startDelivery starts the pump at its first call. mode is the name of the method that
// the program called.
func (c *consumer) startDelivery(mode string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode != "" && c.mode != mode {
		panic(fmt.Sprintf("zksync: %s of the queue %s, which is consumed by %s: a value has one way of consuming", mode, c.q.path, c.mode))
	}
	if c.mode == mode {
		return
	}
	c.mode = mode
	p := &pump{c: c, limit: c.q.cfg.prefetch, wakeUps: make(chan struct{}, 1)}
	var over func()
	if mode == "Chan" {
		c.bytes = make(chan []byte)
		p.deliver = p.deliverBytes
		over = func() { close(c.bytes) }
	} else {
		c.messages = make(chan *Message)
		p.deliver = p.deliverMessage
		over = func() { close(c.messages) }
	}
	// Close takes c.mu to set c.closed, so it either waits for the goroutine below, or
	// the goroutine is not started.
	if c.err = c.q.checkUsable(); c.err != nil || c.closed {
		over()
		return
	}
	c.wg.Go(func() {
		err := p.consume()
		// A receiver that sees the closed channel must find the reason in Err.
		c.mu.Lock()
		defer c.mu.Unlock()
		c.err = err
		over()
	})
}
