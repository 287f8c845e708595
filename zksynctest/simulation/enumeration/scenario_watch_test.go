package enumeration_test

import (
	"context"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/watch"
)

const watchPath = "/w/x"

// A step is one change of the tree by an operator, without frames.
type step struct {
	after time.Duration
	do    func(s *stage) error
}

// changes are a create, a set, a delete and a re-creation with children.
var changes = []step{
	{while, func(s *stage) error { return s.server.Create(watchPath, []byte("1")) }},
	{while, func(s *stage) error { return s.server.Set(watchPath, []byte("2")) }},
	{while, func(s *stage) error { return s.server.Create(watchPath+"/a", nil) }},
	{while, func(s *stage) error { return s.server.Delete(watchPath + "/a") }},
	{3 * latency, func(s *stage) error { return s.server.Delete(watchPath) }},
	{while, func(s *stage) error { return s.server.Create(watchPath, []byte("3")) }},
	{3 * latency, func(s *stage) error { return s.server.Create(watchPath+"/b", nil) }},
	{3 * latency, func(s *stage) error { return s.server.Create(watchPath+"/last", []byte("4")) }},
	{3 * latency, func(s *stage) error { return s.server.Set(watchPath, []byte("last")) }},
}

// brokenly are changes around the moment at which a connection breaks.
var brokenly = slices.Concat(
	[]step{{while, func(s *stage) error { return s.server.Create(watchPath, []byte("1")) }}},
	[]step{{while, func(s *stage) error { s.net.Disconnect(0); return nil }}},
	[]step{{2 * latency, func(s *stage) error { return s.server.Set(watchPath, []byte("2")) }}},
	[]step{{2 * latency, func(s *stage) error { return s.server.Create(watchPath+"/a", nil) }}},
	[]step{{2 * latency, func(s *stage) error { return s.server.Delete(watchPath + "/a") }}},
	[]step{{2 * latency, func(s *stage) error { return s.server.Create(watchPath+"/last", []byte("4")) }}},
	[]step{{2 * latency, func(s *stage) error { return s.server.Set(watchPath, []byte("last")) }}},
)

// operate changes the tree step by step.
func (s *stage) operate(steps []step) {
	s.operator(func() error { return s.server.Create("/w", nil) })
	for _, st := range steps {
		s.pause(st.after)
		s.operator(func() error { return st.do(s) })
	}
}

// node follows the znode until its last state, and checks that no older state follows
// a newer one.
func node(s *stage) {
	c := s.clients[0]
	newest := int64(0)
	c.follow("Node", func(ctx context.Context) (func() error, bool) {
		stream := watch.Node(ctx, c.manager(), watchPath)
		for state := range stream.Events() {
			s.say("state %q, czxid %#x, mzxid %#x", state.Data, state.Stat.Czxid, state.Stat.Mzxid)
			if state.Exists && state.Stat.Mzxid < newest {
				s.fail("a state of %#x follows one of %#x", state.Stat.Mzxid, newest)
			}
			newest = max(newest, state.Stat.Mzxid)
			if string(state.Data) == "last" {
				return nil, true
			}
		}
		return stream.Err, false
	})
}

// children follows the list of children until its last state.
func children(s *stage) {
	c := s.clients[0]
	c.follow("Children", func(ctx context.Context) (func() error, bool) {
		stream := watch.Children(ctx, c.manager(), watchPath)
		for names := range stream.Events() {
			s.say("children %q", names)
			if slices.Contains(names, "last") {
				return nil, true
			}
		}
		return stream.Err, false
	})
}

// tree follows the tree until the mirror equals it, and checks that applying the events
// gives the same tree.
func tree(s *stage) {
	c := s.clients[0]
	c.follow("Tree", func(ctx context.Context) (func() error, bool) {
		cache := watch.Tree(ctx, c.manager(), "/w")
		applied := make(map[string]string)
		for ev := range cache.Events() {
			s.say("event %+v", ev)
			if ev.Type == watch.Removed {
				delete(applied, ev.State.Path)
			} else {
				applied[ev.State.Path] = string(ev.State.Data)
			}
			// A refused read is repeated after the other reads.
			if applied[watchPath] == "last" && applied[watchPath+"/last"] == "4" && s.equal(applied, "/w") {
				return nil, true
			}
		}
		return cache.Err, false
	})
}

// equal reports whether a mirror is the server's tree.
func (s *stage) equal(applied map[string]string, root string) bool {
	want := s.znodes(root)
	for path := range want {
		data, _ := s.server.Get(path)
		if got, ok := applied[path]; !ok || got != string(data) {
			s.say("the mirror has %q, %v at %s, the server has %q", got, ok, path, data)
			return false
		}
	}
	return len(applied) == len(want)+1
}

// watching returns a scenario of a reader and the changes that it follows.
func watching(name string, steps []step, pairs bool, read func(s *stage)) *scenario {
	return &scenario{name: name, clients: 1, pairs: pairs, run: func(s *stage) {
		s.together(func() { read(s) }, func() { s.operate(steps) })
	}}
}

var watchScenarios = []*scenario{
	watching("node", changes, true, node),
	watching("children", changes, true, children),
	watching("tree", changes, true, tree),
	watching("node-rearm", brokenly, true, node),
	watching("children-rearm", brokenly, true, children),
	watching("tree-rearm", brokenly, true, tree),
}
