package zksync

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// An outlook is the view of a queue through one session: the messages that wait, and
// the messages that other consumers have claimed. All consumers of one value share
// it. It reads a directory again only if a watch reports a change and a consumer
// needs the directory for its next message: while messages of the last listing are
// left, nothing is listed.
//
//	            next                  claimed by us
//	waiting ------------> taken --------------------> (a claimed)
//	   ^ ^                 |  |
//	   | +-----------------+  | claimed by another
//	   |      back            v
//	   +------------------- passed
//	        its claim is gone
type outlook struct {
	c *consumer
	s *session.Session
	bell
	turn chan struct{} // held by the goroutine that asks the servers

	mu         sync.Mutex
	lanes      []*lane // in order
	listing    *tripwire
	taken      map[ref]struct{}
	absent     map[ref]bool // the taken messages that do not exist; whether they have been listed since
	passed     map[ref]struct{}
	claimed    map[string]struct{} // the claims there are, while the next is not tripped
	claims     *tripwire
	peers      int // the consumers, us included; 0 if we don't count among them
	census     *tripwire
	held       int // our claims, and the messages that Takes are removing
	takes      int // the latter
	load       *claimLoad
	claimBytes int    // of each claim, in load
	freed      func() // called when one of held is gone
	lease      *session.Lease
	biggest    int  // how large messages were of late
	prepared   bool // the directory of claims is there
}

func newOutlook(c *consumer, s *session.Session) *outlook {
	o := &outlook{c: c, s: s, turn: make(chan struct{}, 1), taken: make(map[ref]struct{}), passed: make(map[ref]struct{}), absent: make(map[ref]bool), load: loadOf(s), claimBytes: c.q.claimBytes()}
	if c.q.kind.lane == nil {
		o.lanes = []*lane{{}}
	}
	return o
}

// dismiss stops all watches.
func (o *outlook) dismiss() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.lanes {
		l.listing.remove()
		if l.life != nil {
			l.life.Stop()
		}
	}
	for _, t := range []*tripwire{o.listing, o.claims, o.census} {
		t.remove()
	}
}

// dir is where the messages of a lane are.
func (o *outlook) dir(l *lane) string {
	if l.name == "" {
		return o.c.q.path
	}
	return o.c.q.child(l.name)
}

func (o *outlook) path(r ref) string { return znode.Join(o.dir(r.lane), r.name) }

func (o *outlook) claimPath(r ref) string {
	return znode.Join(o.c.q.child(claimsName), r.claimName())
}

// A quota returns how many messages to take, from the number of waiting messages,
// claimed ones included, and the number of consumers.
type quota func(waiting, peers int) int

// next takes messages that wait, in order. It waits for one, if patient, and calls
// resting before it does.
func (o *outlook) next(ctx context.Context, most quota, patient bool, resting func()) ([]ref, error) {
	for {
		rung := o.listen()
		refs, v, err := o.lookAndTake(ctx, most)
		switch {
		case err != nil || len(refs) > 0:
			return refs, err
		case v.stale:
			continue
		case !patient:
			return nil, nil
		}
		resting()
		if err := o.sleep(ctx, rung, v.until); err != nil {
			return nil, err
		}
	}
}

// sleep waits for the bell or for a time, if that is not zero.
func (o *outlook) sleep(ctx context.Context, rung <-chan struct{}, until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		d := time.Until(until)
		if d <= 0 {
			return nil // no timer for that: in a bubble one of zero has brought the runtime down
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-rung:
		return nil
	case <-due:
		return nil
	case <-o.s.Done():
		return znode.LossOf(o.s.Err())
	case <-ctx.Done():
		return session.Cancelled(ctx)
	}
}

// A void is the result of a look that finds no message to take.
type void struct {
	stale bool      // it must be looked again, at once
	until time.Time // when a message that already exists falls due, if not zero
}

func (o *outlook) lookAndTake(ctx context.Context, most quota) ([]ref, void, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, void{}, session.Cancelled(ctx)
	}
	if err := o.look(ctx); err != nil {
		return nil, void{}, err
	}
	refs, v := o.take(most)
	return refs, v, nil
}

// look refreshes the stale listings that must be known before a message can be taken.
func (o *outlook) look(ctx context.Context) error {
	k := o.c.q.kind
	if k.lane != nil && o.listing.isTripped() {
		if err := o.listLanes(ctx); err != nil {
			return err
		}
	}
	now := time.Now().UnixMilli()
	o.mu.Lock()
	var stale []*lane
	for _, l := range o.lanes {
		if k.delayed && l.key > now || l.waiting.due(now) > 0 {
			break
		}
		if l.listing.isTripped() || k.delayed && !l.kept && l.waiting.len() == 0 && l.over() <= now {
			stale = append(stale, l)
		}
	}
	// Without other consumers there are no other claims.
	claims := o.claims.isTripped() && (len(o.passed) > 0 || len(stale) > 0 && o.peers != 1)
	census := o.peers > 0 && o.census.isTripped()
	o.mu.Unlock()

	if len(stale) == 0 && !claims && !census {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxLaneListings)
	if claims {
		g.Go(func() error { return o.listClaims(ctx) })
	}
	if census {
		g.Go(func() error { return o.count(ctx) })
	}
	for _, l := range stale {
		g.Go(func() error { return o.list(ctx, l) })
	}
	return g.Wait()
}
