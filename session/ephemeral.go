package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// An Ephemeral is an ephemeral znode that is present for as long as its Manager
// lives: it is created again under every new session, and when somebody removes
// it. All methods may be called from any goroutine.
//
// A znode of the same name that our own previous session has left is waited out.
// Anybody else's, a persistent one included, is a Conflict: it is not touched, and
// ours is created as soon as it is gone.
//
//	e, err := m.Ephemeral(ctx, "/services/api/host-1", []byte(addr))
//	if err != nil {
//		return err
//	}
//	defer e.Close()
type Ephemeral struct {
	m      *Manager
	cfg    ephemeralConfig
	asked  string
	ctx    context.Context // ends at Close
	cancel context.CancelCauseFunc
	done   chan struct{}
	status chan EphemeralStatus
	kick   chan struct{} // there is something to write

	decided  chan struct{} // closed when Manager.Ephemeral can return
	leftover error         // why the znode could not be removed; valid once done is closed

	mu      sync.Mutex
	refusal error // of the first creation
	told    bool
	last    EphemeralStatus
	path    string // of the znode while it is present
	err     error
	data    pendingData
}

// Ephemeral creates an ephemeral znode at path, with the directories above it,
// and keeps it present until Close or the end of the Manager; see Ephemeral. It
// returns when the znode is Present or there is a Conflict, which is no error here
// but told by Status. An error means that there is no Ephemeral: path or an option
// is invalid, the server refuses the creation, the Manager is closed, or ctx has
// ended, in which case what may have been created is removed in the background.
// ctx bounds this call alone.
//
// Of two Ephemerals of one Manager with the same path the second has a Conflict
// with the first, as if that were somebody else's, unless they are sequential.
func (m *Manager) Ephemeral(ctx context.Context, path string, data []byte, opts ...EphemeralOption) (*Ephemeral, error) {
	var cfg ephemeralConfig
	for i, opt := range opts {
		if opt == nil {
			return nil, opError("ephemeral", path, invalid("Ephemeral", "option %d is nil", i+1))
		}
		if err := opt(&cfg); err != nil {
			return nil, opError("ephemeral", path, err)
		}
	}
	if err := checkPath(path, cfg.sequential); err != nil {
		return nil, opError("ephemeral", path, err)
	}
	if path == "/" {
		return nil, opError("ephemeral", path, fmt.Errorf("%w: the root is always there", ErrInvalidPath))
	}
	if ctx.Err() != nil {
		return nil, opError("ephemeral", path, Cancelled(ctx))
	}
	e := &Ephemeral{
		m: m, cfg: cfg, asked: path,
		done: make(chan struct{}), decided: make(chan struct{}),
		status: make(chan EphemeralStatus, maxUnseen), kick: make(chan struct{}, 1),
	}
	e.data.init(data)
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	if !m.own(e.run) {
		return nil, opError("ephemeral", path, ErrClosed)
	}
	select {
	case <-e.decided:
	case <-e.done:
	case <-ctx.Done():
		err := e.cancelled(ctx)
		e.cancel(ErrEphemeralClosed)
		return nil, opError("ephemeral", path, err)
	}
	e.mu.Lock()
	err := e.refusal
	if err == nil && !isClosed(e.decided) {
		err = e.err // the Manager was closed first
	}
	e.mu.Unlock()
	if err != nil {
		e.cancel(ErrEphemeralClosed)
		return nil, opError("ephemeral", path, err)
	}
	return e, nil
}

// cancelled is the error of a call whose ctx has ended while it waited for the znode.
func (e *Ephemeral) cancelled(ctx context.Context) error {
	obstacle := e.Err()
	if obstacle == nil || e.m.State() != Connected {
		return e.m.Cancelled(ctx)
	}
	if op, ok := obstacle.(*Error); ok && op.Path == e.asked {
		obstacle = op.Err // the caller adds the operation and the path
	}
	return CancelledWaiting(ctx, fmt.Errorf("waiting: %w", obstacle))
}

// reserve makes sure that no two Ephemerals take the same znode for theirs. It
// returns the end of the one that has it, nil if e has.
func (e *Ephemeral) reserve() <-chan struct{} {
	m := e.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.cfg.sequential {
		return nil
	}
	if other := m.ephemerals[e.asked]; other != nil {
		return other
	}
	m.ephemerals[e.asked] = e.done
	return nil
}

func (e *Ephemeral) release() {
	e.m.mu.Lock()
	defer e.m.mu.Unlock()
	if e.m.ephemerals[e.asked] == e.done {
		delete(e.m.ephemerals, e.asked)
	}
}

// own runs f as a goroutine that Close waits for, unless the Manager is closed.
func (m *Manager) own(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == Closed {
		return false
	}
	m.wg.Go(f)
	return true
}

// Path is the znode's path at present, and empty while it is not Present. A
// sequential one has another in every session.
func (e *Ephemeral) Path() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.path
}

// Status returns a channel that tells what has become of the znode: its status
// at present, then each change. A slow reader gets the newest and misses those in
// between, but is always told of a Conflict since it last looked; each Conflict is
// told once, however long it lasts. The channel is the same at every call, for one
// consumer, with a buffer for what was not received, and is closed at Close or
// the end of the Manager. Nobody needs to read it.
func (e *Ephemeral) Status() <-chan EphemeralStatus { return e.status }

// Err is nil while the znode is Present, and says otherwise why it is not:
// ErrConflict and whose znode is in the way, ErrLost, what the server refused its
// creation with, ErrEphemeralClosed, or ErrClosed if the Manager is closed.
func (e *Ephemeral) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Set changes the data of the znode. From now on it is what the znode is created
// with as well. Set returns when it has been written: with nil, or with what the
// server refused it with, after which the data that was written last is wanted
// again. It waits through lost connections, sessions and conflicts until ctx ends:
// then the data is still wanted, and written as soon as that can be. Of calls at
// the same time the last one counts, and its outcome is that of all.
//
// Data that somebody else writes into the znode stays until the next Set or
// session.
func (e *Ephemeral) Set(ctx context.Context, data []byte) error {
	if ctx.Err() != nil {
		return opError("ephemeral", e.asked, Cancelled(ctx))
	}
	wait := e.data.want(slices.Clone(data))
	signal(e.kick)
	return opError("ephemeral", e.asked, wait(ctx, e))
}

// Close removes the znode and ends the Ephemeral: the Status channel is closed.
// It returns when the znode is gone, or the session is, and with an error if the
// server refuses the removal. If that takes longer than the session timeout, because no
// server can be reached, it returns an error as well, and the removal goes on in
// the background until the session is over. Close may be called more than once,
// and after Manager.Close.
func (e *Ephemeral) Close() error {
	e.cancel(ErrEphemeralClosed)
	limit := time.NewTimer(e.m.cfg.timeout)
	defer limit.Stop()
	select {
	case <-e.done:
	case <-limit.C:
		return opError("ephemeral", e.asked, fmt.Errorf("not removed within %v; it will be when a server can be reached, or go with the session", e.m.cfg.timeout))
	}
	return opError("ephemeral", e.asked, e.leftover)
}
