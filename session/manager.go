package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"
)

// A Manager keeps one ZooKeeper session at a time, and opens the next when one
// is lost, until it is closed. All methods may be called from any goroutine.
type Manager struct {
	*shared
	done chan struct{}

	mu         sync.Mutex
	session    *Session
	state      State
	since      time.Time // when there was a connection last
	stateSince time.Time
	lost       uint64                     // sessions
	change     chan struct{}              // closed and replaced when the state changes
	listeners  map[chan State]func() bool // and how to stop waiting for its ctx
	// The ends of the Ephemerals with a plain name, by path.
	ephemerals map[string]chan struct{}

	former formerSessions
	wg     sync.WaitGroup // sessions being taken down, and watchOutages
}

// Connect opens a session with the ensemble that servers names, as
// "host:port,host:port/chroot"; a port left out is 2181. It returns when the
// session is there, or an error when servers or an option is invalid
// (ErrInvalidServers, ErrInvalidOption), when the credentials are refused
// (ErrAuthFailed), when no server can be used for a reason that waiting does not
// remove, as a certificate that is not trusted (ErrMisconfigured), when the chroot
// does not exist (ErrNoChroot, see WithCreateChroot), or when ctx ends. The error
// names the servers and what came of the attempts to connect to each. What was
// opened until then is taken down in the background. ctx bounds this call alone: the
// Manager lives until Close.
//
// While no server can be used, Connect logs the reason after three seconds, and
// again after times that grow to five minutes; the Manager does the same later. A
// mistake that waiting does not remove is logged at once.
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
		// Taking down what was opened can take a second.
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
		shared: &shared{cfg: cfg, records: records{root, cfg.acl, cfg.maxRequest}, servers: newServers(addresses), hopeless: make(chan struct{}), clock: cfg.suspension},
		done:   make(chan struct{}), change: make(chan struct{}),
		listeners: make(map[chan State]func() bool), ephemerals: make(map[string]chan struct{}),
		since: time.Now(), stateSince: time.Now(),
	}
	m.manager = m
	if m.clock == nil {
		m.clock = newClock()
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
	return m
}

func (m *Manager) awaitFirst(ctx context.Context) error {
	for {
		m.mu.Lock()
		state, change := m.state, m.change
		m.mu.Unlock()
		if state == Connected {
			return nil
		}
		select {
		case <-change:
		case <-m.hopeless:
			return m.hopelessErr
		case <-ctx.Done():
			return CancelledWaiting(ctx, m.offline())
		}
	}
}

// run goes from session to session.
func (m *Manager) run() {
	defer close(m.done)
	var pace sessionPace
	for m.ctx.Err() == nil {
		var s *Session
		s = newSession(m.shared, func(st State) { m.setState(s, st) })
		m.mu.Lock()
		if m.session != nil {
			s.link.goOn(m.session.link)
		}
		m.session = s
		m.mu.Unlock()
		m.setState(s, Connecting)
		if err := s.link.open(); err != nil {
			// Only a list of servers that is empty or an option of ours that
			// go-zookeeper refuses can lead here.
			m.cfg.log.DPanic("go-zookeeper refused its configuration", zap.Error(err))
			break
		}
		select {
		case <-m.ctx.Done():
			m.mu.Lock()
			m.publish(Closed)
			m.mu.Unlock()
			s.close(ErrClosed)
		case <-s.gate.over.Done():
			m.lostLines.log(m.cfg.log, zap.WarnLevel, "session lost", sessionField(s.id), zap.Error(context.Cause(s.gate.over)))
			if s.known.Load() {
				m.former.add(s.id)
			}
			m.wg.Go(func() { bury(s) })
			if d := pace.after(s); d > 0 {
				_ = sleep(m.ctx, d, m.ctx) // an error says that the Manager is closed
			}
		}
	}
	m.mu.Lock()
	m.publish(Closed)
	m.mu.Unlock()
	m.waits.close()
	m.wg.Wait()
}

// Session waits until there is a session that is connected, and returns it. It
// fails when ctx ends, and with ErrClosed when the Manager is closed.
func (m *Manager) Session(ctx context.Context) (*Session, error) {
	for {
		m.mu.Lock()
		s, state, change := m.session, m.state, m.change
		m.mu.Unlock()
		switch {
		case m.ctx.Err() != nil:
			return nil, opError("session", "", ErrClosed)
		case ctx.Err() != nil:
			return nil, opError("session", "", CancelledWaiting(ctx, m.offline()))
		case state == Connected && s.hold.Err() == nil:
			return s, nil
		}
		select {
		case <-change:
		case <-m.ctx.Done():
		case <-ctx.Done():
		}
	}
}

// ExpectHolds says that sessions of m are going to hold something: from now on an
// idle session sends a sync instead of each ping, every third of the session
// timeout. Without it the first grant in a session that was idle for longer than half its timeout
// waits for a quarter of the timeout, because a leader that was paused might be
// about to end the session. Opening a Lease has the same effect on later grants.
// It does nothing on a nil Manager, whose other methods report their absence.
func (m *Manager) ExpectHolds() {
	if m != nil {
		m.holds.Store(true)
	}
}

// Cancelled returns the error of a call whose ctx has ended: Cancelled, and if no
// server can be used, with that reason. It is for packages that are built on this
// one.
func (m *Manager) Cancelled(ctx context.Context) error {
	if state := m.State(); state != Connected && state != Closed {
		return CancelledWaiting(ctx, m.offline())
	}
	return Cancelled(ctx)
}

// Observer returns the observer of the Manager, for packages that are built on this
// one. Its functions may be nil.
func (m *Manager) Observer() *Observer { return &m.cfg.observer }

// Logger is that of WithLogger, for what is built on the Manager.
func (m *Manager) Logger() *zap.Logger { return m.cfg.log }

// Done is closed when the Manager has been closed and nothing of it runs any
// more.
func (m *Manager) Done() <-chan struct{} { return m.done }

// Close ends the Manager: everything that is held ends with ErrClosed, requests
// and functions that are under way are awaited while the session is proven
// alive, and the session is closed on the server, which removes its ephemerals
// at once. If no server can be reached that takes a second, and they go when the
// session expires. Close returns when nothing of the Manager runs any more,
// always nil, and may be called more than once.
func (m *Manager) Close() error {
	m.cancel(ErrClosed)
	<-m.done
	return nil
}

// checkChroot fails if the chroot does not exist, or creates it if WithCreateChroot
// says so. A chroot that is removed later is created again like any directory: the
// name has proven right.
func (m *Manager) checkChroot(ctx context.Context) error {
	if m.records.chroot == "" {
		return nil
	}
	return m.Retry(ctx, func(s *Session) error {
		exists, _, err := s.Exists(ctx, "/")
		switch {
		case ClassOf(err) == ClassNoAuth:
			return nil // it exists, and may yet let us create or read below
		case err != nil || exists:
			return err
		case m.cfg.makeChroot:
			return s.MakeDir(ctx, "/")
		}
		return fmt.Errorf("%w: %s (correct the connection string, or create the chroot by session.WithCreateChroot)", ErrNoChroot, m.records.chroot)
	})
}
