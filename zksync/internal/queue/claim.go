package queue

import "github.com/go-zksync/toolkit/session"

// maxClaims is the number of claims in one transaction.
const maxClaims = 128

// claim claims picked messages. It reports false, and requeues them, if another consumer
// was faster. It claims all of the messages or none.
func (l *ledger) claim(sel selection, line *idleLine) (all []*Delivery, ok bool, err error) {
	v, n := l.v, len(sel.refs)
	c := newChange(func(t *claimTable) { t.claim(sel.refs, sel.passed) })
	c.add, c.at, c.ops = sel.refs, sel.at, line.leaveOps()
	// Before the request: the lease must cover the claims from their first moment.
	v.claims.hold(n, l.path)
	if err = l.do(c); err != nil {
		v.partitions.requeueAll(sel.refs)
		v.claims.release(n, false)
		switch {
		case err == errConflict:
			return nil, false, nil
		case session.ClassOf(err) == session.ClassNoNode && line.path != "":
			line.path = "" // an operator has deleted the contender
			return nil, false, nil
		}
		return nil, false, err
	}
	line.path = ""
	all = make([]*Delivery, n)
	for i, r := range sel.refs {
		past := sel.at.table.entry(r).deliveries
		all[i] = &Delivery{ref: r, v: v, l: l, ID: r.path(), Attempts: 1 + r.deliveries + past, outcome: make(chan struct{})}
	}
	return all, true, nil
}

// giveBack makes claimed messages free. ended is the number of the deliveries of each
// that have ended. sent reports, beside an error, that this may have happened.
func (l *ledger) giveBack(ended int, refs ...messageRef) (sent bool, err error) {
	c := newChange(func(t *claimTable) {
		for _, r := range refs {
			t.giveBack(r.key(), ended)
		}
	})
	c.drop = refs
	err = l.do(c)
	return c.sent, err
}

// releaseUnreceived gives back claimed messages that were not received.
func releaseUnreceived(all []*Delivery) {
	if len(all) == 0 {
		return
	}
	refs := make([]messageRef, len(all))
	for i, d := range all {
		refs[i] = d.ref
	}
	// No delivery has ended: the receiver has not seen these messages.
	_, err := all[0].l.giveBack(0, refs...)
	for _, d := range all {
		if err == nil {
			d.endClaim((*partitionList).requeue)
		} else {
			d.endClaim((*partitionList).unpick)
		}
	}
}
