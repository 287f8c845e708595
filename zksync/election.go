package zksync

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/go-zksync/toolkit/session"
)

// An Election chooses one leader among the candidates at a path: the one that
// has been there for longest. A value is one candidate, which may campaign any
// number of times, one at a time.
//
// On the server it is the directory path with a child for each candidate, laid
// out like Curator's LeaderLatch, with which it elects together: the data is the
// candidate's id. WithLayout makes that Curator's LeaderSelector or kazoo's Election.
// The algorithm is the election recipe of the ZooKeeper
// documentation.
//
// An election that did without a line, with one ephemeral znode for which all
// candidates race, was considered and left out: it saves a leader nothing, since
// joining a line alone is one request as well, and at each change every candidate
// is woken and sends a create, of which all but one fail, in no order.
type Election struct {
	path string
	cfg  config
	err  error
	line *line

	mu          sync.Mutex
	campaigning bool
	held        *hold
}

// NewElection returns a candidate in the election at path. It does no I/O and
// returns no error: an invalid path or option is reported by the first call.
func NewElection(m *session.Manager, path string, opts ...Option) *Election {
	cfg, err := newConfig("Election", opts, "WithID", "WithMaxWait", "WithStopTimeout", "WithLayout")
	if err == nil {
		err = session.CheckPath(path)
	}
	if cfg.id == "" {
		host, _ := os.Hostname()
		cfg.id = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	m.ExpectHolds()
	name, rule := cfg.layout.election()
	return &Election{path: path, cfg: cfg, err: err, line: &line{
		m: m, dir: cfg.layout.directory(path), rule: rule,
		class: exclusive, name: name, data: []byte(cfg.id),
	}}
}

// Campaign waits until this candidate leads, and returns a context for the
// time that it does. It is derived from ctx, carries the fencing token (see Token),
// and ends, with a cause, on Resign (ErrReleased), when leadership is lost (ErrLost:
// before anyone else can lead, unless the znode was removed by force), when the
// Manager is closed (ErrLost and ErrClosed), or when ctx ends. The end of ctx does
// not resign: Resign is due. After a loss it is not; Campaign may be called again.
//
// When ctx ends before, the candidacy is withdrawn, and the error is that of ctx.
// A lost session only makes it wait for longer: it stands again, as the last. It
// fails with ErrBusy while this value campaigns or leads, with ErrClosed when the
// Manager is closed, and with ErrLost if somebody removes the candidate's znode.
func (e *Election) Campaign(ctx context.Context) (context.Context, error) {
	lead, _, err := e.campaign(ctx)
	return lead, opError("campaign", e.path, err)
}

func (e *Election) campaign(ctx context.Context) (context.Context, *hold, error) {
	if e.err != nil {
		return nil, nil, e.err
	}
	if ctx.Err() != nil {
		return nil, nil, cancelled(ctx)
	}
	if err := e.begin(); err != nil {
		return nil, nil, err
	}
	wait, cancel := e.cfg.bound(ctx)
	defer cancel()
	p, err := e.line.stand(wait)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.campaigning = false
	if err != nil {
		return nil, nil, err
	}
	h := &hold{p: p}
	lead := h.context(ctx)
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
		if e.held.p.lost() == nil {
			return fmt.Errorf("%w: this value leads", ErrBusy)
		}
		e.held.p.leave()
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
	e.held = nil
	e.mu.Unlock()
	if h == nil {
		return opError("resign", e.path, ErrNotHeld)
	}
	if err := h.p.lost(); err != nil {
		h.end(err)
		h.p.leave()
		return opError("resign", e.path, err)
	}
	h.end(ErrReleased)
	return opError("resign", e.path, h.p.release())
}

// Run campaigns and calls work with the leadership context, again and again:
//
//   - Work that returns while its context lives ends Run with its result, nil
//     included, after resigning.
//   - When leadership is lost, the context ends, and Run campaigns again as soon
//     as work has returned, whose result is logged.
//   - When ctx ends, Run withdraws or, once work has returned, resigns, and
//     returns context.Cause(ctx).
//
// Leadership is never given up before work has returned, unless WithStopTimeout
// bounds that. Run fails like Campaign. Manager.Close waits for work while the
// session is proven alive.
func (e *Election) Run(ctx context.Context, work func(ctx context.Context) error) error {
	for {
		lead, h, err := e.campaign(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrLost) && !errors.Is(err, ErrClosed):
			continue // put out of the line by force: stand again
		default:
			return opError("run", e.path, err)
		}
		result, lost, err := e.term(lead, h, work)
		switch {
		case err != nil:
			return opError("run", e.path, err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !lost:
			return result
		}
		e.line.m.Logger().Warn("leadership was lost; campaigning again", zap.String("path", e.path), zap.NamedError("result", result))
	}
}

// term is one time of leading. lost says that it ended before work did.
func (e *Election) term(lead context.Context, h *hold, work func(context.Context) error) (result error, lost bool, err error) {
	defer e.Resign() // a loss is known from the context
	done, err := h.p.s.Busy()
	if err != nil {
		return nil, true, err
	}
	defer done()
	if e.cfg.stopping == 0 {
		result = work(lead)
		return result, lead.Err() != nil, nil
	}
	returned := make(chan error, 1)
	go func() { returned <- work(lead) }()
	select {
	case result = <-returned:
		return result, lead.Err() != nil, nil
	case <-lead.Done():
	}
	limit := time.NewTimer(e.cfg.stopping)
	defer limit.Stop()
	select {
	case result = <-returned:
		return result, true, nil
	case <-limit.C:
		return nil, true, fmt.Errorf("%w %v after its context had ended: %w", ErrStillRunning, e.cfg.stopping, context.Cause(lead))
	}
}
