package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// maxAbandoned is how many requests of a session may be unanswered though
// their callers have gone, before further ones wait.
const maxAbandoned = 1024

// A gate lets the requests of a session through to the connection that is in use, and
// counts them.
type gate struct {
	m    *shared
	over context.Context // ends when no request goes through any more
	end  context.CancelCauseFunc

	mu        sync.Mutex
	conn      *wire.Conn    // proven to reach the leader; nil while there is none
	change    chan struct{} // closed and replaced when enter should look again
	refuse    error         // why new requests are refused
	abandoned int
	busy      int           // requests and functions that Close waits for
	idle      chan struct{} // closed when busy falls to zero
}

func (g *gate) init(m *shared) {
	g.m, g.change = m, make(chan struct{})
	g.over, g.end = context.WithCancelCause(context.Background())
}

// current returns the connection that is in use, nil if there is none.
func (g *gate) current() *wire.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn
}

// attach puts a connection to use and calls then, unless the connection or the session
// has ended.
func (g *gate) attach(w *wire.Conn, then func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	// A connection that has ended meanwhile was detached before it came here.
	if g.over.Err() != nil || w.Closed() {
		return false
	}
	g.conn = w
	broadcast(&g.change)
	// Under g.mu, so that attach and detach are told in the order in which they
	// happened.
	then()
	return true
}

// detach takes a connection that has ended out of use, and then calls then if the
// connection was in use.
func (g *gate) detach(w *wire.Conn, then func()) (was bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if was = g.conn == w; was {
		g.conn = nil
		then()
	}
	return was
}

// enter waits until a request can be sent, and counts it as under way. One that
// is urgent, because it cleans up after abandoned ones, is not held up by them.
func (g *gate) enter(ctx context.Context, urgent bool) (*wire.Conn, error) {
	if ctx.Err() != nil {
		return nil, Cancelled(ctx)
	}
	for {
		w, change, err := g.tryEnter(urgent)
		if w != nil || err != nil {
			return w, err
		}
		select {
		case <-change:
		case <-g.over.Done():
			return nil, context.Cause(g.over)
		case <-ctx.Done():
			g.mu.Lock()
			full := g.conn != nil && g.abandoned >= maxAbandoned
			g.mu.Unlock()
			if full {
				return nil, CancelledWaiting(ctx, fmt.Errorf("the server has not answered %d earlier requests whose callers have gone", maxAbandoned))
			}
			return nil, CancelledWaiting(ctx, g.m.manager.offline())
		}
	}
}

// tryEnter is enter for callers that must not wait. Without a connection to send
// on, w is nil. change is closed when another attempt may lead to another result.
func (g *gate) tryEnter(urgent bool) (w *wire.Conn, change <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse != nil {
		return nil, nil, g.refuse
	}
	if g.conn == nil || !urgent && g.abandoned >= maxAbandoned {
		return nil, g.change, nil
	}
	g.busy++
	return g.conn, g.change, nil
}

// hold counts a function as under way until leave.
func (g *gate) hold() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse == nil {
		g.busy++
	}
	return g.refuse
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	if g.busy == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// countAbandoned counts a request whose caller has gone, until settleAbandoned.
func (g *gate) countAbandoned() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.abandoned++
}

func (g *gate) settleAbandoned() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned--; g.abandoned == maxAbandoned-1 {
		broadcast(&g.change)
	}
}

// lose refuses new requests: the session is over.
func (g *gate) lose(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refuse = why
}

// close refuses new requests, and returns a channel that is closed when none is under
// way any more.
func (g *gate) close(why error) (idle <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse == nil {
		g.refuse = why
	}
	broadcast(&g.change)
	done := make(chan struct{})
	if g.busy == 0 {
		close(done)
	} else {
		g.idle = done
	}
	return done
}
