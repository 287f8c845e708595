package zksync

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

// An Election chooses one leader among the candidates at a path: the candidate that
// joined first. A value is one candidate, which may campaign any number of times, one
// at a time.
//
// On the server it is the directory path with a child for each candidate, in the
// layout of Curator's LeaderLatch, so that both take part in the same election. The
// data of a child is the candidate's id. WithLayout selects the layout of Curator's
// LeaderSelector or of kazoo's Election instead. The algorithm is the election recipe
// of the ZooKeeper documentation. The data of the directory belongs to the election
// and is overwritten: keep data of your own in another znode.
//
// WithLayout(LayoutEphemeral) makes path the ephemeral znode of the leader, for which
// all candidates race: see LayoutEphemeral.
type Election struct {
	m       *session.Manager
	path    string
	cfg     config
	err     error
	contest contest

	mu          sync.Mutex
	campaigning bool
	held        *line.Hold
}

// A contest is how candidates come to lead.
type contest interface {
	// Hold waits until the candidate leads.
	Hold(ctx context.Context) (*line.Hold, error)
	// List returns the first n candidates in order, or all if n is negative.
	List(ctx context.Context, s *session.Session, n int) ([]line.Listed, error)
	// Follow reports the znode of the leader, or a nil Stat if there is no leader, and
	// returns a watch for the next change. It returns nil if the state has changed
	// during the reads.
	Follow(ctx context.Context, s *session.Session, report func(data []byte, stat *zk.Stat)) (*session.Watch, error)
}

// NewElection returns a candidate in the election at path. It does no I/O and
// returns no error: an invalid path or option is reported by the first call.
func NewElection(m *session.Manager, path string, opts ...ElectionOption) *Election {
	cfg, err := newConfig("Election", opts)
	if err == nil {
		err = session.CheckPath(path)
	}
	if err == nil && cfg.layout == LayoutEphemeral && path == "/" {
		err = fmt.Errorf(`%w: "/" always exists, want the leader's znode as "/app/leader"`, session.ErrInvalidPath)
	}
	m.ExpectHolds()
	return &Election{m: m, path: path, cfg: cfg, err: err, contest: cfg.layout.contest(m, path, cfg.identity())}
}

// Campaign waits until this candidate leads, and returns the context of the
// leadership. The context is derived from ctx, carries the fencing token (see Token),
// and ends, with a cause, on Resign (ErrReleased), when leadership is lost (ErrLost:
// before another candidate can lead, unless the znode was removed by force), when the
// Manager is closed (ErrLost and ErrClosed), or when ctx ends. The end of ctx does
// not resign: call Resign. After a loss, Campaign may be called again without Resign.
//
// When ctx ends before, the candidacy is withdrawn, and Campaign returns the error of
// ctx. After a lost session Campaign waits for longer: it joins again, as the last
// candidate. It fails with ErrBusy while this value campaigns or leads, with
// ErrClosed when the Manager is closed, and with ErrLost if another client removes
// the candidate's znode.
func (e *Election) Campaign(ctx context.Context) (context.Context, error) {
	lead, _, err := e.campaign(ctx)
	return lead, opError("campaign", e.path, err)
}

func (e *Election) campaign(ctx context.Context) (context.Context, *line.Hold, error) {
	if e.err != nil {
		return nil, nil, e.err
	}
	if ctx.Err() != nil {
		return nil, nil, session.Cancelled(ctx)
	}
	if err := e.begin(); err != nil {
		return nil, nil, err
	}
	wait, cancel := e.cfg.bound(ctx)
	defer cancel()
	h, err := e.contest.Hold(wait)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.campaigning = false
	if err != nil {
		return nil, nil, err
	}
	lead := h.Context(ctx)
	e.held = h
	return lead, h, nil
}

// begin makes sure that this value does nothing else.
func (e *Election) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.campaigning {
		return fmt.Errorf("%w: this value is campaigning", ErrBusy)
	}
	if e.held != nil {
		if e.held.Lost() == nil {
			return fmt.Errorf("%w: this value leads", ErrBusy)
		}
		e.held.Leave()
		e.held = nil
	}
	e.campaigning = true
	return nil
}

// Resign gives leadership up, and waits for the server's answer for as long as
// the session is proven alive; from then on it goes on in the background, and
// Resign returns nil. It returns ErrLost if leadership had been lost, ErrLost and
// ErrClosed after the Manager was closed, and ErrNotHeld if this value does not
// lead.
func (e *Election) Resign() error {
	e.mu.Lock()
	h := e.held
	e.mu.Unlock()
	return opError("resign", e.path, e.resign(h))
}

// resign ends a hold, if it is still the hold of this value.
func (e *Election) resign(h *line.Hold) error {
	e.mu.Lock()
	ours := h != nil && e.held == h
	if ours {
		e.held = nil
	}
	e.mu.Unlock()
	if !ours {
		return ErrNotHeld
	}
	return h.Release()
}
