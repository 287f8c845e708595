package zkserver

import (
	"fmt"
	"time"
)

// ensemble is the set of endpoints and of the links between them. It decides which
// endpoint leads and which endpoints follow. The server's mu guards it.
//
// There is one tree and one sequence of transactions, and no consensus: the
// ensemble decides which endpoints take part in that sequence, and when. An
// endpoint that takes part no more, and has not noticed, answers from the tree as
// it was.
type ensemble struct {
	s         *Server
	endpoints []*Endpoint
	current   *leadership // the leadership that commits; nil during an election and without a quorum
	election  *timer
	changed   chan struct{} // closed when the ensemble changes
	cutLinks  map[link]bool
	replicas  []*replica         // those of the endpoints, and then those of single connections
	lagging   map[int64]*replica // those of single sessions
	losing    map[int64]bool     // sessions of which each report loses a touch
	thawOrder ThawOrder
}

func newEnsemble(s *Server) *ensemble {
	return &ensemble{s: s, cutLinks: map[link]bool{}, lagging: map[int64]*replica{}, losing: map[int64]bool{}}
}

// close ends the timers of the ensemble.
func (en *ensemble) close() {
	en.election.stop()
	en.election = nil
	for _, e := range en.endpoints {
		e.doubt.stop()
		e.doubt = nil
		if e.in != nil {
			e.in.stop()
		}
	}
}

// link is the pair of endpoints that a link joins, the smaller number first.
type link [2]int

func linkOf(a, b *Endpoint) link { return link{min(a.number, b.number), max(a.number, b.number)} }

// linked reports whether a and b can talk to each other, if both run.
func (en *ensemble) linked(a, b *Endpoint) bool {
	return a == b || !a.apart && !b.apart && !en.cutLinks[linkOf(a, b)]
}

// between returns the link of endpoints i and j.
func (en *ensemble) between(i, j int) link {
	a, b := en.s.Endpoint(i), en.s.Endpoint(j)
	if a == b {
		panic(fmt.Sprintf("zkserver: endpoint %d has no link to itself", i))
	}
	return linkOf(a, b)
}

// CutLink cuts the link between endpoints i and j, until [Server.HealLink]. A
// follower without a link to its leader is as after [Endpoint.CutFromLeader]; a
// leader with too few followers left has lost its quorum, and does not know for
// [Config.SyncLimit] ticks. A link between two followers is not missed until they
// have to elect a leader.
func (s *Server) CutLink(i, j int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.en.between(i, j)
	s.en.relink(func() { s.en.cutLinks[l] = true })
}

// HealLink ends what [Server.CutLink] began. The connection that lived through the
// cut is closed at both ends. What [Endpoint.CutFromLeader] did stays.
func (s *Server) HealLink(i, j int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.en.between(i, j)
	s.en.relink(func() { delete(s.en.cutLinks, l) })
}

// ResetEnd closes endpoint i's end of its connection with endpoint j: i notices at
// once. So does j, unless the link between the two is cut: then j goes on believing
// in the connection for [Config.SyncLimit] ticks. Two followers that close their
// ends behind a cut elect a new leader at once, and the old leader does not know;
// [Server.Depose] does all of that.
func (s *Server) ResetEnd(i, j int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.en.between(i, j)
	s.en.resetEnd(s.Endpoint(i), s.Endpoint(j))
	s.en.reconsider()
}

func (en *ensemble) resetEnd(a, b *Endpoint) {
	switch l := a.in; {
	case l == nil || a.thaw != nil:
	case l.leader == b:
		en.leave(a)
	case l.leader == a:
		l.drop(b)
	}
}

// relink runs change, which cuts or heals links. A follower that loses its link to
// its leader does not notice yet; a link that is healed closes the connection that
// it carried before. The caller holds mu.
func (en *ensemble) relink(change func()) {
	type pair struct {
		l *leadership
		e *Endpoint
	}
	pairs, were := []pair{}, []bool{}
	en.eachPair(func(l *leadership, e *Endpoint) {
		pairs, were = append(pairs, pair{l, e}), append(were, en.linked(l.leader, e))
	})
	change()
	for i, p := range pairs {
		switch is := en.linked(p.l.leader, p.e); {
		case were[i] && !is:
			p.l.lose(p.e)
		case !were[i] && is:
			p.l.drop(p.e)
		}
	}
	en.reconsider()
}

// eachPair visits every leader with every other endpoint, whether that follows it or
// not, because a leader remembers followers that have left behind a cut; and every
// follower that has not noticed that its leader is gone.
func (en *ensemble) eachPair(visit func(*leadership, *Endpoint)) {
	for _, e := range en.endpoints {
		switch l := e.in; {
		case l == nil:
		case l.leader == e:
			for _, other := range en.endpoints {
				if other != e {
					visit(l, other)
				}
			}
		case l.leader.in != l:
			visit(l, e)
		}
	}
}

// patience is how long leader and follower do without a word from each other.
func (en *ensemble) patience() time.Duration {
	return time.Duration(en.s.cfg.SyncLimit) * en.s.cfg.TickTime
}

func (en *ensemble) isMajority(n int) bool { return n > len(en.endpoints)/2 }

// active reports whether there is a leader that can commit.
func (en *ensemble) active() bool {
	l := en.current
	if en.s.closed || l == nil || l.leader.thaw != nil {
		return false
	}
	n := 0
	for _, e := range en.endpoints {
		if l.has(e) && e.thaw == nil {
			n++
		}
	}
	return en.isMajority(n)
}

// announce wakes the goroutines that wait for the ensemble to change.
func (en *ensemble) announce() {
	if en.changed != nil {
		close(en.changed)
		en.changed = nil
	}
}

// change returns a channel that is closed when the ensemble changes.
func (en *ensemble) change() <-chan struct{} {
	if en.changed == nil {
		en.changed = make(chan struct{})
	}
	return en.changed
}
