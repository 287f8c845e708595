package zksync

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zksync/toolkit/session"
)

// maxGrace bounds how long a call outlives its ctx to finish what it has begun.
const maxGrace = time.Second

// A participant is one who enters a DoubleBarrier under one session: the one
// child of ours, and what is known of the barrier. It is used by one goroutine at a
// time, but for there.
//
// Two rules make rounds that do not mix. The barrier opens, and is cleared, by
// transactions that are bound to the version of the directory at which it was seen
// full or empty, and everybody who comes, goes, opens or clears adds to that. And a
// participant is in the round of the first ready that is newer than its own child.
type participant struct {
	b     *DoubleBarrier
	s     *session.Session
	lease *session.Lease
	ticket
	czxid int64 // of our child
	round int64 // the czxid of the ready that has let us in, or keeps us out

	// The barrier as last seen:
	open    int64          // the czxid of ready, 0 if there was none
	watch   *session.Watch // on ready; nil where open is not to be relied on
	count   int            // of the directory's children, ready and strangers included
	version int32          // of the directory
	conn    uint64         // the connection that told the two above
	there   atomic.Int32   // how many participants that makes

	wait     *participantWait // of the call under way
	patience int              // how many children the next listing may have
	stop     context.CancelFunc
	states   <-chan session.State
}

// apart runs step to its end in a goroutine of its own and returns its result.
// step comes to an end when ctx does; if it has not after a while, because no server
// answers, it goes on alone and late is called with its result.
func (p *participant) apart(ctx context.Context, step func(context.Context) error, late func(error)) error {
	done, err := p.s.Busy()
	if err != nil {
		p.close()
		return lossOf(err)
	}
	defer p.wait.stop()
	result, deserted, settled := make(chan error), make(chan struct{}), make(chan struct{})
	p.b.settled = settled
	go func() {
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
	grace := time.NewTimer(min(p.s.Timeout()/6, maxGrace))
	defer grace.Stop()
	select {
	case err := <-result:
		return err
	case <-grace.C:
		close(deserted)
		return p.wait.cancelled(ctx)
	}
}

// enter returns nil when the participant is inside, and an error when it is
// not, and never will be counted.
func (p *participant) enter(ctx context.Context) error {
	err := p.pass(ctx)
	if err == nil {
		err = p.grant()
	}
	if err != nil {
		p.dropOut()
	}
	return err
}

func (p *participant) pass(ctx context.Context) error {
	if err := p.prepare(ctx); err != nil {
		return err
	}
	for {
		if err := p.awaitNext(ctx); err != nil {
			return err
		}
		if err := p.join(); err != nil {
			return err
		}
		in, err := p.gather(ctx)
		switch {
		case err != nil && ctx.Err() != nil && p.s.Err() == nil:
			if in, _ = p.takeBack(); in {
				return nil
			}
			return err
		case in || err != nil:
			return err
		}
		// That round began without us.
		if err := p.remove(); err != nil && session.ClassOf(err) != session.ClassRemoved {
			return err
		}
	}
}

// leave removes our child and waits for the end of the round.
func (p *participant) leave(ctx context.Context) error {
	defer p.close()
	if err := p.lost(); err != nil {
		return err
	}
	p.lease.End() // from here on the session need not end when it cannot be proven
	err := p.remove()
	if err == nil {
		err = p.awaitEnd(ctx)
	}
	if ended := p.s.Err(); err != nil && ended != nil {
		return lossOf(ended)
	}
	return err
}

// grant checks that we are inside against the lease before it is handed out.
func (p *participant) grant() error {
	p.lease.Own(p.path)
	return grant(background, p.lease)
}

// lost says why the participant is not inside any more, nil if it is.
func (p *participant) lost() error {
	if err := p.s.Err(); err != nil {
		return lossOf(err)
	}
	if !time.Now().Before(p.s.Deadline()) {
		return fmt.Errorf("%w: the lease ran out", ErrLost)
	}
	return nil
}

// dropOut takes out of the barrier what may exist of us, when no caller waits for
// that.
func (p *participant) dropOut() {
	if p.path != "" && p.s.Err() == nil {
		child := p.ticket
		if err := p.remove(); err != nil && p.s.Err() == nil && session.ClassOf(err) != session.ClassRemoved {
			// The others then count us until they look again, as after a crash.
			p.s.DiscardOwn(child.path, []byte(child.mark))
		}
	}
	p.close()
}

// close ends what belongs to a participant but its child.
func (p *participant) close() {
	p.unwatch()
	if p.stop != nil {
		p.stop()
	}
	p.lease.End()
}

func (p *participant) unwatch() {
	if p.watch != nil {
		p.watch.Stop()
		p.watch = nil
	}
}
