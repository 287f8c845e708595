package main

// primitiveBugs are mistakes about locks, elections and barriers, of which the holder or the waiter hears nothing, or
// something false.
var primitiveBugs = []bug{
	{"keep what the proof of a session tells of a znode from its holder", []edit{{"zksync/internal/line/holdguard.go",
		"		g.lease.NotifyGone(func() { g.cancel(session.ErrRemoved) })\n",
		"		g.lease.NotifyGone(func() {})\n"}}, []finder{tested("./zksync", "TestTheProofOfTheSessionTellsOfARemoval")}},
	{"call the function of a znode that was replaced", []edit{{"session/lease.go",
		"	l.onGone, l.lost = nil, nil\n",
		"	if l.lost = nil; l.onGone != nil {\n		go l.onGone()\n	}\n"}}, []finder{tested("./session", "TestNotifyGone")}},
	{"report the removal of a znode as a release", []edit{{"zksync/internal/line/holdguard.go",
		"		g.lease.Lose()\n",
		""}}, []finder{tested("./zksync", "TestObserverOfARemovedHold")}},
	{"report an own deletion as a removal", []edit{{"session/lease.go",
		"	if l.state == leaseHeld {\n		// The end is reported",
		"	if l.began != 0 {\n		l.lost = ErrRemoved\n	}\n	if l.state == leaseHeld {\n		// The end is reported"}}, []finder{tested("./session", "TestTheEndOfAReleasedLeaseIsReported")}},
	{"report the end of a hold at another path than its start", []edit{{"session/lease.go",
		"	if l.began != 0 && l.place != \"\" && l.place != l.reported() {\n",
		"	if l.place = l.reported(); false {\n"}}, []finder{tested("./zksync", "TestObserverCountsHoldsOfAPath")}},
	{"let a try say false while its znode is in line", []edit{{"zksync/internal/line/contender.go",
		"		return nil\n	case <-ctx.Done():\n		return session.Cancelled(ctx)\n",
		"		return nil\n	case <-ctx.Done():\n		return nil\n"}}, []finder{tested("./zksync", "TestTryWhoseZnodeStaysTooLong")}},
	{"drop the result of a work when ctx ends during the resignation", []edit{{"zksync/election.go",
		"		case !lost:\n			return nil // also",
		"		case !lost && ctx.Err() == nil:\n			return nil // also"}}, []finder{tested("./zksync", "TestRunWhoseContextEndsDuringTheResignation")}},
	{"resign without a look at the owner of the znode", []edit{{"zksync/internal/line/racerun.go",
		"	case err == nil && (!ok || stat.EphemeralOwner != s.ID()):\n		return session.ErrRemoved\n",
		"	case err == nil && !ok && stat != nil:\n		return session.ErrRemoved\n"}}, []finder{tested("./zksync", "TestResignationLeavesTheNextLeader")}},
}
