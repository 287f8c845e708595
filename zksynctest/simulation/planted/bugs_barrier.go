package main

// barrierBugs are in barriers and double barriers.
var barrierBugs = []bug{
	{"open a gate by a stale read", []edit{{"zksync/barrier.go",
		"		if err := s.SyncQuorum(ctx, b.path); err != nil {\n			return err\n		}\n",
		""}}, []finder{simulated("barrier")}},
	{"open a double barrier by an old count", []edit{{"zksync/internal/rendezvous/view.go",
		"v.transact(v.unchanged(), &zk.CreateRequest{Path: v.readyPath()})",
		"v.transact(&zk.CreateRequest{Path: v.readyPath()})"}}, []finder{enumerated("doublebarrier", "doublebarrier-abandon-0", "doublebarrier-abandon-1", "doublebarrier-abandon-2", "doublebarrier-abandon-3"), simulated("doublebarrier")}},
	{"clear a double barrier by an old count", []edit{{"zksync/internal/rendezvous/view.go",
		"v.transact(v.unchanged(), &zk.DeleteRequest{Path: v.readyPath(), Version: -1})",
		"v.transact(&zk.DeleteRequest{Path: v.readyPath(), Version: -1})"}}, []finder{enumerated("doublebarrier", "doublebarrier-abandon-0", "doublebarrier-abandon-1", "doublebarrier-abandon-2", "doublebarrier-abandon-3"), simulated("doublebarrier")}},
	{"delete a participant that other participants have counted", []edit{{"zksync/internal/rendezvous/requests.go",
		"p.s.Multi(background, p.unchanged(), &zk.DeleteRequest{Path: p.path, Version: -1}, p.touch())",
		"p.s.Multi(background, &zk.DeleteRequest{Path: p.path, Version: -1}, p.touch())"}},
		[]finder{enumerated("doublebarrier-abandon-0", "doublebarrier-abandon-1", "doublebarrier-abandon-2", "doublebarrier-abandon-3")}},
	{"enter a round that began before the participant joined", []edit{{"zksync/internal/rendezvous/rounds.go",
		"				return p.ready > p.czxid, nil\n",
		"				return true, nil\n"}}, []finder{enumerated("doublebarrier", "doublebarrier-abandon-0", "doublebarrier-abandon-1", "doublebarrier-abandon-2", "doublebarrier-abandon-3"), simulated("doublebarrier")}},
	{"take a directory that was deleted for an error of the server", []edit{{"zksync/internal/rendezvous/view.go",
		"		return false, session.ErrRemoved // the directory was deleted, with the child of the participant\n",
		"		return false, err\n"}}, []finder{enumerated("doublebarrier")}},
}
