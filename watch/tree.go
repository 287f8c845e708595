package watch

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"

	"github.com/go-zksync/toolkit/session"
)

// A Cache is a local mirror of a znode and everything below it. It reads with
// many requests in flight, is kept up to date by watches, and after any outage
// comes to equal the server's tree again. Paths are those of the znodes, not
// relative to the root of the Cache. All methods may be called from any goroutine.
//
// It ends with the ctx given to Tree, when the Manager is closed, or when its
// root may not be read; what it holds then stays as it is. A znode below the root
// that may not be read is there without data or without children; TreeEvent.Err
// says so. It is tried again when something about it or its siblings changes, and
// in the next session.
//
// Each znode costs two watches on the server. Two znodes are not read at the same
// instant: a Cache may show one change and not yet another that came before.
type Cache struct {
	m      *session.Manager
	root   string
	outer  context.Context // as given to Tree
	ctx    context.Context // ends with it, or when the root cannot be read
	cancel context.CancelCauseFunc
	over   chan struct{} // closed when err is set
	events chan TreeEvent

	workers sync.WaitGroup

	// The hub of the session calls us with its lock held, so nothing of a Session
	// or a Watch may be called under mu.
	mu         sync.Mutex
	err        error
	closing    bool
	s          *session.Session // that the present generation is read by
	generation uint64
	turn       chan struct{} // closed and replaced when a generation begins
	top        *node
	nodes      map[string]*node
	visible    int
	queue      []job
	working    int              // workers
	given      []*session.Watch // to stop when mu is free
	tally      tally
	news       news
}

// Tree mirrors root and everything below it. It does no I/O itself and returns
// at once; WaitSynced waits until all has been read. root need not exist. An
// invalid path ends the Cache before it begins, with session.ErrInvalidPath.
func Tree(ctx context.Context, m *session.Manager, root string) *Cache {
	c := &Cache{
		m: m, root: root, outer: ctx,
		over: make(chan struct{}), events: make(chan TreeEvent),
		turn: make(chan struct{}), nodes: make(map[string]*node),
	}
	c.news.init()
	if err := session.CheckPath(root); err != nil {
		c.err = ended("tree", root, err)
		close(c.over)
		close(c.events)
		return c
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.top = &node{path: root}
	c.nodes[root] = c.top
	go c.run()
	go c.pump()
	return c
}

// run goes from session to session.
func (c *Cache) run() {
	var err error
	for {
		var s *session.Session
		if s, err = c.m.Session(c.ctx); err != nil {
			break
		}
		c.begin(s)
		select {
		case <-s.Done():
		case <-c.ctx.Done():
		}
	}
	switch {
	case c.outer.Err() != nil:
		err = cancelled(c.outer)
	case c.ctx.Err() != nil:
		err = context.Cause(c.ctx)
	}
	c.finish(ended("tree", c.root, err))
}

// finish ends everything: no worker runs any more, no watch is left.
func (c *Cache) finish(err error) {
	c.cancel(nil)
	c.mu.Lock()
	c.closing, c.queue = true, nil
	c.mu.Unlock()
	c.workers.Wait()
	c.mu.Lock()
	for _, n := range c.nodes {
		c.given = n.giveUp(c.given)
	}
	c.err = err
	c.unlock()
	close(c.over)
}

// unlock releases mu and stops the watches that nobody needs any more.
func (c *Cache) unlock() {
	given := c.given
	c.given = nil
	c.mu.Unlock()
	for _, w := range given {
		w.Stop()
	}
}

// Get returns the present state of a znode, and whether it is in the mirror.
// The data is shared and must not be changed.
func (c *Cache) Get(path string) (State, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[path]; n != nil && n.visible {
		return n.state, true
	}
	return State{Path: path}, false
}

// Children returns the names of the children of a znode, sorted, and whether it
// is in the mirror.
func (c *Cache) Children(path string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[path]
	if n == nil || !n.visible {
		return nil, false
	}
	names := make([]string, 0, len(n.children))
	for name, child := range n.children {
		if child.visible {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, true
}

// Len is the number of znodes in the mirror, the root included.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.visible
}

// Events returns the channel that tells the changes of the mirror, from empty to
// what it holds at present to what it becomes; see TreeEvent for their order. It
// has one consumer and no buffer: what is not received is merged, to at most one
// event for a znode, which tells its state at the time it is received. It is closed
// when the Cache ends; Err says why. Nobody needs to read it.
func (c *Cache) Events() <-chan TreeEvent { return c.events }

// All returns the events as a sequence for range: each as (event, nil), and when
// the Cache ends, once, a zero event and the reason, the end of ctx included.
// Leaving the loop does not end the Cache: another loop goes on where it was left.
func (c *Cache) All() iter.Seq2[TreeEvent, error] {
	return func(yield func(TreeEvent, error) bool) {
		for ev := range c.events {
			if !yield(ev, nil) {
				return
			}
		}
		yield(TreeEvent{}, c.Err())
	}
}

// Err returns nil while the Cache goes on, and then why it ended: an error that
// matches ctx.Err() and the cause of ctx, session.ErrClosed,
// session.ErrInvalidPath, or what the server refused to read the root with, as
// zk.ErrNoAuth.
func (c *Cache) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// WaitSynced waits until the mirror holds everything that was in the tree on
// the ensemble's leader when it was called, or what has come after it: it syncs
// with the leader, and waits for what it takes to read. It is waiting for the
// first load as well, waits over lost connections and sessions, and fails when ctx
// or the Cache ends.
func (c *Cache) WaitSynced(ctx context.Context) error {
	if over := c.Err(); over != nil {
		return over
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for {
		s, err := c.m.Session(asking)
		if err == nil {
			err = s.Sync(asking, c.root)
		}
		if err != nil && ctx.Err() == nil {
			if c.ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
				// The Cache has ended or is about to, and says why.
				return c.await(ctx, nil)
			}
			if errors.Is(err, session.ErrLost) {
				continue
			}
		}
		if err != nil {
			return err
		}
		if read, done := c.toRead(s); done {
			return c.await(ctx, read)
		} else if s.Err() != nil {
			continue // the Cache is ahead of us, at a later session
		} else if err := c.await(ctx, read); err != nil {
			return err
		}
	}
}

// toRead returns what to wait for until all that s can show at present has been
// read. It is not all if the Cache has not come to read by s yet.
func (c *Cache) toRead(s *session.Session) (read <-chan struct{}, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s != s {
		return c.turn, false
	}
	return c.tally.wait(), true
}

func (c *Cache) await(ctx context.Context, read <-chan struct{}) error {
	if over := c.Err(); over != nil {
		return over
	}
	select {
	case <-read:
		return nil
	case <-c.over:
		return c.Err()
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.tally.forget(read)
		return cancelled(ctx)
	}
}
