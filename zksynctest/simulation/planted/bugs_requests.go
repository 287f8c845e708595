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
}
