package zksync

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/line"
)

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
//
// Leadership is never given up before work has returned, unless WithStopTimeout
// bounds that. If work calls runtime.Goexit, Run resigns and its goroutine ends. Run ends
// no leadership but its own. Otherwise it fails like Campaign. Manager.Close waits for
// work while the session is proven alive.
func (e *Election) Run(ctx context.Context, work func(ctx context.Context) error) error {
	var result error // of the last work
	err := e.m.Retry(ctx, func(*session.Session) error {
		lead, g, err := e.campaign(ctx)
		if session.ClassOf(err) == session.ClassRemoved {
			return errCampaignAgain
		}
		if err != nil {
			return err
		}
		var lost bool
		result, lost, err = e.term(lead, g, work)
		switch {
		case err != nil:
			result = opError("run", e.path, err)
			return nil
		case ctx.Err() != nil:
			return session.Cancelled(ctx)
		case !lost:
			return nil
		}
		e.m.Logger().Warn("leadership lost", zap.String("path", e.path), zap.NamedError("result", result))
		return errCampaignAgain
	})
	switch {
	case err == nil:
		return result
	case ctx.Err() != nil:
		return opError("run", e.path, runEnded(ctx, err))
	}
	return opError("run", e.path, err)
}

// runEnded is the error of a Run whose ctx has ended; err is the error of the last
// attempt.
func runEnded(ctx context.Context, err error) error {
	if reason := session.WaitReason(err); reason != nil {
		return session.CancelledWaiting(ctx, reason)
	}
	return session.Cancelled(ctx)
}

// errCampaignAgain makes Retry call a function again: leadership was lost, or another
// client removed the candidate's znode.
var errCampaignAgain = fmt.Errorf("%w: the candidacy ended", ErrLost)

// term is one time of leading. lost reports that leadership ended before work did,
// or before work was called.
func (e *Election) term(lead context.Context, g *line.Grant, work func(context.Context) error) (result error, lost bool, err error) {
	defer e.resign(g) // a loss is known from the context
	done, err := g.Session().Busy()
	if err != nil {
		return nil, true, nil // the session ended after the grant
	}
	defer done()
	if e.cfg.stopping == 0 {
		result = work(lead)
		return result, lead.Err() != nil, nil
	}
	returned, exited := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(exited) // also when work calls runtime.Goexit
		returned <- work(lead)
	}()
	select {
	case <-exited:
	case <-lead.Done():
		limit := time.NewTimer(e.cfg.stopping)
		defer limit.Stop()
		select {
		case <-exited:
		case <-limit.C:
			return nil, true, fmt.Errorf("%w %v after its context had ended: %w", ErrStillRunning, e.cfg.stopping, context.Cause(lead))
		}
	}
	select {
	case result = <-returned:
	default:
		runtime.Goexit()
	}
	return result, lead.Err() != nil, nil
}
