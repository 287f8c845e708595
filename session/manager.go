package session

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// A Manager keeps one ZooKeeper session at a time, and opens the next when one
// is lost, until it is closed. All methods may be called from any goroutine.
type Manager struct {
	cfg     config
	chroot  string
	servers *servers
	jitter  jitter
	firstID sync.Once

	ctx    context.Context // ends when Close begins, with ErrClosed as its cause
	cancel context.CancelCauseFunc
	done   chan struct{}

	connections   atomic.Uint64
	requests      atomic.Uint64 // that are over
	removeWatches feature
	containers    feature
	multiReads    feature
	holds         atomic.Bool // a session has ever held something or waited to
	clock         clock

	mu         sync.Mutex
	session    *Session
	state      State
	since      time.Time // when there was a connection last
	stateSince time.Time
	lost       uint64                     // sessions
	change     chan struct{}              // closed and replaced when the state changes
	listeners  map[chan State]func() bool // and how to stop waiting for its ctx

	everConnected atomic.Bool
	hopeless      chan struct{} // closed when Connect should not wait any longer
	hopelessOnce  sync.Once
	hopelessErr   error // why; valid once hopeless is closed

	former []int64 // the ids of lost sessions, see Ephemeral
	// The Ephemerals with a plain name, by path.
	ephemerals map[string]*Ephemeral

	waits     waits
	lines     lineLimit      // of connections and new sessions
	lostLines lineLimit      // of lost sessions, which the lines of an outage must not hide
	zkLines   lineLimit      // of go-zookeeper
	wg        sync.WaitGroup // sessions being taken down, and watchOutages
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
	addresses, chroot, err := parseServers(servers)
	if err != nil {
		return nil, err
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, chroot: chroot, servers: newServers(addresses),
		done: make(chan struct{}), change: make(chan struct{}),
		listeners: make(map[chan State]func() bool), hopeless: make(chan struct{}),
		ephemerals: make(map[string]*Ephemeral),
		clock:      cfg.suspension, since: time.Now(), stateSince: time.Now(),
	}
	if m.clock == nil {
		m.clock = newClock()
	}
	m.ctx, m.cancel = context.WithCancelCause(context.Background())
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
		s := newSession(m)
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
		case <-s.dead:
			m.lostLines.log(m.cfg.log, zap.WarnLevel, "session lost", sessionField(s.id), zap.Error(s.why))
			m.retire(s)
			m.wg.Go(func() { s.bury() })
			if d := pace.after(s); d > 0 {
				_ = m.sleep(m.ctx, d) // an error says that the Manager is closed
			}
		}
	}
	m.mu.Lock()
	m.publish(Closed)
	m.mu.Unlock()
	m.waits.close()
	m.wg.Wait()
}

// bury takes down a session that was lost.
func (s *Session) bury() {
	if s.remains {
		s.wg.Go(s.closeOnServer)
	}
	s.link.shutdown()
	s.wg.Wait()
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
			return nil, opError("session", "", m.cancelledOffline(ctx))
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

func (m *Manager) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return Cancelled(ctx)
	case <-m.ctx.Done():
		return ErrClosed
	}
}

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
