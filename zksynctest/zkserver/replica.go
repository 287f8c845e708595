package zkserver

import (
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// replica is what one server of an ensemble has of the tree, and the watches that
// clients left there. A connection that a fault treats on its own has one, too, as
// if it were connected to a server that nobody else is connected to.
type replica struct {
	ep      *Endpoint
	view    *view // what it sees while it is behind; nil when it is in step
	asleep  bool  // it is behind for no other reason than that its endpoint is frozen
	cut     bool  // nothing that the ensemble commits comes here any more
	alone   bool  // it belongs to a connection that a fault has cut off from the leader
	missed  []news
	watches tree.Watches
	// held has the sessions of which a request waits for the leader in vain. Later
	// requests of such a session wait behind it, over new connections too.
	held map[int64]bool
}

func newReplica(e *Endpoint) *replica {
	return &replica{ep: e, watches: tree.NewWatches(e.s.cfg.Compat38)}
}

// view is the tree as a server that is behind has it.
type view struct {
	tree *tree.Tree
	zxid int64
}

// news is what a replica that is behind has yet to tell its connections: a change,
// or the end of a session.
type news struct {
	zxid   int64
	change tree.Change
	ended  *session
}

func (en *ensemble) viewNow(r *replica) *view { return &view{en.s.data.Tree.Snapshot(), en.zxidOf(r)} }

// addReplica makes a replica that is in step.
func (en *ensemble) addReplica(e *Endpoint) *replica {
	r := newReplica(e)
	en.replicas = append(en.replicas, r)
	return r
}

// ownReplica gives c, and c alone, a replica that is as far as the one it had.
func (en *ensemble) ownReplica(c *conn) *replica {
	own := en.addReplica(c.rep.ep)
	own.view, own.cut, own.asleep = c.rep.view, c.rep.cut, c.rep.asleep
	if c.rep.held[c.sessionID()] {
		own.hold(c.sessionID())
	}
	own.missed = append(own.missed, c.rep.missed...)
	c.rep.watches.Detach(&c.client)
	old := c.rep
	c.rep = own
	en.discard(old)
	own.watches.Attach(&c.client)
	return own
}

// hold makes later requests of a session wait behind a request that waits for the
// leader in vain.
func (r *replica) hold(session int64) result {
	if r.held == nil {
		r.held = map[int64]bool{}
	}
	r.held[session] = true
	return result{silent: true}
}

// discard forgets a replica that was made for a connection and has none any more.
func (en *ensemble) discard(r *replica) {
	if r.ep.rep == r {
		return
	}
	for _, lag := range en.lagging {
		if lag == r {
			return
		}
	}
	for c := range en.s.conns.open {
		if c.rep == r {
			return
		}
	}
	// Somebody may be going through the list.
	en.replicas = slices.DeleteFunc(slices.Clone(en.replicas), func(other *replica) bool { return other == r })
}

// fallBehind makes r see the tree as it is now from now on.
func (en *ensemble) fallBehind(r *replica) {
	if r.view == nil {
		r.view = en.viewNow(r)
	}
}

// awaken is catchUp for a replica whose endpoint may be frozen.
func (en *ensemble) awaken(r *replica) {
	if r.ep.thaw != nil {
		r.asleep = r.view != nil
		return
	}
	en.catchUp(r)
}

// catchUp brings r into step: its watches fire for what it missed, in the order in
// which it happened.
func (en *ensemble) catchUp(r *replica) {
	r.view = nil
	missed := r.missed
	r.missed = nil
	for i := range missed {
		n := &missed[i]
		if n.ended == nil {
			r.watches.Fire(&n.change, n.zxid)
			continue
		}
		for _, c := range n.ended.on(r) {
			c.hangUp()
		}
	}
}

// zxidOf is the latest transaction that r knows of. A leader also counts the
// beginning of its epoch; its followers learn of that with the first transaction.
func (en *ensemble) zxidOf(r *replica) int64 {
	switch {
	case r.view != nil:
		return r.view.zxid
	case en.current != nil && r.ep == en.current.leader:
		return en.s.data.Latest()
	}
	return en.s.data.Zxid
}

// fire tells the data file and all replicas of a committed transaction.
func (s *Server) fire(t *tree.Txn) {
	s.journal.AppendTxn(t)
	for _, n := range t.Aging {
		s.reapLater(n, time.Now())
	}
	for _, r := range s.en.replicas {
		for i := range t.Events {
			switch {
			case r.view == nil:
				r.watches.Fire(&t.Events[i], t.Zxid)
			case !r.cut:
				r.missed = append(r.missed, news{zxid: t.Zxid, change: t.Events[i]})
			}
		}
	}
}

// tellEnd closes the connections of a session that is over, each when its replica
// hears of it, but for the one that is to have an answer first.
func (s *Server) tellEnd(sess *session, but *conn) {
	for _, r := range s.en.replicas {
		for _, c := range sess.on(r) {
			if c != but && r.view == nil {
				c.hangUp()
			}
		}
		if r.view != nil && !r.cut {
			r.missed = append(r.missed, news{ended: sess})
		}
	}
}
