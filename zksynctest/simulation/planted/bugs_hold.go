package main

// holdBugs are in the code that locks, semaphores and elections share.
var holdBugs = []bug{
	{"leave the place of a wait that was given up", []edit{{"zksync/place.go",
		"	p.close()\n	p.remover.discard(p.s, p.path)\n",
		"	p.close()\n"}}, []finder{enumerated("mutex-abandon"), simulated()}},
	{"watch the lowest place instead of the one before", []edit{
		{"zksync/line.go", "near.name == \"\" || near.before(m):", "near.name == \"\" || m.before(near):"},
		{"zksync/place.go", "	p.last = f.last\n", "	p.last = true\n"},
		{"zksync/place.go", "	if p.line.rule.together(p.line.class) {\n", "	if true {\n"}}, []finder{simulated("mutex")}},
	{"take the going of the one before for a grant", []edit{{"zksync/place.go",
		"	p.last = f.last\n",
		"	p.last = true\n"}}, []finder{enumerated("mutex-abandon"), simulated()}},
	{"hand on in memory what is lost", []edit{
		{"zksync/entrance.go",
			"	case p.lost() != nil:\n",
			"	case false:\n"},
		{"zksync/entrance.go",
			"	if err := p.lost(); err != nil {\n		p.leave()\n		e.local.leave()\n		return err\n	}\n	e.spare = p\n",
			"	e.spare = p\n"}}, []finder{enumerated("mutex-shared"), simulated()}},
	{"say nothing of a loss at Unlock", []edit{{"zksync/entrance.go",
		"		p.leave()\n		e.local.leave()\n		return err\n	}\n	e.spare = p\n",
		"		p.leave()\n		e.local.leave()\n		return nil\n	}\n	e.spare = p\n"}}, []finder{enumerated("mutex-hold"), simulated()}},
	{"let a writer in behind one that became a reader", []edit{{"zksync/sharedrule.go",
		"overtaken: func(ours class) bool { return ours == writer },",
		"overtaken: func(ours class) bool { return false },"}}, []finder{enumerated("rwmutex-downgrade-writer"), simulated()}},
	{"say nothing of a loss at RUnlock and Release", []edit{{"zksync/pool.go",
		"	lost := p.check()\n	st := p.stakes[i]\n",
		"	var lost error\n	st := p.stakes[i]\n"}}, []finder{enumerated("rwmutex-handover"), simulated()}},
	{"leave a hold unwatched after a refusal", []edit{{"zksync/guard.go",
		"			case class == session.ClassUnknown:\n",
		"			case class == session.ClassUnknown && refusals > 0:\n"}},
		[]finder{tested("./zksync", "TestHolderLearnsOfARemovalAfterARefusal")}},
	{"ask again at once for a leader that is listed and not shown", []edit{{"zksync/candidates.go",
		"			err = s.Pause(ctx, round)\n",
		""}}, []finder{tested("./zksync", "TestObserveOfContradictoryAnswers")}},
}
