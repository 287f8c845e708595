package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// promptly is the time within which a call returns after its context has ended or
// its Manager was closed. The documentation allows a DoubleBarrier and a Queue to
// spend a second or five on cleaning up.
const promptly = 1100 * time.Millisecond

// A client is one process with one Manager.
type client struct {
	stage    *stage
	number   int
	endpoint *zkserver.Endpoint // of the newest connection; only the network's goroutine uses it

	mu        sync.Mutex
	m         *session.Manager
	old       []*session.Manager // Managers that a fault has closed
	closing   bool               // a fault closes m
	given     []given
	cancelled time.Time   // time at which a fault ended the calls' contexts
	forced    []forcedEnd // of the client's sessions
	awake     chan struct{}
	calls     map[*call]struct{}
}

// A forcedEnd is the end of a session by a fault.
type forcedEnd struct {
	session int64
	at      time.Time
}

// given is a context of a call, and the function that ends it.
type given struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// A call is one call of the toolkit that has not returned.
type call struct {
	what  string
	since time.Time
}

// An allowance reports whether an error is allowed that no fault explains.
type allowance func(s *stage, err error) bool

// orLost allows ErrLost if a fault may lose the session.
func orLost(s *stage, err error) bool { return s.mayLose() && errors.Is(err, zksync.ErrLost) }

// removed reports whether the removal of a znode is the reason for an error, and a fault explains it. A consumer does not
// rely on a ledger that another client has written.
func (s *stage) removed(err error) bool {
	explained := s.harm()&(removes|steals) != 0 || s.harm()&touches != 0 && s.of.scenario.hasQueue()
	return explained && errors.Is(err, zksync.ErrRemoved)
}

// removable matches the calls that need a znode to go on existing. Every other call creates what it
// needs again.
var removable = regexp.MustCompile(`^(R?Lock|TryLock|Acquire|Campaign|Run|Do|Enter|Downgrade|R?Unlock|Release|Resign|Leave|Ack|Nack|Retry|MoveTo)\b`)

// orLater allows any error of a call that continues in the background if a fault may keep the
// client from the leader.
func orLater(s *stage, _ error) bool { return s.mayLose() }

// refused reports whether a quota that is used up is the reason for an error, and a fault explains
// it. Any call that writes may fail then.
func (s *stage) refused(err error) bool {
	return s.harm()&refuses != 0 && err != nil && strings.Contains(err.Error(), "quota exceeded")
}

// waitsInLine matches the error of a call that has joined a line, waits at a gate or observes, at a read. Internal errors of
// servers do not end such a wait.
var waitsInLine = regexp.MustCompile(`^(lock|rlock|acquire|campaign|run|enter|downgrade) \S+: (children \S+|(get|exists) /(locks|elections)/\S+\d{10}|(get|exists) /barriers/\w+/\S+):|^(wait|watch) `)

// orError reports whether an internal error of a server, or a permission that is missing, is the reason
// for an error, and a fault explains it. Any call may fail then.
func orError(s *stage, err error) bool {
	if err == nil {
		return false
	}
	if s.harm()&misreads != 0 && strings.Contains(err.Error(), "system error") {
		// A call that waits for the counter of its directory has not joined yet.
		return !waitsInLine.MatchString(err.Error()) || s.of.world.name == "spent"
	}
	return s.harm()&errs != 0 && strings.Contains(err.Error(), "system error") || s.harm()&forbids != 0 && (errors.Is(err, zk.ErrNoAuth) || strings.Contains(err.Error(), "may not be read"))
}

// or allows an error always.
func or(target error) allowance {
	return func(_ *stage, err error) bool { return errors.Is(err, target) }
}

// connect opens the client's Manager.
func (c *client) connect() {
	for c.manager() == nil && c.stage.ctx.Err() == nil {
		c.do("Connect", func(ctx context.Context) error {
			m, err := session.Connect(ctx, "10.0.0.1,10.0.0.2,10.0.0.3"+c.stage.of.world.chroot, c.options()...)
			if err == nil {
				c.mu.Lock()
				c.m = m
				c.mu.Unlock()
				if c.stage.of.world.holds {
					go c.stage.holdSessions(m)
				}
			}
			return err
		})
	}
}

// holdSessions holds something in each session of a Manager until the scenario has ended.
func (s *stage) holdSessions(m *session.Manager) {
	for {
		live, err := m.Session(s.playing)
		if err != nil {
			return
		}
		lease := live.Lease()
		_ = lease.Grant(s.playing) // fails at the end of the session or the scenario
		select {
		case <-live.Done():
		case <-s.playing.Done():
		}
		lease.End()
	}
}

// options returns the options of the client's Manager.
func (c *client) options() []session.Option {
	s := c.stage
	all := []session.Option{session.WithDialer(s.dial(c)), session.WithTimeout(timeout), session.WithCreateChroot()}
	if s.of.world.options != nil {
		all = append(all, s.of.world.options(c)...)
	}
	return all
}

// manager returns the Manager that the client uses, nil before connect.
func (c *client) manager() *session.Manager {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.m
}

// managers returns all Managers that the client has had.
func (c *client) managers() []*session.Manager {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.old
	if c.m != nil {
		all = append(all, c.m)
	}
	return all
}

// open returns the Manager, unless a fault has closed it.
func (c *client) open() *session.Manager {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	return c.m
}

// do makes a call, checks that the outcome is allowed, and returns the call's error.
func (c *client) do(what string, f func(ctx context.Context) error, also ...allowance) error {
	ctx := c.context()
	defer c.forget(ctx)
	return c.doWith(ctx, what, f, also...)
}

// end makes a call that takes no context.
func (c *client) end(what string, f func() error, also ...allowance) error {
	return c.doWith(c.stage.ctx, what, func(context.Context) error { return f() }, also...)
}

// doWith is do with a context of c.context.
func (c *client) doWith(ctx context.Context, what string, f func(ctx context.Context) error, also ...allowance) error {
	k := &call{what, time.Now()}
	c.mu.Lock()
	if c.calls == nil {
		c.calls = make(map[*call]struct{})
	}
	c.calls[k] = struct{}{}
	c.mu.Unlock()
	err := f(ctx)
	c.mu.Lock()
	delete(c.calls, k)
	c.mu.Unlock()
	c.stage.say("client %d: %s: %v", c.number, what, err)
	c.judge(ctx, what, err, also)
	c.wake()
	return err
}

// judge records a failure if the outcome of a call is not allowed.
func (c *client) judge(ctx context.Context, what string, err error, also []allowance) {
	c.mu.Lock()
	closing, cancelled := c.closing, c.cancelled
	c.mu.Unlock()
	if ctx.Err() != nil && c.stage.ctx.Err() == nil {
		if late := time.Since(cancelled); late > promptly && c.stage.harm()&suspends == 0 {
			c.stage.fail("client %d: %s returned %v after its context had ended", c.number, what, late)
		}
	}
	switch {
	case err == nil:
		return
	case c.stage.ctx.Err() != nil:
		return // the stage is being torn down
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		if !errors.Is(err, context.Cause(ctx)) {
			c.stage.fail("client %d: %s: %v, which does not match the cause %v", c.number, what, err, context.Cause(ctx))
		}
		return
	case closing && errors.Is(err, session.ErrClosed):
		return
	}
	if c.stage.refused(err) || orError(c.stage, err) || c.stage.removed(err) && removable.MatchString(what) {
		return
	}
	for _, allowed := range also {
		if allowed(c.stage, err) {
			return
		}
	}
	c.stage.fail("client %d: %s: %v", c.number, what, err)
}

// forget drops a context that no call uses any more.
func (c *client) forget(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, g := range c.given {
		if g.ctx == ctx {
			g.cancel(nil)
			c.given = append(c.given[:i:i], c.given[i+1:]...)
			return
		}
	}
}

// suspend stops the client's application for d.
func (c *client) suspend(d time.Duration) {
	awake := make(chan struct{})
	c.mu.Lock()
	c.awake = awake
	c.mu.Unlock()
	c.stage.background.start(func() {
		c.stage.pause(d)
		close(awake)
	})
}

// wake waits for the end of the client's suspension.
func (c *client) wake() {
	c.mu.Lock()
	awake := c.awake
	c.mu.Unlock()
	if awake != nil {
		<-awake
	}
}

// sleep lets the client idle for d.
func (c *client) sleep(d time.Duration) {
	c.stage.pause(d)
	c.wake()
}

func (c *client) waitingIn() (calls []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.calls {
		calls = append(calls, fmt.Sprintf("client %d in %s for %v", c.number, k.what, time.Since(k.since).Round(time.Millisecond)))
	}
	return calls
}
