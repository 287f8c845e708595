package queue

import (
	"context"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
)

const (
	// endedPause is the least time between two looks for directories that were deleted.
	endedPause = time.Minute

	// dirsPerRead is the number of directories that one request reads. Their data is short.
	dirsPerRead = 128
)

// drop removes a partition whose directory does not exist any more. The watch on the
// directory above reports the deletion, too.
func (l *partitionList) drop(p *partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = slices.DeleteFunc(l.all, func(x *partition) bool { return x == p })
	l.end(p)
}

// end ends the use of a partition whose directory does not exist any more; l.mu is held.
func (l *partitionList) end(p *partition) {
	l.endCzxid(p.czxid)
	p.stop()
	// This consumer may still hold messages of p. From now on their names may stand for
	// messages of a new directory, so that requeue and Ack must not go by the names.
	p.recreated.Store(true)
	clear(p.picked)
}

// endCzxid notes that the directory with a czxid does not exist any more; l.mu is held.
func (l *partitionList) endCzxid(czxid int64) {
	// A consumer that writes no claims would note each directory for ever. endUnknown finds a part that the
	// table gets by a later write.
	if l.applied != nil && l.applied.table.partitions[czxid] == nil {
		return
	}
	if l.ended == nil {
		l.ended = make(map[int64]struct{})
	}
	l.ended[czxid] = struct{}{}
}

// endUnknown ends the parts of the claim table whose directories do not exist any more, so that the
// next write of the order znode removes them. No view may have known such a directory: a server
// deletes an empty one. The caller has listed the partitions.
func (v *view) endUnknown(ctx context.Context, st *orderState) error {
	if time.Now().Before(v.nextLook) || !v.order.mayWrite(st) || v.partitions.knowsAll(st.table) {
		return nil
	}
	v.nextLook = time.Now().Add(endedPause)
	// The table was read before the directories. A directory that is created later has no part in
	// it, and another table has another version.
	czxids, err := v.cfg.readCzxids(ctx, v.s)
	if czxids != nil {
		v.partitions.endMissing(st.table, czxids)
	}
	return err
}

// readCzxids returns the czxids of the directories of messages, by name: of queues of all kinds, which
// may share the path. It returns nil if some of them cannot be read.
func (c *Config) readCzxids(ctx context.Context, s *session.Session) (map[string]int64, error) {
	names, _, err := s.Children(ctx, c.Path)
	if err != nil && session.ClassOf(err) != session.ClassNoNode {
		return nil, err
	}
	dirs := []string{"", laterName}
	for _, name := range names {
		if IsPartition(name) {
			dirs = append(dirs, name)
		}
	}
	czxids := make(map[string]int64)
	for some := range slices.Chunk(dirs, dirsPerRead) {
		reads := make([]session.Read, len(some))
		for i, name := range some {
			reads[i] = session.ReadData(c.dirOf(name))
		}
		results, err := s.MultiRead(ctx, reads...)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			switch session.ClassOf(r.Err) {
			case session.ClassOK:
				czxids[some[i]] = r.Stat.Czxid
			case session.ClassNoNode:
			default:
				return nil, nil
			}
		}
	}
	return czxids, nil
}

// knowsAll reports whether each part of a table is the part of a partition, or may be the part of a partition that the
// next listing will show.
func (l *partitionList) knowsAll(t *claimTable) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A partition has a czxid from its first listing on. While messages of earlier partitions keep one from being
	// listed, parts of ended directories stay in the table, which does no harm: few clients delete such directories.
	if l.listing.hasFired() || slices.ContainsFunc(l.begun(time.Now().UnixMilli()), func(p *partition) bool { return p.czxid == 0 }) {
		return true
	}
	for czxid, claims := range t.partitions {
		_, ended := l.ended[czxid]
		// Each look counts, so no map is made: a table has few parts, of the first partitions.
		if !ended && !claims.isEmpty() && !slices.ContainsFunc(l.all, func(p *partition) bool { return p.czxid == czxid }) {
			return false
		}
	}
	return true
}

// endMissing ends the parts of a table that are not the parts of the directories with the given
// czxids. It notes the czxids of the partitions that were not listed yet.
func (l *partitionList) endMissing(t *claimTable, czxids map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	exists := make(map[int64]struct{})
	for _, czxid := range czxids {
		exists[czxid] = struct{}{}
	}
	for czxid := range t.partitions {
		if _, ok := exists[czxid]; !ok {
			l.endCzxid(czxid)
		}
	}
	for _, p := range l.all {
		if p.czxid == 0 {
			p.czxid = czxids[p.name] // 0 if it does not exist
		}
	}
}
