package main

// holdBugs are in the code that locks, semaphores and elections share.
var holdBugs = []bug{
	{"leave the place of a wait that was given up", []edit{{"zksync/internal/line/contender.go",
		"	p.close()\n	p.remover.discard(p.s, p.path)\n",
		"	p.close()\n"}}, []finder{enumerated("mutex-abandon"), simulated()}},
	{"watch the lowest place instead of the one before", []edit{
		{"zksync/internal/line/lineview.go", "near.name == \"\" || near.before(m):", "near.name == \"\" || m.before(near):"},
		{"zksync/internal/line/contender.go", "	p.last = f.last\n", "	p.last = true\n"},
		{"zksync/internal/line/contender.go", "	if p.line.Rule.together(p.line.Class) {\n", "	if true {\n"}}, []finder{simulated("mutex")}},
	{"take the going of the one before for a grant", []edit{{"zksync/internal/line/contender.go",
		"	p.last = f.last\n",
		"	p.last = true\n"}}, []finder{enumerated("mutex-abandon"), simulated()}},
	{"hand on in memory what is lost", []edit{
		{"zksync/internal/line/localqueue.go",
			"	case p.lost() != nil:\n",
			"	case false:\n"},
		{"zksync/internal/line/localqueue.go",
			"	if err := p.lost(); err != nil {\n		p.leave()\n		e.turn.unlock()\n		return err\n	}\n	e.spare = p\n",
			"	e.spare = p\n"}}, []finder{enumerated("mutex-shared"), simulated()}},
	{"say nothing of a loss at Unlock", []edit{{"zksync/internal/line/localqueue.go",
		"		p.leave()\n		e.turn.unlock()\n		return err\n	}\n	e.spare = p\n",
		"		p.leave()\n		e.turn.unlock()\n		return nil\n	}\n	e.spare = p\n"}}, []finder{enumerated("mutex-hold"), simulated()}},
	{"let a writer in behind one that became a reader", []edit{{"zksync/internal/line/rule.go",
		"overtaken: func(ours Class) bool { return ours == Writer },",
		"overtaken: func(ours Class) bool { return false },"}}, []finder{enumerated("rwmutex-downgrade-writer"), simulated()}},
	{"say nothing of a loss at RUnlock and Release", []edit{{"zksync/internal/line/pool.go",
		"	lost := p.check()\n	st := p.grants[i]\n",
		"	var lost error\n	st := p.grants[i]\n"}}, []finder{enumerated("rwmutex-handover"), simulated()}},
	{"leave a hold unwatched after a refusal", []edit{{"zksync/internal/line/holdguard.go",
		"			case class == session.ClassUnknown:\n",
		"			case class == session.ClassUnknown && refusals > 0:\n"}},
		[]finder{tested("./zksync", "TestHolderLearnsOfARemovalAfterARefusal")}},
	{"ask again at once for a leader that is listed and not shown", []edit{{"zksync/candidates.go",
		"			err = s.Pause(ctx, round)\n",
		""}}, []finder{tested("./zksync", "TestObserveOfContradictoryAnswers")}},
}
