package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// An Ephemeral keeps an ephemeral znode present for as long as its Manager lives. It
// creates the znode again under every new session, and when another client deletes the
// znode. All methods may be called from any goroutine.
//
// If a previous session of this Manager has left a znode of the same name, the Ephemeral
// waits until that znode is gone. A znode that this Ephemeral has not created, even a persistent
// znode, is a Conflict: the Ephemeral leaves it untouched, and creates its own znode when the
// other znode is gone. That includes a znode of the same session, for example of an Election, unless the
// answer to the creation of this Ephemeral was lost, or was an internal error of the server, and the
// other znode was created since.
//
// A server of version 3.8.4, 3.9.2 or newer keeps an event from a client that may not read the znode at that moment, and
// takes the watch away. If an ACL is closed to this process meanwhile, the Ephemeral notices only after the next
// reconnect that its own znode, or the znode of a Conflict, was deleted.
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

	decided  chan struct{}  // closed when Manager.Ephemeral can return
	refusal  error          // of the first creation; valid once decided is closed
	leftover error          // why the znode could not be removed; valid once done is closed
	removals []<-chan error // by the janitor, which the end has to wait for

	data *pendingData

	mu      sync.Mutex
	told    bool
	last    EphemeralStatus
	path    string // of the znode while the znode is present
	err     error  // why the znode is not present
	failure error  // why a request is sent again, nil if none is
}

// Ephemeral creates an ephemeral znode at path, with the directories above it, and keeps
// it present until Ephemeral.Close or the end of the Manager. The call returns when the
// znode is Present or there is a Conflict. A Conflict is not an error here:
// Ephemeral.Status reports it.
//
// The call returns an error, and no Ephemeral, if path or an option is invalid, the
// server refuses the creation, the Manager is closed, or ctx has ended. If ctx has ended,
// the error has the reason for the wait, and a znode that the call may have created is
// deleted in the background. ctx bounds only this call.
//
// If two Ephemerals of one Manager have the same path and are not sequential, the second
// has a Conflict with the first.
func (m *Manager) Ephemeral(ctx context.Context, path string, data []byte, opts ...EphemeralOption) (*Ephemeral, error) {
	if m == nil {
		return nil, opError("ephemeral", path, errNilManager)
	}
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
	if path == "/" && !cfg.sequential {
		return nil, opError("ephemeral", path, fmt.Errorf("%w: the root always exists", ErrInvalidPath))
	}
	if ctx.Err() != nil {
		return nil, opError("ephemeral", path, Cancelled(ctx))
	}
	e := &Ephemeral{
		m: m, cfg: cfg, asked: path, data: newPendingData(data),
		done: make(chan struct{}), decided: make(chan struct{}),
		status: make(chan EphemeralStatus, maxUnseen),
	}
	e.ctx, e.cancel = context.WithCancelCause(withFailures(context.Background(), e.noteFailure))
	if !m.own(e.run) {
		return nil, opError("ephemeral", path, ErrClosed)
	}
	select {
	case <-e.decided:
	case <-e.done:
	case <-ctx.Done():
		// The reason must be read before run ends and replaces it. run then deletes the
		// znode that it may have created.
		err := e.cancelled(ctx)
		e.cancel(ErrEphemeralClosed)
		return nil, opError("ephemeral", path, err)
	}
	err := e.Err() // the Manager was closed first
	if isClosed(e.decided) {
		err = e.refusal
	}
	if err != nil {
		return nil, opError("ephemeral", path, err)
	}
	return e, nil
}

// own runs f as a goroutine that Close waits for. It returns false if the Manager is
// closed.
func (m *Manager) own(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state == Closed {
		return false
	}
	// Under mu: run sets Closed under mu before it waits for wg, so Go never runs beside
	// Wait.
	m.wg.Go(f)
	return true
}

// Path returns the path of the znode, and "" while the znode is not Present. A sequential
// znode has another path in every session.
func (e *Ephemeral) Path() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.path
}

// Status returns a channel that delivers the present status of the znode and then each
// change. A slow reader gets the newest status, and before it a Conflict if there was one
// since the last receipt, regardless of its duration; several of them are one. If the consumer
// receives at the very moment of a change, the Conflict may follow the status that came after
// it; the newest status is always the last. Every call
// returns the same channel, which is for one consumer. The Ephemeral keeps a status that
// was not received, so no consumer is required. The channel is closed at Close or at the
// end of the Manager.
func (e *Ephemeral) Status() <-chan EphemeralStatus { return e.status }

// Err returns nil while the znode is Present, and otherwise the reason: ErrConflict with the owner of
// the znode in the way, ErrLost, ErrRemoved, the refusal of the creation, ErrEphemeralClosed, or
// ErrClosed. While an Ephemeral of the same path that was closed has not removed its znode, the
// reason has ClassTransient.
func (e *Ephemeral) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Set changes the data of the znode, also for later creations of the znode. Set returns
// nil when the data has been written. If the server refuses the data, Set returns the
// refusal, and the data that was written last is the wanted data again. Data for which a
// creation would be above the limit of WithMaxRequest is refused with ErrTooLarge.
//
// Set waits through lost connections, lost sessions and conflicts until ctx ends, and then
// returns the reason for the wait. After the end of ctx the data is still wanted, and is
// written as soon as possible. If several
// calls run at the same time, only the last call counts, and its outcome is the outcome
// of all.
//
// Data that another client writes into the znode stays until the next Set or session. If another client
// replaces the znode by one of its own unseen, because it does so while Set writes or because the ACL forbids
// this client to read the znode, Set may overwrite the data of the new znode.
func (e *Ephemeral) Set(ctx context.Context, data []byte) error {
	if ctx.Err() != nil {
		return opError("ephemeral", e.asked, Cancelled(ctx))
	}
	generation := e.data.want(slices.Clone(data))
	return opError("ephemeral", e.asked, e.awaitData(ctx, generation))
}

// Close removes the znode, ends the Ephemeral, and closes the Status channel. It returns when the
// znode or the session is gone, and fails if the server refuses the removal. If no server can be reached
// for the timeout of WithTimeout, or for the granted one if that is longer, up to ten seconds, Close
// returns an error with the reason, and the removal continues in the background until the session is
// over. Close may be called more than once, and after Manager.Close.
func (e *Ephemeral) Close() error {
	e.Discard()
	timeout := e.m.cfg.timeout
	if s := e.m.present().session; s != nil {
		// The servers may have granted more, and hostile ones far too much.
		timeout = max(timeout, min(s.Timeout(), longestClose))
	}
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-e.done:
	case <-limit.C:
		err := fmt.Errorf("%w within %v: it is removed when a server accepts the removal, or when its session ends", errNotRemoved, timeout)
		if reason := e.reason(); reason != nil {
			err = fmt.Errorf("%w; %w", err, reason)
		}
		return opError("ephemeral", e.asked, err)
	}
	return opError("ephemeral", e.asked, e.leftover)
}

// longestClose bounds the wait of Close for a session timeout that is longer than asked for.
const longestClose = 10 * time.Second

// Discard is Close without the wait. From now on another Ephemeral of the same path has no Conflict
// with this one, but waits until its znode is gone.
func (e *Ephemeral) Discard() { e.cancel(ErrEphemeralClosed) }

type ephemeralConfig struct {
	sequential bool
	acl        []zk.ACL
}

// An EphemeralOption changes a default of Manager.Ephemeral.
type EphemeralOption func(*ephemeralConfig) error

// WithSequence lets the server append a number to the name. The name also starts with a
// GUID, as in Session.CreateProtected. So no other znode can be in the way, and the name
// differs in every session: Ephemeral.Path returns it.
func WithSequence() EphemeralOption {
	return func(c *ephemeralConfig) error {
		c.sequential = true
		return nil
	}
}

// WithEphemeralACL sets the ACL of the znode in place of the Manager's default. If the ACL
// denies us to read the znode, its removal by another client goes unnoticed, and the znode of
// a previous session is a Conflict until it is gone. If the ACL denies us to write, Set fails.
func WithEphemeralACL(acl ...zk.ACL) EphemeralOption {
	err := checkACL(acl)
	return option(err == nil, "WithEphemeralACL", fmt.Sprint(err), func(c *ephemeralConfig) { c.acl = slices.Clone(acl) })
}

// tell sets the status of the znode, and the error if the znode is not present.
func (e *Ephemeral) tell(st EphemeralStatus, path string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.path, e.err = path, err
	if st != Absent {
		e.decide(nil)
	}
	if e.told && st == e.last {
		return
	}
	e.told, e.last = true, st
	push(e.status, st, Conflict)
}

// decide lets Manager.Ephemeral return refusal, and ends an Ephemeral that is refused. Only the first call
// has an effect. Only the goroutine of the Ephemeral calls it.
func (e *Ephemeral) decide(refusal error) {
	if isClosed(e.decided) {
		return
	}
	e.refusal = refusal
	close(e.decided)
	if refusal != nil {
		e.cancel(ErrEphemeralClosed) // here and not in Manager.Ephemeral, so that no further create is sent
	}
}

// EphemeralStatus is the state of the znode of an Ephemeral.
type EphemeralStatus uint8

const (
	// Absent: the znode does not exist, because the session was lost, another client has
	// deleted the znode, or the creation has failed. The Ephemeral tries to create it.
	Absent EphemeralStatus = iota
	// Present: the znode exists, owned by the present session. The status stays Present
	// while the connection is down, until the session is lost.
	Present
	// Conflict: a znode of somebody else has the name. The Ephemeral leaves it
	// untouched, and creates its own znode when the other znode is gone.
	Conflict
)

var ephemeralStatusNames = [...]string{"Absent", "Present", "Conflict"}

func (s EphemeralStatus) String() string {
	return nameOf(ephemeralStatusNames[:], uint8(s), "EphemeralStatus")
}
