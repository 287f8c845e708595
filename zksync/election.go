package zksync

import (
	"context"
	"fmt"

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
// LeaderSelector, of kazoo's Election, or of an election by one ephemeral znode. The data
// of the directory belongs to the election and is overwritten: keep data of your own in
// another znode.
type Election struct {
	m       *session.Manager
	path    string
	cfg     config
	err     error
	contest line.Contest
	held    line.SoleHold
}

// NewElection returns a candidate in the election at path. It does no I/O: the first call
// reports an invalid path or option.
func NewElection(m *session.Manager, path string, opts ...ElectionOption) *Election {
	cfg, err := newConfig("Election", path, opts)
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
// ctx. After a lost connection Campaign continues to wait. After a lost session it joins
// again, as the last candidate. It fails with ErrBusy while this value campaigns or
// leads, with ErrClosed when the Manager is closed, and with ErrLost if another client
// removes the candidate's znode.
func (e *Election) Campaign(ctx context.Context) (context.Context, error) {
	lead, _, err := e.campaign(ctx)
	return lead, opError("campaign", e.path, err)
}

func (e *Election) campaign(ctx context.Context) (context.Context, *line.Grant, error) {
	if err := ready(ctx, e.err); err != nil {
		return nil, nil, err
	}
	if err := e.held.Begin(); err != nil {
		return nil, nil, err
	}
	wait, cancel := e.cfg.bound(ctx)
	defer cancel()
	g, err := e.contest.Acquire(wait)
	if err != nil {
		e.held.Set(nil)
		return nil, nil, err
	}
	lead := g.Context(ctx)
	e.held.Set(g)
	return lead, g, nil
}

// Resign gives leadership up, and waits for the server's answer for as long as
// the session is proven alive; from then on the release goes on in the background, and
// Resign returns nil. It returns ErrLost if leadership had been lost, ErrLost and
// ErrClosed after the Manager was closed, and ErrNotHeld if this value does not lead.
func (e *Election) Resign() error {
	return opError("resign", e.path, e.resign(e.held.Get()))
}

// resign ends a hold, if it is still the hold of this value.
func (e *Election) resign(g *line.Grant) error {
	return e.held.End(g, (*line.Grant).Release)
}
