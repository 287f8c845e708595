package zksync

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// Take waits for the first message that nobody else has claimed, removes it from
// the queue, and returns it: exactly once, whatever becomes of connections and
// sessions, also beside clients in other languages. It costs one transaction and
// claims nothing in advance.
//
// When ctx ends first, Take has taken nothing. If at that moment the removal is
// under way, it is found out in the background what came of it, and a message that
// was removed is put back in its old place. Close waits for that, for five seconds
// if the servers cannot be reached. A message that was
// taken is lost if the process dies before it has done its work.
//
// With an error that is ErrOutcomeUnknown and not that of ctx, somebody has removed
// the znode that tells what came of the removal: one message may be lost. It fails
// with ErrQueueClosed when the value is closed, with ErrClosed when the Manager is.
func (q *queue) Take(ctx context.Context) ([]byte, error) {
	data, _, err := q.consumer.take(ctx, true)
	return data, q.opError("take", err)
}

// TryTake is Take without waiting: it reports false if no message was to be had at
// the time of the call.
func (q *queue) TryTake(ctx context.Context) ([]byte, bool, error) {
	data, ok, err := q.consumer.take(ctx, false)
	return data, ok, q.opError("tryTake", err)
}

func (c *consumer) take(ctx context.Context, patient bool) (data []byte, ok bool, err error) {
	if err := c.q.usable(); err != nil {
		return nil, false, err
	}
	if ctx.Err() != nil {
		return nil, false, cancelled(ctx)
	}
	if err := c.enter(); err != nil {
		return nil, false, err
	}
	defer c.leave()
	caller, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(ErrQueueClosed) })()
	err = c.q.m.Do(caller, func(ctx context.Context, s *session.Session) error {
		data, ok, err = c.outlook(s).takeOne(ctx, caller, patient)
		return err
	})
	if err != nil && c.ctx.Err() != nil && ctx.Err() == nil {
		err = ErrQueueClosed
	}
	return data, ok, err
}

func one(int, int) int { return 1 }

// takeOne takes a message under one session, which ctx ends with. The caller's
// context does not: what came of a removal is known without that session, too.
func (o *outlook) takeOne(ctx, caller context.Context, patient bool) ([]byte, bool, error) {
	looked := patient
	for {
		if !looked && o.knowsNone() {
			if err := o.renew(ctx); err != nil {
				return nil, false, err
			}
			looked = true
		}
		refs, err := o.next(ctx, one, patient)
		if err != nil || len(refs) == 0 && looked {
			return nil, false, err
		}
		if len(refs) == 0 {
			continue
		}
		r := refs[0]
		data, stat, err := o.s.Get(ctx, o.path(r))
		switch {
		case errors.Is(err, zk.ErrNoNode):
			o.done(r)
			continue
		case err != nil:
			o.back(r)
			return nil, false, err
		}
		if err = o.readyToTake(ctx); err != nil {
			o.back(r)
			return nil, false, err
		}
		o.hold(1) // so that a connection that has gone silent is given up early
		e := o.c.q.removals.start(nil, nil, o.taking(r, stat.Version))[0]
		if err = e.wait(caller); errors.Is(err, ErrOutcomeUnknown) && caller.Err() != nil {
			if !o.c.spawn(func() { o.undo(r, data, stat.Czxid, e) }) {
				o.undo(r, data, stat.Czxid, e)
			}
			return nil, false, cancelled(caller)
		}
		o.release(1)
		switch {
		case err == nil:
			o.done(r)
			if o.c.owed.settle(r, stat.Czxid) {
				continue // Chan has delivered it
			}
			return data, true, nil
		case errors.Is(err, zk.ErrNodeExists):
			o.pass(r)
		case errors.Is(err, zk.ErrNoNode):
			// The message is gone, or the directory of the claims.
			o.mu.Lock()
			o.prepared = false
			o.mu.Unlock()
			o.back(r)
		case errors.Is(err, zk.ErrBadVersion):
			o.back(r)
		default:
			o.back(r)
			return nil, false, err
		}
	}
}

// knowsNone says whether nothing that could be taken is known to wait.
func (o *outlook) knowsNone() bool {
	now := time.Now().UnixMilli()
	o.mu.Lock()
	defer o.mu.Unlock()
	return !slices.ContainsFunc(o.lanes, func(l *lane) bool { return l.waiting.due(now) > 0 })
}

// renew has everything listed anew, as it is now.
func (o *outlook) renew(ctx context.Context) error {
	if err := o.s.Sync(ctx, o.c.q.path); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listing.remove()
	o.listing = nil
	for _, l := range o.lanes {
		l.listing.remove()
		l.listing = nil
	}
	o.claims.remove()
	o.claims = nil
	return nil
}

// readyToTake makes the directory in which taking leaves nothing.
func (o *outlook) readyToTake(ctx context.Context) error {
	o.mu.Lock()
	prepared := o.prepared
	o.mu.Unlock()
	if prepared {
		return nil
	}
	if err := o.s.MakeDir(ctx, o.c.q.child(claimsName)); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.prepared = true
	return nil
}

// taking is the transaction by which a message goes that nobody has claimed: a
// claim that is there already lets it fail.
func (o *outlook) taking(r ref, version int32) tx {
	item, name := o.path(r), o.claimPath(r)
	return tx{
		ops: []any{
			&zk.CreateRequest{Path: name, Flags: zk.FlagPersistent},
			&zk.DeleteRequest{Path: name, Version: -1},
			&zk.DeleteRequest{Path: item, Version: version},
		},
		size: 2*len(name) + len(item) + 100,
	}
}

// undo puts a message back whose removal turns out to have happened though its
// caller has gone. No number is given twice, so its name is still its own.
func (o *outlook) undo(r ref, data []byte, czxid int64, e *entry) {
	defer o.release(1)
	select {
	case <-e.done:
	case <-o.c.life.Done():
		return
	}
	if e.err == nil && !o.c.owed.settle(r, czxid) {
		path := o.path(r)
		t := tx{ops: []any{&zk.CreateRequest{Path: path, Data: data}}, size: len(path) + len(data) + 100, dir: o.dir(r.lane)}
		e = o.c.q.removals.start(nil, nil, t)[0]
		select {
		case <-e.done:
		case <-o.c.life.Done():
			return
		}
	}
	o.back(r)
}
