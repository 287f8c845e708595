package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const groupPath = "/groups/g"

// groups makes clients join and leave under few ids, list the members, and follow them.
var groups = &workload{name: "group", start: func(w *world) func(*simClient, action) error {
	k := &registrar{w: w, joins: map[string]int{}, quit: map[string]time.Time{}, live: map[string]int{}, data: map[string]map[string]bool{}}
	k.h = w.object("group", porcupine.Model{})
	w.objects[len(w.objects)-1].check = func() []string { return nil } // each list of members is checked when it is returned
	for i, m := range w.managers {
		k.groups = append(k.groups, zksync.NewGroup(m, groupPath))
		k.readers = append(k.readers, &groupReader{k: k, tokens: map[string]int64{}})
		w.helper(func(ctx context.Context, c *simClient) { k.readers[i].follow(ctx, k.groups[i]) })
	}
	for _, id := range ids {
		w.probes = append(w.probes, func(ctx context.Context) error {
			m, err := k.groups[0].Join(ctx, id, nil)
			if err != nil {
				return fmt.Errorf("nobody has the id %s: %w", id, err)
			}
			return m.Leave()
		})
	}
	w.atRest = append(w.atRest, k.compare)
	w.dirs = append(w.dirs, groupPath)
	return k.act
}}

// ids are the ids under which clients join.
var ids = []string{"a", "b", "c"}

// A registrar records the members that have joined and left.
type registrar struct {
	w       *world
	h       *history
	groups  []*zksync.Group // by Manager
	readers []*groupReader  // by Manager

	mu     sync.Mutex
	joins  map[string]int             // calls of Join
	quit   map[string]time.Time       // time of the latest Join that was cancelled
	live   map[string]int             // members that have not left
	data   map[string]map[string]bool // data that a member may have
	writes int
}

// act is one action of a client.
func (k *registrar) act(c *simClient, a action) error {
	ctx, cancel := c.context(a)
	defer cancel()
	if a.kind >= 60 {
		return k.members(ctx, c)
	}
	id := ids[a.units-1]
	g := k.groups[c.manager]
	if a.kind < 20 {
		g = zksync.NewGroup(c.m, groupPath, zksync.WithIDWait())
	}
	k.count(k.joins, id, 1)
	k.count(k.live, id, 1)
	m, err := g.Join(ctx, id, k.write(id))
	k.w.say("client %d joins as %s: %v", c.number, id, err)
	if err != nil {
		if ctx.Err() != nil || k.w.refused(err) {
			k.cancelled(id)
		}
		k.count(k.live, id, -1)
		if ctx.Err() != nil && gaveUp(err) || errors.Is(err, zksync.ErrIDTaken) {
			return nil
		}
		return fmt.Errorf("join: %w", err)
	}
	stay(ctx, a.stay)
	c.wake()
	if a.kind%2 == 0 {
		limit, cancel := context.WithTimeout(context.Background(), k.w.plan.timeout())
		defer cancel()
		if err := m.Set(limit, k.write(id)); err != nil && limit.Err() == nil && !k.w.refused(err) {
			return fmt.Errorf("set: %w", err)
		}
	}
	err = m.Leave() // after an error, Leave continues in the background
	k.w.say("client %d has left %s: %v", c.number, id, err)
	k.count(k.live, id, -1)
	return nil
}

// cancelled records that a Join was cancelled. A request that it has sent may still create a znode,
// which is deleted in the background.
func (k *registrar) cancelled(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.quit[id] = time.Now()
}

// nobody reports whether nobody has been or has become a member with the id since the census. A
// Join that was cancelled counts until no fault can delay its request any longer.
func (k *registrar) nobody(id string, s census) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	lately := time.Since(k.quit[id]) < 5*k.w.plan.timeout()
	return s.live[id] == 0 && s.joins[id] == k.joins[id] && !lately
}

func (k *registrar) count(what map[string]int, id string, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what[id] += n
}

// write returns new data for a member.
func (k *registrar) write(id string) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.writes++
	data := fmt.Sprint(k.writes)
	if k.data[id] == nil {
		k.data[id] = map[string]bool{"": true}
	}
	k.data[id][data] = true
	return []byte(data)
}

// A census is the state of the members at one time.
type census struct {
	owner map[string]int64 // session that owns the id's znode, unless the session has ended
	czxid map[string]int64 // of the id's newest znode, even if it is gone
	// whether this znode may never have existed
	unclear map[string]bool
	names   []string // names of the znodes
	joins   map[string]int
	live    map[string]int
}

// sameMember reports whether the id has one znode, of a live session, at both times.
func (s census) sameMember(id string, later census) bool {
	// Another member with the same id has another czxid, even if it belongs to the same session.
	return s.owner[id] != 0 && s.owner[id] == later.owner[id] && s.czxid[id] == later.czxid[id]
}

func (k *registrar) census() census {
	s := census{owner: map[string]int64{}, joins: map[string]int{}, live: map[string]int{}}
	for _, info := range k.w.srv.Sessions() {
		for _, id := range ids {
			if slices.Contains(info.Ephemerals, groupPath+"/"+id) {
				s.owner[id] = info.ID
			}
		}
	}
	// A member that joins between two of these reads is in the later one.
	s.czxid, s.unclear = k.created()
	s.names, _ = k.w.srv.Children(groupPath)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		s.joins[id], s.live[id] = k.joins[id], k.live[id]
	}
	return s
}

// created returns the czxid of the newest znode of each id. It is unclear if the request was answered with an
// internal error afterwards: perhaps it had been refused.
func (k *registrar) created() (newest map[string]int64, unclear map[string]bool) {
	newest, unclear = map[string]int64{}, map[string]bool{}
	for _, op := range k.w.srv.Ops() {
		failed := op.Err == int32(zkserver.ErrSystem) && strings.Contains(op.Fault, "AfterCommit")
		if op.Code != zkserver.OpCreate && op.Code != zkserver.OpCreate2 || op.Err != 0 && !failed || op.Zxid == 0 {
			continue // Zxid is 0 as long as the request is under way
		}
		if id, ok := strings.CutPrefix(op.Path, groupPath+"/"); ok && op.Zxid > newest[id] {
			newest[id], unclear[id] = op.Zxid, failed
		}
	}
	return newest, unclear
}

// members lists the members, and compares the list with the servers before and after.
func (k *registrar) members(ctx context.Context, c *simClient) error {
	before := k.census()
	list, err := k.groups[c.manager].Members(ctx)
	after := k.census()
	k.w.say("client %d lists %d members: %v", c.number, len(list), err)
	if err != nil {
		if ctx.Err() != nil && gaveUp(err) {
			return nil
		}
		return fmt.Errorf("members: %w", err)
	}
	if err := k.wellFormed(list); err != nil {
		return err
	}
	for _, id := range ids {
		i := slices.IndexFunc(list, func(m zksync.Member) bool { return m.ID == id })
		same := before.sameMember(id, after)
		switch {
		case i < 0 && same:
			return fmt.Errorf("the list has no %s, who was there all the time", id)
		case i >= 0 && !slices.Contains(before.names, id) && before.czxid[id] == after.czxid[id]:
			return fmt.Errorf("the list has %s, who had no znode all the time", id)
		case i >= 0 && !slices.Contains(before.names, id) && k.nobody(id, before):
			return fmt.Errorf("the list has %s, who was not there all the time", id)
		case i >= 0 && same && list[i].Session != before.owner[id]:
			return fmt.Errorf("the list has %s by session %#x, and the servers by %#x", id, list[i].Session, before.owner[id])
		case i >= 0 && same && list[i].Token != before.czxid[id] && !before.unclear[id]:
			return fmt.Errorf("the list has %s with token %#x, and the servers with %#x", id, list[i].Token, before.czxid[id])
		}
	}
	return nil
}

// wellFormed checks the invariants that hold for any list of members.
func (k *registrar) wellFormed(list []zksync.Member) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, m := range list {
		switch {
		case i > 0 && list[i-1].ID >= m.ID:
			return fmt.Errorf("the list has %s ahead of %s", list[i-1].ID, m.ID)
		case !k.data[m.ID][string(m.Data)]:
			return fmt.Errorf("the list has %s with %q, which nobody has written", m.ID, m.Data)
		case m.Token > k.w.srv.Zxid():
			return fmt.Errorf("the list has %s with token %#x, and the servers are at %#x", m.ID, m.Token, k.w.srv.Zxid())
		}
	}
	return nil
}

// compare compares the lists of the streams with the servers, when there are no changes.
func (k *registrar) compare() {
	var want []string
	for _, id := range ids {
		if k.census().owner[id] != 0 {
			want = append(want, id)
		}
	}
	for i, r := range k.readers {
		if got := r.shows(); !slices.Equal(got, want) {
			k.w.fail("the stream of manager %d shows %v, and the servers have %v", i, got, want)
		}
	}
}

// A groupReader follows the members with one Manager.
type groupReader struct {
	k *registrar

	mu     sync.Mutex
	tokens map[string]int64 // newest token of each id
	newest []string
}

// follow reads a stream until ctx ends, and checks that no older state of a member
// follows a newer one.
func (r *groupReader) follow(ctx context.Context, g *zksync.Group) {
	stream := g.Watch(ctx)
	for list := range stream.Events() {
		if err := r.k.wellFormed(list); err != nil {
			r.k.w.fail("stream: %v", err)
		}
		r.mu.Lock()
		r.newest = nil
		for _, m := range list {
			if m.Token < r.tokens[m.ID] {
				r.k.w.fail("the stream has %s with token %#x behind %#x", m.ID, m.Token, r.tokens[m.ID])
			}
			r.tokens[m.ID] = m.Token
			r.newest = append(r.newest, m.ID)
		}
		r.mu.Unlock()
	}
	if err := stream.Err(); ctx.Err() == nil && !errors.Is(err, session.ErrClosed) {
		r.k.w.fail("the stream has ended: %v", err)
	}
}

func (r *groupReader) shows() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.newest)
}
