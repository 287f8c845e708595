package queue

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/queue/commit"
)

// ErrClosed says that the consumer was closed.
var ErrClosed = errors.New("zksync: the queue was closed")

// A Config describes the queue of a Consumer.
type Config struct {
	Manager  *session.Manager
	Path     string
	Kind     Kind
	Prefetch int // the most messages that are claimed and not settled
	// Removals carries out the transactions of Take. It is closed after the Consumer.
	Removals *commit.Committer
	// MakeDir creates a directory of the queue, and the directories above it.
	MakeDir func(ctx context.Context, s *session.Session, path string) error
}

// child returns the path of a znode in the queue's directory, or beside the directory
// in a layout in which every child of the directory is a message.
func (c *Config) child(name string) string { return c.Kind.Child(c.Path, name) }

// observeDelivery tells the observer of the Manager that a message was received.
func (c *Config) observeDelivery(data []byte) {
	if delivered := c.Manager.Observer().Delivered; delivered != nil {
		delivered(session.Delivered{Path: c.Path, Size: len(data)})
	}
}

// A Consumer takes messages out of a queue.
type Consumer struct {
	cfg Config

	ctx        context.Context // ends when Close begins
	cancel     context.CancelCauseFunc
	cleanupCtx context.Context // ends when Close stops waiting
	endCleanup context.CancelCauseFunc
	wg         sync.WaitGroup
	closed     chan struct{} // closed when Close has returned

	mu        sync.Mutex
	closing   bool
	view      *view
	ledger    *ledger // of the last session with claims; nil if this consumer claims nothing
	unsettled map[*Delivery]struct{}
	removing  map[claimKey]int64 // deliveries of Chan that were received and are being removed: their czxids
	skips     skipCount

	maxOrderVersion int32
}

// NewConsumer returns a Consumer. It does no I/O.
func NewConsumer(cfg Config) *Consumer {
	c := &Consumer{cfg: cfg, closed: make(chan struct{}), unsettled: make(map[*Delivery]struct{}), removing: make(map[claimKey]int64), maxOrderVersion: maxOrderVersion}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.cleanupCtx, c.endCleanup = context.WithCancelCause(context.Background())
	return c
}

// Close gives back the messages that were not settled, waits for that until ctx ends, and
// returns when no goroutine of the Consumer runs any more.
func (c *Consumer) Close(ctx context.Context) {
	defer close(c.closed)
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	defer context.AfterFunc(ctx, func() { c.endCleanup(ErrClosed) })()
	c.wg.Wait()
	if c.view != nil { // without the mutex: no call is left that changes it
		c.view.close()
	}
	// The claims of these deliveries have ended with the ledger.
	for _, d := range c.takeUnsettled(nil) {
		if d.setVerb("Close") {
			d.setOutcome(errClosedUnsettled)
		}
	}
	c.endCleanup(ErrClosed)
}

// takeUnsettled removes and returns the deliveries of a view that nobody has settled, or
// of all views if v is nil.
func (c *Consumer) takeUnsettled(v *view) []*Delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*Delivery
	for d := range c.unsettled {
		if v == nil || d.v == v {
			all = append(all, d)
			delete(c.unsettled, d)
		}
	}
	return all
}

// spawn runs f in a goroutine that Close waits for. It reports false, and does nothing,
// after Close has begun.
func (c *Consumer) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.wg.Go(f)
	return true
}

// beginCall makes Close wait for endCall, unless Close has begun.
func (c *Consumer) beginCall() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosed
	}
	c.wg.Add(1)
	return nil
}

func (c *Consumer) endCall() { c.wg.Done() }

// viewOf returns the view of the queue through a session.
func (c *Consumer) viewOf(s *session.Session) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.Err() != nil {
		// A caller with an old session must not replace the view of the next
		// session, which other goroutines use.
		return newView(c, s)
	}
	if c.view == nil || c.view.s != s {
		if c.view != nil {
			c.view.stop()
		}
		c.view = newView(c, s)
	}
	return c.view
}

// Skipped returns how many messages this consumer has skipped, and the reason for the
// last skip.
func (c *Consumer) Skipped() (int, error) { return c.skips.get() }

// ObserveLength tells the observer of the Manager how long the queue is, as a listing
// has shown that was made anyway.
func (c *Consumer) ObserveLength(n int) {
	if length := c.cfg.Manager.Observer().QueueLength; length != nil {
		length(session.QueueLength{Path: c.cfg.Path, Length: n})
	}
}

// maxBeingRemoved limits the messages of lost sessions that a consumer remembers.
const maxBeingRemoved = 4096

// isBeingRemoved reports whether the receiver of Chan has the message already.
func (c *Consumer) isBeingRemoved(d *Delivery) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	czxid, ok := c.removing[d.ref.key()]
	return ok && czxid == d.czxid
}

// setBeingRemoved notes that a message was received and is being removed.
func (c *Consumer) setBeingRemoved(d *Delivery, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !is {
		delete(c.removing, d.ref.key())
		return
	}
	if len(c.removing) >= maxBeingRemoved {
		clear(c.removing) // others have removed these messages since
	}
	c.removing[d.ref.key()] = d.czxid
}

// openClaims opens a ledger for a view, and deletes the ledger of the session before,
// whose messages are then free at once.
func (c *Consumer) openClaims(ctx context.Context, v *view) (*ledger, error) {
	if _, err := v.order.open(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	old := c.ledger
	c.mu.Unlock()
	if old != nil {
		// A request of the old session that arrives later fails, because it writes the
		// ledger.
		err := v.s.Delete(ctx, old.path, -1)
		if class := session.ClassOf(err); err != nil && class != session.ClassNoNode && class != session.ClassNoAuth {
			return nil, err
		}
	}
	l, err := openLedger(ctx, v)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger = l
	v.order.countOwn()
	return l, nil
}
