package queue

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// fullPause is the time after which a consumer tries again to claim messages when there is no
// room for their names.
const fullPause = time.Second

// maxClaimTime is the time after which a consumer leaves the line, although its claim has no answer yet.
const maxClaimTime = time.Second

// A claim has the messages that one transaction has claimed, and the reads behind it; nil if there
// are none.
type claim struct {
	all   []*Delivery
	reads *claimReads
}

// claim claims the messages that pick returns: all of them, or none. The error is
// errConflict if another consumer was faster, and errNothingFree if there is no message. readBehind
// returns the reads behind the transaction.
func (l *ledger) claim(pick func(st *orderState, removals int) selection, readBehind func([]messageRef) *claimReads, line *idleLine) (done claim, err error) {
	v := l.v
	c := newChange()
	c.readBehind = readBehind
	// In the claim's own transaction: a consumer whose claim is refused keeps its position, and
	// the next one wakes only when the claim has happened.
	onTime, contender := func() bool { return true }, line.path
	if contender != "" {
		c.ops = []any{&zk.DeleteRequest{Path: contender, Version: -1}}
		// A consumer whose claim gets no answer must not hold up the line.
		onTime = time.AfterFunc(maxClaimTime, func() { v.s.Discard(contender) }).Stop
	}
	c.pick = func(st *orderState, removals int) selection {
		sel := pick(st, removals)
		if n := len(sel.refs); n > 0 {
			// Before the request: the lease must cover the claims from their first moment.
			v.claims.hold(n, l.path, l.gone)
		}
		return sel
	}
	err = l.do(c)
	if !onTime() && err != nil {
		line.left()
	}
	if err != nil {
		if n := len(c.add); n > 0 {
			// If another consumer has claimed these messages, the next state of the order znode
			// says so, and they are not picked again.
			v.partitions.requeueAll(c.add)
			v.claims.release(n)
		}
		if session.ClassOf(err) == session.ClassNoNode && contender != "" {
			line.left() // the contender is gone, and the messages may wait
			err = errConflict
		}
		return claim{}, err
	}
	line.left()
	all := make([]*Delivery, len(c.add))
	for i, r := range c.add {
		// The table that was read before the claim: if another consumer had claimed since then,
		// this claim would have failed.
		past := c.at.table.entry(r.message).deliveries
		all[i] = &Delivery{ref: r, v: v, l: l, ID: r.path(), Attempts: 1 + r.deliveries + past, outcome: make(chan struct{})}
	}
	return claim{all, c.reads}, nil
}
