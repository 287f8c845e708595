package session

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// maxAbandoned is the number of abandoned requests per session at which further requests wait: the
// unanswered requests whose callers have gone, and those of Followups.
const maxAbandoned = 1024

// A gate admits the requests of a session to the connection that is in use, and counts
// them.
type gate struct {
	m    *shared
	over context.Context // ends when no request is admitted any more
	end  context.CancelCauseFunc

	mu        sync.Mutex
	conn      *wire.Conn    // has proven that it reaches the leader; nil if there is no such connection
	change    chan struct{} // closed and replaced when enter should try again
	refuse    error         // the reason why new requests are refused
	abandoned int
	busy      int           // requests and functions that Close waits for
	idle      chan struct{} // closed when busy falls to zero
}

func (g *gate) init(m *shared) {
	g.m, g.change = m, make(chan struct{})
	g.over, g.end = context.WithCancelCause(context.Background())
}

// current returns the connection that is in use, or nil.
func (g *gate) current() *wire.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.conn
}

// attach puts a connection to use and calls then. It does neither and returns false if
// the connection or the session has ended.
func (g *gate) attach(w *wire.Conn, then func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	// If the connection has ended meanwhile, detach has run already and will not run
	// again.
	if g.over.Err() != nil || w.Closed() {
		return false
	}
	g.conn = w
	broadcast(&g.change)
	// Under g.mu, so that the calls of then by attach and detach have the order of attach
	// and detach.
	then()
	return true
}

// detach takes an ended connection out of use and calls then. It does nothing and returns
// false if the connection was not in use.
func (g *gate) detach(w *wire.Conn, then func()) (was bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// A connection that ends before its sync is answered was never in use.
	if was = g.conn == w; was {
		g.conn = nil
		then()
	}
	return was
}

// enter waits until a request can be sent, and counts the request as in flight until
// leave. maxAbandoned does not apply to an urgent request.
func (g *gate) enter(ctx context.Context, urgent bool) (*wire.Conn, error) {
	// A call whose ctx has ended sends nothing, even if a connection is in use.
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
				return nil, CancelledWaiting(ctx, fmt.Errorf("the server has not answered %d earlier requests for which no caller has to wait", maxAbandoned))
			}
			return nil, CancelledWaiting(ctx, g.m.offline())
		}
	}
}

// tryEnter is like enter but does not wait. If there is no connection to send on, w is
// nil. change is closed when another attempt may have another result.
func (g *gate) tryEnter(urgent bool) (w *wire.Conn, change <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse != nil {
		return nil, nil, g.refuse
	}
	// An urgent request cleans up after abandoned requests.
	if g.conn == nil || !urgent && g.abandoned >= maxAbandoned {
		return nil, g.change, nil
	}
	// Under the lock under which close looks at busy: close refuses a request or waits for
	// it.
	g.busy++
	return g.conn, g.change, nil
}

// hold counts a function as in flight until leave.
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

// tryCountReads counts n reads of a Followup, for which nobody may wait, as abandoned until
// settleAbandoned. It counts none and returns false if further requests would soon have to wait.
func (g *gate) tryCountReads(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.abandoned+n > maxAbandoned/2 {
		return false
	}
	g.abandoned += n
	return true
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
	// Requests wait only at the limit, so no other step can admit one.
	if g.abandoned--; g.abandoned == maxAbandoned-1 {
		broadcast(&g.change)
	}
}

// lose makes the gate refuse new requests, because the session is over.
func (g *gate) lose(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// Calls that wait in enter need no wake-up here, because over ends soon after.
	g.refuse = why
}

// close makes the gate refuse new requests. It returns a channel that is closed when no
// request and no function is in flight any more.
func (g *gate) close(why error) (idle <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// A session that is lost meanwhile keeps its own reason.
	if g.refuse == nil {
		g.refuse = why
	}
	// over stays open until the session was closed on the server, so only change wakes the
	// calls that wait in enter.
	broadcast(&g.change)
	done := make(chan struct{})
	if g.busy == 0 {
		close(done)
	} else {
		g.idle = done
	}
	return done
}
