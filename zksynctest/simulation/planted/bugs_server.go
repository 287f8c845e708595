package main

// serverBugs are in the embedded server. A server that wrongly allows or forbids a
// request hides bugs of the packages that are tested on it.
var serverBugs = []bug{
	{"zkserver: have a session lag behind a cut for ever", []edit{{"zksynctest/zkserver/lag.go",
		" || sess.conn != nil && sess.conn.rep.cut {\n",
		" {\n"}},
		[]finder{simulated("barrier"), tested("./zksynctest/zkserver", "^TestLagBehindACutEndsWithTheCut$")}},
	{"zkserver: do not tell a follower with the heal of its link that its leader is gone", []edit{{"zksynctest/zkserver/ensemble.go",
		"		case l.leader.in != l:\n			visit(l, e)\n",
		""}},
		[]finder{tested("./zksynctest/zkserver", "^TestAFollowerWhoseLeaderStoppedBehindACut$")}},
	{"zkserver: carry a request out for a session that is about to end", []edit{{"zksynctest/zkserver/forward.go",
		"	case r.Op != OpCloseSession && l.sessions.find(c.sess.id) == nil,\n		!l.sessions",
		"	case !l.sessions"}},
		[]finder{tested("./zksynctest/zkserver", "^TestCutAfterForward$")}},
	{"zkserver: hold a write against a limit that it adds nothing to", []edit{{"zksynctest/zkserver/internal/tree/quota.go",
		"		return more != 0 && most >= 0 &&",
		"		return most >= 0 &&"}},
		[]finder{tested("./zksynctest/zkserver", "Limits")}},
	{"zkserver: have a refused auth touch the session", []edit{{"zksynctest/zkserver/serve.go",
		"	if op != OpAuth && !c.sess.local {\n",
		"	if !c.sess.local {\n"}},
		[]finder{tested("./zksynctest/zkserver", "^TestWhatTouchesASession$")}},
	{"link: pass the end of a stream over TCP only", []edit{{"zksynctest/internal/proxy/conn.go",
		"	_ = nc.Close()\n}\n\n// attach",
		"}\n\n// attach"}},
		[]finder{tested("./zksynctest/internal/proxy", "^TestDialedLinkPassesTheEnd$")}},
}
