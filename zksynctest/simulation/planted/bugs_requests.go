package main

// requestBugs are mistakes about the requests, watches and ephemerals of a session.
var requestBugs = []bug{
	{"end a read of an Inbox whose answer is too slow", []edit{{"session/inbox_read.go",
		"		if r.guilt >= maxGuilt && IsAnswerTooLarge(lost.Reason) {",
		"		if r.guilt >= maxGuilt && lost.Guilt >= wire.GuiltOfAnswer {"}},
		[]finder{tested("./watch", "^TestTreeAfterASlowNetwork$")}},
	{"hide why a read of an Inbox is repeated whose answer is too slow", []edit{{"session/inbox_read.go",
		"			in.refuse(r, lost.Reason, now)\n",
		"			_ = lost\n"}},
		[]finder{tested("./watch", "^TestTreeAfterASlowNetwork$")}},
	{"remove all watches of an Inbox at once", []edit{{"session/hub.go",
		"h.idle.Len() > maxIdleWatches && h.removals.Load() < maxRemovals && ",
		"h.idle.Len() > maxIdleWatches && "}},
		[]finder{tested("./session", "^TestTheWatchesOfAClosedInboxAreRemovedAFewAtATime$")}},
	{"remove only the first watches of an Inbox", []edit{{"session/hub.go",
		"		h.mu.Lock()\n		defer h.mu.Unlock()\n		h.trim()\n",
		""}},
		[]finder{tested("./session", "^TestTheWatchesOfAClosedInboxAreRemovedAFewAtATime$")}},
}
