package queue

import (
	"context"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// maxDeletions is the number of directories that one transaction deletes.
const maxDeletions = 64

// isOverdue reports whether the directory of a partition of a DelayQueue is empty and its time is over.
func (p *partition) isOverdue(now int64) bool {
	return p.expires && p.empty && !p.undeletable && !p.isStale() && p.expiry() <= now
}

// overdue returns some of the partitions whose directories can be deleted.
func (l *partitionList) overdue() (over []*partition) {
	now := time.Now().UnixMilli()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.all {
		if p.expires && p.key > now || len(over) == maxDeletions {
			break
		}
		if p.isOverdue(now) {
			over = append(over, p)
		}
	}
	return over
}

// deleteOverdue deletes the directories of the partitions of a DelayQueue that are empty and whose time is over. It
// returns the state of the order znode afterwards.
func (v *view) deleteOverdue(ctx context.Context, st *orderState) (*orderState, error) {
	for v.cfg.Kind.Delayed {
		over := v.partitions.overdue()
		if len(over) == 0 {
			break
		}
		next, err := v.deletePartitions(ctx, over, st)
		if err != nil || next == nil {
			return st, err // without a next state the caller looks again
		}
		st = next
	}
	return st, nil
}

// deletePartitions deletes the directories of partitions in one transaction, or those of them that can be deleted. It returns the
// state of the order znode afterwards, or nil if that is not known.
func (v *view) deletePartitions(ctx context.Context, over []*partition, st *orderState) (*orderState, error) {
	for len(over) > 0 {
		// The order znode is written at its known version: no consumer claims a message of the
		// partitions meanwhile, and no Take that has read one before removes a message of another
		// directory with the name. The server refuses to delete a directory with children, so a
		// message that was put after the listing is not lost. The write comes first: if another consumer
		// has deleted the directories, this refusal tells all of it at once.
		table := st.table.clone()
		ops := make([]any, 1, 1+len(over))
		for _, p := range over {
			delete(table.partitions, p.czxid)
			ops = append(ops, &zk.DeleteRequest{Path: p.dir, Version: -1})
		}
		data := table.encode()
		ops[0] = &zk.SetDataRequest{Path: st.path, Data: data, Version: st.version}
		results, err := v.s.Multi(ctx, ops...)
		switch at, class := session.FailedOp(results), session.ClassOf(err); {
		case err == nil:
			st = st.next(table, len(data))
			v.order.set(st)
			for _, p := range over {
				v.partitions.drop(p)
			}
			return st, nil
		case ctx.Err() != nil || class == session.ClassLost || class == session.ClassClosed:
			return nil, err
		case class.Again():
			v.order.forget(st)
			return nil, err
		case at == 0 && (class == session.ClassBadVersion || class == session.ClassNoNode):
			// Another consumer has claimed messages, or deleted directories. Look again.
			v.order.forget(st)
			return nil, nil
		case class == session.ClassUnknown:
			// The server may have deleted the directories.
			v.order.forget(st)
			v.partitions.keep(over...)
			time.AfterFunc(lookPause, func() { v.relist(over) })
			return nil, nil
		case at > 0 && (class == session.ClassNoNode || class == session.ClassNotEmpty):
			// The others can be deleted without this one.
			if p := over[at-1]; class == session.ClassNoNode {
				v.partitions.drop(p)
			} else {
				v.partitions.keep(p)
			}
			over = slices.Delete(over, at-1, at)
		case class == session.ClassTooLarge && len(over) > 1:
			over = over[:len(over)/2]
		default: // the ACL of the directory above, most often, which forbids all of these deletions
			v.partitions.keep(over...)
			return st, nil
		}
	}
	return st, nil
}

// keep keeps directories that cannot be deleted, until they are listed again.
func (l *partitionList) keep(undeletable ...*partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range undeletable {
		p.undeletable = true
	}
}

// relist lets partitions be listed again.
func (v *view) relist(some []*partition) {
	v.partitions.mu.Lock()
	for _, p := range some {
		p.listing.markStale()
	}
	v.partitions.mu.Unlock()
	v.changed.notify()
}
