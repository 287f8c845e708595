package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// A runCommand runs a command while something is held.
type runCommand struct {
	lock, rlock, wlock, elect bool
	units                     int
	try                       bool
	wait                      time.Duration
	grace                     time.Duration
	conflict                  int
	id                        string
	quiet                     bool
	path                      string
	command                   []string
}

func (r *runCommand) flags(fs *flag.FlagSet) {
	fs.BoolVar(&r.lock, "lock", false, "hold a lock that excludes every other -lock; the default")
	fs.BoolVar(&r.rlock, "rlock", false, "hold a read lock, which excludes -wlock")
	fs.BoolVar(&r.wlock, "wlock", false, "hold a write lock, which excludes -rlock and every other -wlock")
	fs.Func("sem", "hold one of `N` units of a semaphore", func(text string) (err error) {
		if r.units, err = strconv.Atoi(text); err != nil || r.units < 1 {
			return errors.New("want the number of units, 1 or more")
		}
		return nil
	})
	fs.BoolVar(&r.elect, "elect", false, "lead an election, and start the command anew after a loss")
	fs.BoolVar(&r.try, "try", false, "do not wait")
	durationVar(fs, &r.wait, "wait", 0, "wait for this `DURATION` at most; 0 is for ever")
	durationVar(fs, &r.grace, "grace", 5*time.Second, "the `DURATION` that the command has between TERM and KILL while the lock is held")
	fs.IntVar(&r.conflict, "E", statusConflict, "the exit `status` if others hold the lock")
	fs.StringVar(&r.id, "id", "", "the `id` that others see; the default is host:pid")
	fs.BoolVar(&r.quiet, "quiet", false, "do not tell what the command waits for")
}

func (r *runCommand) parse(args []string) error {
	modes := 0
	for _, given := range []bool{r.lock, r.rlock, r.wlock, r.elect, r.units != 0} {
		if given {
			modes++
		}
	}
	switch {
	case len(args) == 0:
		return errors.New("no path")
	case len(args) == 1:
		return errors.New("no command to run")
	case modes > 1:
		return errors.New("give one of -lock, -rlock, -wlock, -sem and -elect")
	case r.elect && (r.try || r.wait != 0):
		return errors.New("-try and -wait do not go with -elect")
	case r.try && r.wait != 0:
		return errors.New("give either -try or -wait")
	case r.wait < 0:
		return fmt.Errorf("-wait %v is negative", r.wait)
	case r.grace < 0:
		return fmt.Errorf("-grace %v is negative", r.grace)
	case r.conflict < 0 || r.conflict > 255:
		return fmt.Errorf("-E %d is not an exit status, want 0 to 255", r.conflict)
	}
	r.path, r.command = args[0], args[1:]
	return nil
}

func (r *runCommand) run(ctx context.Context, p *program) int {
	began := time.Now()
	said := newMessages(p.stderr)
	defer said.close()
	stderr := p.stderr
	p.stderr = said
	m, err := p.ensemble.open(ctx, r.wait)
	if err != nil {
		return p.failed(ctx, err)
	}
	defer unlessStopped(ctx, m.Close)
	c := &child{args: r.command, grace: r.grace, stdin: p.stdin, stdout: p.stdout, stderr: stderr, messages: said, signal: signalGroup}
	return r.runHeld(ctx, p, m, r.holder(m), c, began)
}

// runHeld acquires, runs the command, and returns the exit status.
func (r *runCommand) runHeld(ctx context.Context, p *program, m *session.Manager, h holder, c *child, began time.Time) int {
	for {
		held, s, err := r.acquire(ctx, p, m, h, began)
		again := r.elect && ctx.Err() == nil
		switch {
		case again && errors.Is(err, zksync.ErrRemoved):
			fmt.Fprintf(p.stderr, "zklock: another client has removed the candidate of %s; campaigning again\n", r.path)
			continue
		case again && errors.Is(err, zksync.ErrLost):
			fmt.Fprintf(p.stderr, "zklock: leadership of %s was lost before the command was started; campaigning again\n", r.path)
			continue
		case err != nil:
			return r.refused(ctx, p, m, err)
		}
		status, lost := c.run(ctx, held, s)
		if err := unlessStopped(ctx, h.release); !lost && !errors.Is(err, zksync.ErrLost) {
			return status
		}
		if r.elect && ctx.Err() == nil {
			fmt.Fprintf(p.stderr, "zklock: leadership of %s was lost; campaigning again\n", r.path)
			continue
		}
		fmt.Fprintf(p.stderr, "zklock: %s was lost while the command ran\n", r.path)
		return statusLost
	}
}

// errContended says that others hold the lock, so that nothing was acquired.
var errContended = errors.New("another process holds it")

// acquire waits for the hold and for its session. The limit of -wait counts from began. The returned context ends with the
// hold and not with ctx, so that the command may take its grace after a signal.
func (r *runCommand) acquire(ctx context.Context, p *program, m *session.Manager, h holder, began time.Time) (held context.Context, s *session.Session, err error) {
	wait, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	interrupt := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	limit, why := r.wait, error(zksync.ErrMaxWait)
	if r.try {
		limit, why = p.ensemble.connect, session.ErrConnectionLost
	}
	if r.wait > 0 {
		limit = max(r.wait-time.Since(began), 1)
	}
	inTime := func() bool { return true }
	if limit > 0 {
		inTime = time.AfterFunc(limit, func() { cancel(why) }).Stop
	}
	if !r.quiet && !r.try {
		done := make(chan struct{})
		told := make(chan struct{})
		go func() { defer close(told); r.explain(p, m, done) }()
		defer func() { close(done); <-told }()
	}
	held, ok, err := h.acquire(wait, r.try)
	granted := err == nil && ok
	if granted {
		// This waits if the connection was lost right after the grant. A signal and the limit end wait, and so held.
		s, err = m.Session(held)
		err = cmp.Or(context.Cause(held), err)
	}
	// From here on nothing ends wait, of which the context of the hold is a child.
	signalled, late := !interrupt(), !inTime()
	if granted && (signalled || late || err != nil) {
		stop := ctx
		if late {
			stop = wait // -wait is also the limit of the release
		}
		_ = unlessStopped(stop, h.release)
		if signalled || late {
			err = cmp.Or(context.Cause(ctx), why)
		}
		return nil, nil, err
	}
	if err == nil && !ok {
		err = errContended
	}
	return held, s, err
}

// refused says why nothing was acquired, and names the holders.
func (r *runCommand) refused(ctx context.Context, p *program, m *session.Manager, err error) int {
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx)
	case errors.Is(err, errContended):
	case errors.Is(err, zksync.ErrRemoved):
		fmt.Fprintf(p.stderr, "zklock: another client has removed this contender from the line of %s\n", r.path)
		return r.conflict
	case errors.Is(err, zksync.ErrLost):
		fmt.Fprintf(p.stderr, "zklock: %s was lost before the command was started: %s\n", r.path, printable(inOptions.Replace(err.Error())))
		return statusEnsemble
	case errors.Is(err, zksync.ErrMaxWait) && m.State() == session.Connected:
	case errors.Is(err, zksync.ErrMaxWait) || errors.Is(err, session.ErrConnectionLost):
		fmt.Fprintf(p.stderr, "zklock: no server answers, so nothing is known about %s: %s\n", r.path, printable(inOptions.Replace(err.Error())))
		return statusEnsemble
	default:
		return p.failed(ctx, err)
	}
	fmt.Fprintf(p.stderr, "zklock: %s\n", r.situation(ctx, m))
	return r.conflict
}

const (
	firstExplanation = 3 * time.Second
	lastExplanation  = 5 * time.Minute
)

// explain tells what the command waits for, at growing intervals.
func (r *runCommand) explain(p *program, m *session.Manager, done <-chan struct{}) {
	for after := firstExplanation; ; after = min(2*after, lastExplanation) {
		t := time.NewTimer(after)
		select {
		case <-done:
			t.Stop()
			return
		case <-t.C:
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			select {
			case <-done:
				cancel()
			case <-ctx.Done():
			}
		}()
		text := r.situation(ctx, m)
		if cancel(); !isClosed(done) {
			fmt.Fprintf(p.stderr, "zklock: waiting: %s\n", text)
		}
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// situation says who holds the path, in one line.
func (r *runCommand) situation(ctx context.Context, m *session.Manager) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found, err := zksync.Inspect(ctx, m, r.path)
	switch {
	case err != nil && m.State() != session.Connected:
		return fmt.Sprintf("no server answers, so nothing is known about %s", r.path)
	case err != nil:
		return fmt.Sprintf("others hold %s, or held it a moment ago: %s", r.path, printable(inOptions.Replace(err.Error())))
	}
	return describe(found)
}
