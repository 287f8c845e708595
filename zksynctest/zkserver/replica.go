package zkserver

import (
	"slices"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// replica is one server's view of the tree, and the watches of its clients. A fault can also give a
// single connection its own replica, as if the connection led to a server without other clients.
type replica struct {
	ep      *Endpoint
	view    *view // its view while it is behind; nil while it is up to date
	asleep  bool  // it is behind only because its endpoint is frozen
	cut     bool  // commits of the ensemble no longer reach it
	alone   bool  // it belongs to one connection that a fault has cut off from the leader
	missed  []news
	watches tree.Watches
	// held has the sessions with a request that waits for the leader in vain. Later requests of
	// such a session wait behind this request, also on new connections.
	held map[int64]bool
}

func newReplica(e *Endpoint) *replica {
	return &replica{ep: e, watches: tree.NewWatches(e.s.cfg.Compat38)}
}

// view is the tree as a server that is behind sees it.
type view struct {
	tree *tree.Tree
	zxid int64
}

// news is a change, or the end of a session, that a replica that is behind has not yet seen.
type news struct {
	zxid   int64
	change tree.Change
	ended  *session
}

func (en *ensemble) viewNow(r *replica) *view { return &view{en.s.data.Tree.Snapshot(), en.zxidOf(r)} }

// addReplica adds a replica that is up to date.
func (en *ensemble) addReplica(e *Endpoint) *replica {
	r := newReplica(e)
	en.replicas = append(en.replicas, r)
	return r
}

// ownReplica gives c a replica of its own, in the state of the replica that c had.
func (en *ensemble) ownReplica(c *conn) *replica {
	own := en.addReplica(c.rep.ep)
	own.view, own.cut, own.asleep = c.rep.view, c.rep.cut, c.rep.asleep
	if c.rep.held[c.sessionID()] {
		own.hold(c.sessionID())
	}
	own.missed = append(own.missed, c.rep.missed...)
	// The watches of the connection move with it, so that no event is missed or sent twice.
	c.rep.watches.Detach(&c.client)
	old := c.rep
	c.rep = own
	en.discard(old)
	own.watches.Attach(&c.client)
	return own
}

// hold makes later requests of a session wait behind a request that waits for the leader in vain.
func (r *replica) hold(session int64) result {
	if r.held == nil {
		r.held = map[int64]bool{}
	}
	r.held[session] = true
	return result{silent: true}
}

// discard removes a replica of single connections when its last connection has ended.
func (en *ensemble) discard(r *replica) {
	if r.ep.rep == r || en.lagsAlone(r) {
		return
	}
	for c := range en.s.conns.open {
		if c.rep == r {
			return
		}
	}
	// Clone, because a caller may be iterating over the list.
	en.replicas = slices.DeleteFunc(slices.Clone(en.replicas), func(other *replica) bool { return other == r })
}

// fallBehind freezes the view of r at the current tree.
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

// catchUp brings r up to date: its watches fire for the missed changes, in their order.
func (en *ensemble) catchUp(r *replica) { en.catchUpTo(r, nil) }

// catchUpTo is catchUp, but only to the view v if v is not nil.
func (en *ensemble) catchUpTo(r *replica, v *view) {
	r.view = v
	end := slices.IndexFunc(r.missed, func(n news) bool { return v != nil && n.zxid > v.zxid })
	if end < 0 {
		end = len(r.missed)
	}
	missed := r.missed[:end]
	r.missed = slices.Clone(r.missed[end:])
	// In their order: a client sees the deletion of an ephemeral before its own connection ends.
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

// zxidOf returns the zxid of the latest transaction that r has. A leader also counts the beginning
// of its epoch; its followers learn of the epoch with the first transaction.
func (en *ensemble) zxidOf(r *replica) int64 {
	switch {
	case r.view != nil:
		return r.view.zxid
	case en.current != nil && r.ep == en.current.leader:
		return en.s.data.Latest()
	}
	return en.s.data.Zxid
}

// fire passes a committed transaction to the data file and to all replicas.
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

// tellEnd closes the connections of an ended session, each when its replica learns of the end. It
// leaves connection but open, which gets an answer first.
func (s *Server) tellEnd(sess *session, but *conn) {
	for _, r := range s.en.replicas {
		for _, c := range sess.on(r) {
			if c != but && r.view == nil {
				c.hangUp()
			}
		}
		if r.view != nil && !r.cut {
			r.missed = append(r.missed, news{zxid: s.data.Zxid, ended: sess})
		}
	}
}
