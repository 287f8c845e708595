package session

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"
)

// A Manager keeps one ZooKeeper session at a time, and opens the next session when one is
// lost, until the Manager is closed. All methods may be called from any goroutine.
type Manager struct {
	*shared
	managerState
	done chan struct{}

	ephemerals sync.Map       // of the Ephemerals that are not sequential, by path
	wg         sync.WaitGroup // sessions that are being closed, and watchOutages
}

// Connect opens a session with the ensemble that servers names, and returns when the
// session exists. The form of servers is "host:port,host:port/chroot", and the default
// port is 2181. The chroot comes once, behind the last server, and may not have a comma.
// Connect returns an error
//
//   - if servers or an option is invalid (ErrInvalidServers, ErrInvalidOption);
//   - if all servers refuse the credentials, or some of them do and no other server can be used
//     for a reason that waiting does not remove (ErrAuthFailed);
//   - if no server can be used for a reason that waiting does not remove, for example a
//     certificate that is not trusted (ErrMisconfigured);
//   - if the chroot does not exist (ErrNoChroot, see WithCreateChroot);
//   - if ctx ends.
//
// The error has each server and the outcome of the attempts to connect to it. After an
// error, Connect closes in the background the connections and the session that it opened.
// ctx bounds only this call: the Manager lives until Close.
//
// While no server can be used, Connect logs the reason after three seconds, and again at
// intervals that grow to five minutes, if WithSlog or WithLogger has set a logger. The
// Manager does the same later. Connect logs at
// once a mistake that waiting does not remove.
func Connect(ctx context.Context, servers string, opts ...Option) (*Manager, error) {
	addresses, root, err := parseServers(servers)
	if err != nil {
		return nil, err
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	m := newManager(cfg, chroot(root), addresses)
	m.wg.Go(m.watchOutages)
	go m.run()

	err = m.awaitFirst(ctx)
	if err == nil {
		err = m.checkChroot(ctx)
	}
	if err != nil {
		// Close can take a second.
		go m.Close()
		select {
		case <-m.done:
		case <-ctx.Done():
		}
		return nil, fmt.Errorf("session: connect to %s: %w", servers, err)
	}
	return m, nil
}

func newManager(cfg config, root chroot, addresses []string) *Manager {
	m := &Manager{
		shared: &shared{
			cfg: cfg, records: records{root, cfg.acl, cfg.maxRequest}, servers: newServers(addresses),
			clock: cfg.suspension,
		},
		managerState: newManagerState(cfg.observer.StateChanged),
		done:         make(chan struct{}),
	}
	m.shared.outage, m.shared.offline, m.hangUps.m = m.outage, m.offline, m.shared
	if m.clock == nil {
		m.clock = newClock()
	}
	// Not under the ctx of Connect, which bounds only that call.
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	m.hopeless, m.endConnect = context.WithCancelCause(context.Background())
	return m
}

func (m *Manager) awaitFirst(ctx context.Context) error {
	for {
		now := m.present()
		if now.state == Connected {
			return nil
		}
		select {
		case <-now.change:
		case <-m.hopeless.Done():
			return context.Cause(m.hopeless)
		case <-ctx.Done():
			return CancelledWaiting(ctx, m.offline())
		}
	}
}

// run opens one session after another until the Manager is closed.
func (m *Manager) run() {
	defer close(m.done)
	var pace sessionPace
	for m.ctx.Err() == nil {
		var s *Session
		s = newSession(m.shared, func(st State) { m.setState(s, st) })
		m.mu.Lock()
		if m.session != nil {
			// Otherwise each lost session of an outage would bring a round of dials without
			// a pause.
			s.link.attempts.goOn(&m.session.link.attempts)
			s.ahead.Store(true)
		}
		// Before the state: setState ignores every session except m.session.
		m.session = s
		m.mu.Unlock()
		m.setState(s, Connecting)
		s.link.open()
		select {
		case <-m.ctx.Done():
		case <-s.gate.over.Done():
		}
		// A loss that has begun before Close goes on to its end.
		if s.hold.Err() == nil {
			m.setClosed()
			// After Closed is published: a caller whose hold ends now must find that
			// state.
			s.close(ErrClosed)
		} else {
			<-s.gate.over.Done()
			m.lostLines.log(m.cfg.log, zap.WarnLevel, "session lost", sessionField(s.id), zap.Error(context.Cause(s.gate.over)))
			// In the background: the next session need not wait until a server has
			// closed this one.
			m.wg.Go(func() { bury(s) })
			if d := pace.after(s); d > 0 {
				_ = sleep(m.ctx, d, m.ctx) // an error means that the Manager is closed
			}
		}
	}
	m.setClosed() // also if Close began between two sessions
	// Closed is set, so own starts no further goroutine and wg can only fall.
	m.waits.close()
	m.wg.Wait()
}

var errNilManager = fmt.Errorf("%w: the Manager is nil, want a result of Connect", ErrInvalidOption)

// Session waits until there is a connected session, and returns it. Session returns an
// error when ctx ends, ErrClosed when the Manager is closed, and ErrInvalidOption for a nil Manager.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	if m == nil {
		return nil, opError("wait for a session", "", errNilManager)
	}
	for {
		// A session that is lost ends its context first, and publishes the state Lost
		// after that. So both must be looked at.
		now := m.present()
		switch {
		case m.ctx.Err() != nil:
			return nil, ErrClosed // the caller waits no longer
		case ctx.Err() != nil:
			return nil, opError("wait for a session", "", m.Cancelled(ctx))
		case now.state == Connected && now.session.hold.Err() == nil:
			return now.session, nil
		}
		select {
		case <-now.change:
		case <-m.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// ExpectHolds announces that sessions of m will hold locks or other znodes. From now on
// an idle session sends a sync in place of each ping, every quarter of the session timeout.
// Otherwise, the first grant in a session that was idle for longer than half its timeout
// waits for a quarter of the timeout. Opening a Lease has the same effect on later grants.
// On a nil Manager ExpectHolds does nothing.
func (m *Manager) ExpectHolds() {
	// Constructors call this method, and the first use of a primitive reports a nil Manager.
	if m != nil {
		m.holds.Store(true)
	}
}

// Cancelled returns the error of a call whose ctx has ended. It is like the function
// Cancelled, and adds the reason if no server can be used, or the server does not answer.
// Packages that build on this package use it.
func (m *Manager) Cancelled(ctx context.Context) error {
	if trouble := m.trouble(); trouble != nil {
		return CancelledWaiting(ctx, trouble)
	}
	return Cancelled(ctx)
}

// Observer returns the observer of the Manager, for packages that build on this package.
// The functions of the observer may be nil.
func (m *Manager) Observer() *Observer { return &m.cfg.observer }

// Logger returns the logger of WithLogger, for packages that build on this package.
func (m *Manager) Logger() *zap.Logger { return m.cfg.log }

// Done returns a channel that is closed when the Manager has been closed and all its
// goroutines have ended.
func (m *Manager) Done() <-chan struct{} { return m.done }

// Close closes the Manager. Every hold ends with ErrClosed. Close waits for requests and
// functions in flight: while something is held, until the Session.Deadline of the time of the call, and otherwise for
// two thirds of the session timeout after the last sign of the server. For a function whose session was lost, it waits
// for two thirds of the session timeout. It closes the
// session on the server, which deletes the session's ephemerals at once. If no server can
// be reached, that takes a second, and the ephemerals go when the session expires. Close
// returns when all goroutines of the Manager have ended. It always returns nil, and may
// be called more than once. Do not call Close in a function of Do, or of a primitive's Do or Run: each
// would wait for the other, until that time has passed.
func (m *Manager) Close() error {
	m.cancel(ErrClosed)
	<-m.done
	return nil
}

// checkChroot returns an error if the chroot does not exist, or creates the chroot if
// WithCreateChroot is set.
func (m *Manager) checkChroot(ctx context.Context) error {
	if m.records.chroot == "" {
		return nil
	}
	// Only here: a chroot that is removed later is created again like any directory, because
	// its name was right.
	return m.Retry(ctx, func(s *Session) error {
		exists, _, err := s.Exists(ctx, "/")
		switch {
		case ClassOf(err) == ClassNoAuth:
			return nil // the chroot exists, and its ACL may yet let us create or read znodes below it
		case err != nil || exists:
			return err
		case m.cfg.makeChroot:
			return s.MakeDir(ctx, "/")
		}
		return fmt.Errorf("%w: %s (correct the connection string, or create the chroot by session.WithCreateChroot)", ErrNoChroot, m.records.chroot)
	})
}
