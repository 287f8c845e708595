package queue

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// A claimReads has the reads of claimed messages that are sent right behind the transaction of the claim.
type claimReads struct {
	chunks   [][]messageRef // the messages of each request
	followup *session.Followup
}

func newClaimReads(s *session.Session, chunks [][]messageRef) *claimReads {
	reads := make([][]session.Read, len(chunks))
	for i, some := range chunks {
		reads[i] = readsOf(some)
	}
	return &claimReads{chunks, s.NewFollowup(reads...)}
}

// results returns the results for the first messages of the claim, none if the reads have no
// results.
func (r *claimReads) results(ctx context.Context) (results []session.ReadResult) {
	if r == nil {
		return nil
	}
	for i, answer := range r.followup.Results(ctx) {
		some, err := existing(r.chunks[i], answer)
		if err != nil {
			return nil
		}
		results = append(results, some...)
	}
	return results
}

// readsOf returns the reads of messages of one partition, in one request.
func readsOf(refs []messageRef) (reads []session.Read) {
	for _, r := range refs {
		reads = append(reads, session.ReadData(r.path()))
	}
	if p := refs[0].partition; !p.holdsLedgers {
		// Last: if the directory is the one of the listing now, it was so at the reads before.
		reads = append(reads, session.ReadData(p.dir))
	}
	return reads
}

// existing returns the results of the messages from the results of readsOf.
func existing(refs []messageRef, results []session.ReadResult) ([]session.ReadResult, error) {
	p, n := refs[0].partition, len(refs)
	if p.holdsLedgers {
		return results, nil
	}
	switch dir := results[n]; {
	case dir.Err != nil && session.ClassOf(dir.Err) != session.ClassNoNode:
		return nil, dir.Err
	// Without multiRead the reads have no order, but the event of the watch on the directory
	// comes before the answer to a read that has found another message of the name.
	case dir.Err != nil || dir.Stat.Czxid != refs[0].czxid || p.recreated.Load():
		p.recreated.Store(true)
		for i := range results {
			results[i] = session.ReadResult{Err: zk.ErrNoNode}
		}
	}
	return results[:n], nil
}
