package main

// holdBugs are in the code that locks, semaphores and elections share.
var holdBugs = []bug{
	{"keep the contender of a cancelled wait", []edit{{"zksync/internal/line/contender.go",
		"	return c.s.Discard(c.path)\n",
		"	return c.s.Done()\n"}}, []finder{enumerated("mutex-abandon"), simulated()}},
	{"watch the first contender instead of the predecessor", []edit{
		{"zksync/internal/line/lineview.go", "near.name == \"\" || near.before(m):", "near.name == \"\" || m.before(near):"},
		{"zksync/internal/line/contender.go", "	c.last = f.last\n", "	c.last = true\n"},
		{"zksync/internal/line/contender.go", "	if c.line.Class.together() {\n", "	if true {\n"}}, []finder{simulated("mutex")}},
	{"treat the deletion of the predecessor as a grant", []edit{{"zksync/internal/line/contender.go",
		"	c.last = f.last\n",
		"	c.last = true\n"}}, []finder{enumerated("mutex-abandon"), simulated()}},
	{"pass a lost hold on in memory", []edit{
		{"zksync/internal/line/localqueue.go",
			"	case c.grant.Lost() != nil:\n",
			"	case false:\n"},
		{"zksync/internal/line/localqueue.go",
			"		lost = c.grant.Lost()\n",
			""}}, []finder{enumerated("mutex-shared"), simulated()}},
	{"report no loss at Unlock", []edit{{"zksync/internal/line/localqueue.go",
		"		return lost\n",
		"		return nil\n"}}, []finder{enumerated("mutex-hold"), simulated()}},
	{"let a writer in behind a writer that became a reader", []edit{{"zksync/internal/line/rule.go",
		"func (c Class) overtaken() bool { return c == Writer }",
		"func (c Class) overtaken() bool { return false }"}}, []finder{enumerated("rwmutex-downgrade-writer"), simulated()}},
	{"report no loss at RUnlock and Release", []edit{{"zksync/internal/line/pool.go",
		"	lost := pl.check()\n	g.left--\n",
		"	var lost error\n	g.left--\n"}}, []finder{enumerated("rwmutex-handover"), simulated()}},
	{"leave a hold unwatched after a refusal", []edit{{"zksync/internal/line/holdguard.go",
		"			case class == session.ClassUnknown:\n",
		"			case class == session.ClassUnknown && refusals > 0:\n"}},
		[]finder{tested("./zksync", "TestHolderLearnsOfARemovalAfterARefusal")}},
	{"ask again at once for a leader that is listed and not shown", []edit{{"zksync/internal/line/contest.go",
		"			err = s.Pause(ctx, round)\n",
		""}}, []finder{tested("./zksync", "TestObserveOfContradictoryAnswers")}},
}
