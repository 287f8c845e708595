package queue

import "github.com/go-zksync/toolkit/session"

// maxClaims is the number of claims in one transaction.
const maxClaims = 128

// claim claims the messages that pick returns. It reports false, and requeues them, if
// another consumer was faster, or if there is no message. It claims all of the messages
// or none.
func (l *ledger) claim(pick func(st *orderState) selection, line *idleLine) (all []*Delivery, ok bool, err error) {
	v := l.v
	c := newChange()
	c.ops = line.leaveOps()
	c.pick = func(st *orderState) selection {
		sel := pick(st)
		if n := len(sel.refs); n > 0 {
			// Before the request: the lease must cover the claims from their first moment.
			v.claims.hold(n, l.path)
		}
		return sel
	}
	if err = l.do(c); err != nil {
		if n := len(c.add); n > 0 {
			v.partitions.requeueAll(c.add)
			v.claims.release(n, false)
		}
		switch {
		case err == errConflict, err == errNothingFree:
			return nil, false, nil
		case session.ClassOf(err) == session.ClassNoNode && line.path != "":
			line.path = "" // an operator has deleted the contender
			return nil, false, nil
		}
		return nil, false, err
	}
	line.path = ""
	all = make([]*Delivery, len(c.add))
	for i, r := range c.add {
		past := c.at.table.entry(r).deliveries
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
