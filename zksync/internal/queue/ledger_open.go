package queue

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// openLedger creates a ledger, beside the order znode at a path. It first waits until the ledger of an earlier, failed
// attempt is gone. So at most one such ledger exists, however often a server fails.
func openLedger(ctx context.Context, v *view, order string) (l *ledger, err error) {
	if failed := v.failedLedger; failed != nil {
		wait := v.s.StartWait("consume", v.cfg.Path, func(context.Context) error {
			return errors.New("for the removal of a ledger whose creation has failed")
		})
		defer wait.Stop()
		if err := znode.AwaitRemoval(ctx, failed); session.ClassOf(err) == session.ClassCancelled {
			return nil, err
		}
		v.failedLedger = nil
	}
	l = &ledger{v: v, life: v.life.cleanupCtx, path: znode.Join(v.order.dir, ledgerPrefix+znode.NewGUID()), claims: make(claimSet), line: newIdleLine(v)}
	l.usable, l.end = context.WithCancelCause(context.Background())
	defer func(path string) {
		if err != nil {
			// The creation may have been sent before ctx ended, and may happen yet.
			v.failedLedger = v.s.Discard(path)
		}
	}(l.path)
	for round := 0; ; round++ {
		if err := v.s.Pause(ctx, round-1); err != nil {
			return nil, err
		}
		// The reads behind it spare the first claim a round trip.
		reads := v.s.NewFollowup(v.order.reads(order))
		_, err := reads.Multi(ctx, &zk.CreateRequest{Path: l.path, Flags: zk.FlagEphemeral})
		switch class := session.ClassOf(err); {
		case err == nil, class == session.ClassNodeExists:
			// The name has a GUID, so that a znode that exists is ours, from an attempt whose
			// answer was lost.
			v.order.countOwn()
			for _, results := range reads.Results(ctx) {
				if st, err := readState(order, results); err == nil {
					v.order.set(st)
				}
			}
			return l, nil
		case class == session.ClassNoNode:
			// The directory is gone, and the order znode with it.
			v.order.reopen("", err)
			if order, err = v.order.open(ctx); err != nil {
				return nil, err
			}
		case class == session.ClassConnectionLost:
		default:
			return nil, err
		}
	}
}
