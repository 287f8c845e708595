package main

// An edit replaces a text that is in a file exactly once.
type edit struct{ file, from, to string }

// A bug is a mistake that one could make.
type bug struct {
	name  string
	edits []edit
}

// bugs are mistakes that the simulation must find. Each breaks a rule that the
// packages' comments state.
var bugs = []bug{
	{"grant without asking the lease", []edit{{"zksync/place.go",
		"		err := p.lease.Hold()\n",
		"		err := error(nil)\n"}}},
	{"believe in a session for longer than its timeout", []edit{{"session/lease.go",
		"return s.timeout * 2 / 3 }",
		"return s.timeout * 3 }"}}},
	{"renew the lease by a read", []edit{
		{"session/lease.go", "beat = &call{op: opSync,", "beat = &call{op: opExists,"},
		{"session/lease.go",
			"return appendString(b, \"/\") }\n	if s.m.cfg.strict {",
			"return appendBool(appendString(b, \"/\"), false) }\n	if s.m.cfg.strict {"},
		{"session/call.go", "opSetData, opMulti, opSync:", "opSetData, opMulti, opSync, opExists:"}}},
	{"forget what a cancelled create has made", []edit{{"session/protected.go",
		"	r.late = func(c *call) {\n		if c.err != nil {\n			s.janitor.add(",
		"	r.late = func(c *call) {\n		if true {\n		} else if c.err != nil {\n			s.janitor.add("}}},
	{"leave the place of a wait that was given up", []edit{{"zksync/place.go",
		"	p.close()\n	if p.s.Err() == nil {\n		p.s.Discard(p.path)\n	}\n",
		"	p.close()\n"}}},
	{"have the janitor try once", []edit{{"session/janitor.go",
		"				failed = append(failed, c.paths[i])\n",
		"				failed = failed[:0]\n"}}},
	{"create again without looking for the first", []edit{{"session/protected.go",
		"if found := findGUID(dir, names, guid); len(found) > 0 {",
		"if found := findGUID(dir, names, guid); len(found) > 1<<20 {"}}},
	{"look after a reconnect without a sync", []edit{
		{"session/session.go", "sync := &call{op: opSync,", "sync := &call{op: opExists,"},
		{"session/session.go",
			"return appendString(b, \"/\") })\n}",
			"return appendBool(appendString(b, \"/\"), false) })\n}"}}},
	{"set no watches again after a reconnect", []edit{{"session/session.go",
		"	s.hub.rearm(w, s.lastZxid.Load())\n",
		""}}},
	{"watch the lowest place instead of the one before", []edit{
		{"zksync/line.go", "near.name == \"\" || near.before(m):", "near.name == \"\" || m.before(near):"},
		{"zksync/place.go", "	p.last = f.last\n", "	p.last = true\n"},
		{"zksync/place.go", "	if p.line.rule.together(p.line.class) {\n", "	if true {\n"}}},
	{"take the going of the one before for a grant", []edit{{"zksync/place.go",
		"	p.last = f.last\n",
		"	p.last = true\n"}}},
	{"hand on in memory what is lost", []edit{
		{"zksync/entrance.go",
			"	case p.guard != nil && p.lost() != nil:\n",
			"	case false:\n"},
		{"zksync/entrance.go",
			"	if err := p.lost(); err != nil {\n		p.leave()\n		e.local.leave()\n		return err\n	}\n	e.spare = p\n",
			"	e.spare = p\n"}}},
	{"say nothing of a loss at Unlock", []edit{{"zksync/entrance.go",
		"		p.leave()\n		e.local.leave()\n		return err\n	}\n	e.spare = p\n",
		"		p.leave()\n		e.local.leave()\n		return nil\n	}\n	e.spare = p\n"}}},
	{"let a writer in behind one that became a reader", []edit{{"zksync/sharedrule.go",
		"overtaken: func(ours class) bool { return ours == writer },",
		"overtaken: func(ours class) bool { return false },"}}},
	{"say nothing of a loss at RUnlock and Release", []edit{{"zksync/pool.go",
		"	lost := p.check()\n	st := p.stakes[0]\n",
		"	var lost error\n	st := p.stakes[0]\n"}}},
	{"open a gate by a stale read", []edit{{"zksync/barrier.go",
		"		if err := s.Sync(ctx, b.path); err != nil {\n			return err\n		}\n",
		""}}},
	{"open a double barrier by an old count", []edit{{"zksync/participant_requests.go",
		"p.s.Multi(background, p.unchanged(), &zk.CreateRequest{Path: p.readyPath()}, p.touch())",
		"p.s.Multi(background, &zk.CreateRequest{Path: p.readyPath()}, p.touch())"}}},
	{"clear a double barrier by an old count", []edit{{"zksync/participant_requests.go",
		"p.s.Multi(background, p.unchanged(), &zk.DeleteRequest{Path: p.readyPath(), Version: -1}, p.touch())",
		"p.s.Multi(background, &zk.DeleteRequest{Path: p.readyPath(), Version: -1}, p.touch())"}}},
	{"repeat a batch whatever its marker says", []edit{{"zksync/marker.go",
		"Data: []byte{}, Version: k.version}",
		"Data: []byte{}, Version: -1}"}}},
	{"acknowledge before delivery", []edit{{"zksync/consumer_pump.go",
		"	select {\n	case p.c.bytes <- cl.data:\n		p.startRemoval(cl)\n		return true\n",
		"	p.startRemoval(cl)\n	select {\n	case p.c.bytes <- cl.data:\n		return true\n"}}},
	{"trust a claim that is found", []edit{{"zksync/claim.go",
		"		if r.Err == nil && r.Stat.EphemeralOwner == o.s.ID() {\n			ours",
		"		if r.Err == nil {\n			ours"}}},
	{"deliver again what is owed a removal", []edit{{"zksync/consumer_pump.go",
		"			if p.c.owed.settle(cl.ref, cl.czxid) {\n",
		"			if p.c.owed.settle(cl.ref, cl.czxid) && false {\n"}}},
	{"keep the claims on what was not received", []edit{{"zksync/consumer_pump.go",
		"	p.c.giveBack(append(unreceived, unread...))\n",
		"	_ = append(unreceived, unread...)\n"}}},
	{"lose what a Take has removed that was given up", []edit{{"zksync/queue_take.go",
		"	if e.err == nil && !o.c.owed.settle(r, czxid) {\n",
		"	if e.err == nil && !o.c.owed.settle(r, czxid) && false {\n"}}},
}
