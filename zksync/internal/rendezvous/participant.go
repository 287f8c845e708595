package rendezvous

import (
	"context"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// maxGrace bounds the time for which a call outlives its ctx to finish a step.
const maxGrace = time.Second

// A Participant enters a barrier under one session. Its methods are called by one
// goroutine at a time. The words round and touch in the documentation of the package say
// what keeps rounds apart.
type Participant struct {
	barrierView
	child
	lease *session.Lease

	joined      bool  // and driftAtJoin is known
	driftAtJoin int32 // see note
}

// Hold derives a context from the caller's context that also ends with the loss of the
// participant's session, when a transaction of the session finds that the child was removed, and
// with released at end. Until end, the Manager waits. Hold fails if the session has ended.
func (p *Participant) Hold(ctx context.Context, released error) (held context.Context, end func(), err error) {
	done, err := p.s.Busy()
	if err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	stop, err := znode.NotifyLoss(p.s, cancel)
	if err != nil {
		cancel(err)
		done()
		return nil, nil, err
	}
	p.lease.NotifyGone(func() { cancel(session.ErrRemoved) })
	return held, func() {
		stop()
		cancel(released)
		done()
	}, nil
}

// runApart runs step to its end in a goroutine of its own and returns its result. step
// ends soon after ctx. If no server answers, runApart does not wait for the end of
// step, and late is called with the result of step.
func (p *Participant) runApart(ctx context.Context, op string, step func(context.Context) error, late func(error)) error {
	p.wait = &participantWait{v: &p.barrierView, op: op}
	// Manager.Close waits for the step, so that the step can still delete the child.
	done, err := p.s.Busy()
	if err != nil {
		p.close()
		return znode.LossOf(err)
	}
	defer p.wait.stop()
	// result has no buffer: either the caller receives the result, or late gets it.
	result, deserted, settled := make(chan error), make(chan struct{}), make(chan struct{})
	p.b.settled = settled
	go func() {
		// Last, behind late: the next call must find no request of this one under way.
		defer close(settled)
		defer done()
		err := step(ctx)
		select {
		case result <- err:
		case <-deserted:
			late(err)
		}
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result:
		return err
	case <-time.After(p.grace()):
		close(deserted)
		return p.wait.cancelled(ctx)
	}
}

// enter returns nil when the participant is inside. If it fails, the participant is not
// inside, and is not counted any more.
func (p *Participant) enter(ctx context.Context) error {
	err := p.pass(ctx)
	if err == nil {
		// The hold begins only if the session is proven alive. The end of ctx does not end this
		// wait: the round includes the participant.
		p.lease.Own(p.path)
		err = znode.Grant(background, p.lease)
	}
	if err != nil {
		p.drop()
	}
	return err
}

// pass joins rounds until a round includes the participant.
func (p *Participant) pass(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	for {
		if err := p.awaitNext(ctx); err != nil {
			return err
		}
		in, err := false, p.join()
		if err == nil {
			in, err = p.awaitOpening(ctx)
		}
		switch {
		case err != nil && p.path != "" && session.ClassOf(err) != session.ClassRemoved && p.s.Err() == nil:
			// The barrier may have opened at the moment at which ctx ended or a request failed. The other
			// participants count on this one then, so Enter succeeds. If retract fails, enter drops the
			// child.
			if in, _ = p.retract(); in {
				return nil
			}
			return err
		case in || err != nil:
			return err
		}
		// That round began before our child was created.
		if err := p.remove(); err != nil && session.ClassOf(err) != session.ClassRemoved {
			return err
		}
	}
}

// leave deletes the child and waits for the end of the round. If leave fails, the child is
// gone or is being deleted.
func (p *Participant) leave(ctx context.Context) error {
	defer p.close()
	if err := znode.SessionLost(p.s); err != nil {
		return err
	}
	p.lease.Release() // from here on the session need not end when it cannot be proven alive
	err := p.removeOrDiscard()
	if session.ClassOf(err) == session.ClassRemoved {
		p.lease.Lose()
		// The child may have been the last one of the round, and this participant does not wait for
		// the end of the round.
		if there, ready, failed := p.list(ctx); failed == nil && ready && there == 0 {
			_, _ = p.clear()
		}
	}
	p.lease.End()
	if err == nil {
		err = p.awaitEnd(ctx)
	}
	if ended := p.s.Err(); err != nil && ended != nil {
		return znode.LossOf(ended)
	}
	return err
}

// drop deletes the child, if it may exist, when no caller waits for the deletion.
func (p *Participant) drop() {
	if p.path != "" && p.s.Err() == nil {
		_ = p.removeOrDiscard()
	}
	p.close()
}

// close ends the lease, the watch and the subscription, and leaves the child.
func (p *Participant) close() {
	p.unwatch()
	if p.endStates != nil {
		p.endStates()
	}
	p.lease.End()
}
