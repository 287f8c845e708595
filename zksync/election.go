package zksync

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

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
// of the directory belongs to the election.
type Election struct {
	primitive
	contest line.Contest
	held    line.SoleHold
}

// NewElection returns a candidate in the election at path.
func NewElection(m *session.Manager, path string, opts ...ElectionOption) *Election {
	p := newPrimitive("Election", m, path, opts)
	if p.err == nil && p.cfg.layout == LayoutEphemeral && path == "/" {
		p.err = fmt.Errorf(`%w: "/" always exists, want the leader's znode as "/app/leader"`, session.ErrInvalidPath)
	}
	m.ExpectHolds()
	return &Election{primitive: p, contest: p.cfg.layout.contest(m, path, p.cfg.identity())}
}

// Campaign waits until this candidate leads, and returns the context of the leadership,
// which is like the one of Mutex.LockContext and also ends on Resign (ErrReleased). The
// end of ctx does not resign: call Resign. After a loss, Campaign may be called again
// without Resign.
//
// When ctx ends before, the candidacy is withdrawn, and Campaign returns the error of
// ctx. After a lost connection Campaign continues to wait. After a lost session it joins
// again, as the last candidate. It fails with ErrBusy while this value campaigns or
// leads, with ErrClosed when the Manager is closed, and with ErrLost if another client
// removes the candidate's znode.
func (e *Election) Campaign(ctx context.Context) (context.Context, error) {
	lead, _, err := e.campaign(ctx)
	return lead, e.opError("campaign", err)
}

func (e *Election) campaign(ctx context.Context) (context.Context, *line.Grant, error) {
	if err := ready(ctx, e.invalid()); err != nil {
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

// Resign gives leadership up, and waits for the server's answer as Mutex.Unlock does. It
// returns ErrLost if leadership had been lost, unless the connection is lost meanwhile (see
// Mutex.Unlock), ErrLost and ErrClosed after the Manager was closed, and ErrNotHeld if this value
// does not lead. Run calls work again after a Resign within work, as after a loss.
func (e *Election) Resign() error {
	err := e.invalid()
	if err == nil {
		err = e.resign(e.held.Get())
	}
	return e.opError("resign", err)
}

// resign ends a hold, if it is still the hold of this value.
func (e *Election) resign(g *line.Grant) error {
	return e.held.End(g, (*line.Grant).Release)
}

// Run campaigns and calls work with the leadership context, again and again:
//
//   - Work that returns while its context lives ends Run with its result, nil
//     included, after resigning.
//   - When leadership is lost, the context ends, and Run campaigns again as soon
//     as work has returned, whose result is logged. Run also campaigns again if
//     leadership is lost before work was called.
//   - When ctx ends, Run withdraws or, once work has returned, resigns. The error
//     matches both ctx.Err() and context.Cause(ctx), and says whom Run was waiting
//     for if it did not lead.
//   - If the server refuses the resignation, Run ends with the refusal, joined with the
//     result of work: the candidate leads until its session ends, or until the server
//     permits the removal, which is tried again if only a permission is missing.
//
// Leadership is never given up before work has returned, unless WithStopTimeout
// bounds that. If work calls runtime.Goexit, Run resigns and its goroutine ends. Run ends
// no leadership but its own. Otherwise it fails like Campaign, and with ErrInvalidOption if
// work is nil. Manager.Close waits for work as long as Close says. A work that
// goes on for seconds after its context has ended is logged. WithMaxWait bounds each
// campaign, the wait for a session included.
func (e *Election) Run(ctx context.Context, work func(ctx context.Context) error) error {
	if work == nil {
		return e.opError("run", errNoWork)
	}
	if err := e.invalid(); err != nil {
		return e.opError("run", err)
	}
	var result error // of the last work
	// Not by Retry, whose wait for a session WithMaxWait would not bound.
	err := e.m.Repeat(ctx, func() error {
		lead, g, err := e.campaign(ctx)
		switch {
		case session.ClassOf(err) == session.ClassRemoved:
			return errCampaignAgain
		case err != nil:
			return err
		}
		var lost bool
		result, lost, err = e.term(ctx, lead, g, work)
		switch {
		case err != nil:
			result = errors.Join(result, e.opError("run", err))
			return nil
		case !lost:
			return nil // also if ctx has ended since, during the resignation
		case ctx.Err() != nil:
			return session.Cancelled(ctx)
		}
		e.m.Logger().Warn("leadership lost", zap.String("path", e.path), zap.NamedError("result", result))
		return errCampaignAgain
	})
	switch {
	case err == nil:
		return result
	case ctx.Err() != nil:
		return e.opError("run", session.CancelledWaiting(ctx, session.WaitReason(err)))
	}
	return e.opError("run", err)
}

// errCampaignAgain makes Repeat call a function again: leadership was lost, or another
// client removed the candidate's znode.
var errCampaignAgain = fmt.Errorf("%w: the candidacy ended", ErrLost)

// term is one time of leading. lost reports that leadership ended before work did,
// or before work was called. ctx is the context of Run.
func (e *Election) term(ctx, lead context.Context, g *line.Grant, work func(context.Context) error) (result error, lost bool, err error) {
	defer func() {
		switch failed := e.resign(g); session.ClassOf(failed) {
		case session.ClassNoAuth, session.ClassNotEmpty, session.ClassFinal:
			// The candidate still leads. A loss is known from the context.
			if ctx.Err() != nil {
				failed = errors.Join(session.Cancelled(ctx), failed)
			}
			err = errors.Join(err, failed)
		}
	}()
	done, err := g.Session().Busy()
	if err != nil {
		return nil, true, nil // the session ended after the grant
	}
	defer done()
	defer e.awaitReturn("run", lead)()
	if e.cfg.stopping == 0 {
		result = work(lead)
		return result, lead.Err() != nil, nil
	}
	returned, ok := make(chan error, 1), false
	go func() {
		defer close(returned) // also when work calls runtime.Goexit
		returned <- work(lead)
	}()
	select {
	case result, ok = <-returned:
	case <-lead.Done():
		select {
		case result, ok = <-returned:
		case <-time.After(e.cfg.stopping):
			why := context.Cause(lead)
			if ctx.Err() != nil {
				// The cause of lead need not match ctx.Err().
				why = session.CancelledWaiting(ctx, g.Lost())
			}
			return nil, true, fmt.Errorf("%w %v after its context had ended: %w", ErrStillRunning, e.cfg.stopping, why)
		}
	}
	if !ok {
		runtime.Goexit()
	}
	return result, lead.Err() != nil, nil
}
