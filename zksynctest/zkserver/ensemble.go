package zkserver

import (
	"fmt"
	"time"
)

// ensemble is the set of endpoints and of the links between them. It decides which endpoint leads
// and which endpoints follow. The server's mu guards it.
//
// There is one tree and one sequence of transactions, and no consensus: the ensemble decides which
// endpoints take part in that sequence, and when. An endpoint that no longer takes part, and has
// not noticed, answers from its last view of the tree.
type ensemble struct {
	s         *Server
	endpoints []*Endpoint
	current   *leadership // the leadership that commits; nil during an election and without a quorum
	election  *timer
	changed   chan struct{} // closed when the ensemble changes
	cutLinks  map[link]bool
	replicas  []*replica         // replicas of the endpoints, then replicas of single connections
	lagging   map[int64]*replica // replicas of single sessions
	losing    map[int64]bool     // sessions that lose a touch with each report
	thawOrder ThawOrder
}

func newEnsemble(s *Server) *ensemble {
	return &ensemble{s: s, cutLinks: map[link]bool{}, lagging: map[int64]*replica{}, losing: map[int64]bool{}}
}

// close stops the timers of the ensemble.
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

// link is a pair of linked endpoints, the smaller number first.
type link [2]int

func linkOf(a, b *Endpoint) link { return link{min(a.number, b.number), max(a.number, b.number)} }

// linked reports whether a and b can talk to each other if both run.
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

// CutLink cuts the link between endpoints i and j, until [Server.HealLink]. A follower without a
// link to its leader behaves as after [Endpoint.CutFromLeader]. A leader with too few followers
// left has lost its quorum, and does not notice for [Config.SyncLimit] ticks. A cut link between
// two followers has no effect until the next election.
func (s *Server) CutLink(i, j int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.en.between(i, j)
	s.en.relink(func() { s.en.cutLinks[l] = true })
}

// HealLink ends the cut that [Server.CutLink] began. The connection that was open during the cut is
// closed at both ends. HealLink does not undo [Endpoint.CutFromLeader].
func (s *Server) HealLink(i, j int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.en.between(i, j)
	s.en.relink(func() { delete(s.en.cutLinks, l) })
}

// ResetEnd closes endpoint i's end of its connection with endpoint j. Endpoint i notices at once.
// Endpoint j also notices at once, unless the link between the two endpoints is cut: then j keeps
// the connection for [Config.SyncLimit] ticks. Two followers that close their ends behind a cut
// elect a new leader at once, and the old leader does not notice; [Server.Depose] does all of these
// steps.
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

// relink runs change, which cuts or heals links, and updates the connections over these links. A
// follower that loses its link to its leader does not notice yet. Healing a link closes the
// connection that existed before the cut. The caller holds mu.
func (en *ensemble) relink(change func()) {
	type pair struct {
		l *leadership
		e *Endpoint
	}
	pairs, were := []pair{}, []bool{}
	// All pairs first: lose and drop change the leaderships that eachPair visits.
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

// eachPair visits every leader with every other endpoint, including an endpoint that does not
// follow the leader, because a leader behind a cut remembers followers that have left. It also
// visits every follower that has not noticed the end of its leader.
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

// patience returns the silence after which a leader and a follower give each other up.
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
		// A frozen follower acknowledges no proposal.
		if l.has(e) && e.thaw == nil {
			n++
		}
	}
	return en.isMajority(n)
}

// announce wakes the goroutines that wait for a change of the ensemble.
func (en *ensemble) announce() {
	if en.changed != nil {
		close(en.changed)
		en.changed = nil
	}
}

// change returns a channel that the next change of the ensemble closes.
func (en *ensemble) change() <-chan struct{} {
	if en.changed == nil {
		en.changed = make(chan struct{})
	}
	return en.changed
}
