package zksynctest

import "github.com/go-zksync/toolkit/zksynctest/zkserver"

// Kill stops endpoint i as a crash does. Its address stays, and connections to it are
// refused. Kill does nothing if the endpoint does not run.
func (e *EmbeddedEnsemble) Kill(i int) { e.Endpoint(i).Stop() }

// Start starts endpoint i with all transactions that it has missed, and waits for the
// end of the election that follows, if any. Without a quorum the endpoint does not
// serve; see WaitReady. Start does nothing if the endpoint runs.
func (e *EmbeddedEnsemble) Start(i int) {
	e.tb.Helper()
	e.check(e.Endpoint(i).Start())
	e.wait(e.WaitElection)
}

// Restart is Kill and then Start.
func (e *EmbeddedEnsemble) Restart(i int) {
	e.tb.Helper()
	e.Kill(i)
	e.Start(i)
}

// Pause stops endpoint i where it stands (SIGSTOP) until Resume: its connections stay
// open, and new ones can be made.
func (e *EmbeddedEnsemble) Pause(i int) { e.Endpoint(i).Freeze() }

// Resume lets a paused endpoint go on (SIGCONT). If the others have given it up, it
// still believes for a moment that it serves; WaitReady waits until it is a member
// again.
func (e *EmbeddedEnsemble) Resume(i int) { e.Endpoint(i).Thaw() }

// Cut swallows all bytes that endpoints i and j send each other from now on, or, when
// i or j is Client, all bytes between the endpoint and its clients. Connections stay
// open; new ones to clients seem to be made, and lead nowhere.
func (e *EmbeddedEnsemble) Cut(i, j int) {
	e.link(i, j, (*zkserver.Endpoint).CutFromClients, e.CutLink)
}

// Heal ends a Cut. The connections that lived through it have lost bytes and are
// closed; new ones work.
func (e *EmbeddedEnsemble) Heal(i, j int) {
	e.link(i, j, (*zkserver.Endpoint).HealClients, e.HealLink)
}

// HealAll heals all links that are cut.
func (e *EmbeddedEnsemble) HealAll() {
	for i := 1; i <= e.Size(); i++ {
		e.Endpoint(i).HealClients()
		e.Endpoint(i).Rejoin()
		for j := i + 1; j <= e.Size(); j++ {
			e.HealLink(i, j)
		}
	}
}

// Reset closes the connections between endpoints i and j, or, when i or j is
// Client, between endpoint and clients. New ones work.
func (e *EmbeddedEnsemble) Reset(i, j int) {
	e.link(i, j, (*zkserver.Endpoint).DisconnectClients, func(i, j int) {
		e.ResetEnd(i, j)
		e.ResetEnd(j, i)
	})
}

// Depose cuts the leader off from the other endpoints, which notice and elect another
// leader, and returns the number of the old one when they have. For syncLimit ticks
// and up to a tick more the old leader does not notice: it answers reads, pings, syncs
// and reconnects, and commits nothing. Then it closes its connections. HealAll ends
// the cut; zkserver's Server.Depose describes the deposed leader in full.
func (e *EmbeddedEnsemble) Depose() int {
	e.tb.Helper()
	old := e.Server.Depose()
	if old == 0 {
		e.tb.Errorf("zksynctest: depose the leader: there is none")
		return 0
	}
	e.WaitLeader(old)
	return old
}

// link does something to the link between i and j.
func (e *EmbeddedEnsemble) link(i, j int, clients func(*zkserver.Endpoint), servers func(int, int)) {
	switch {
	case i == Client:
		clients(e.Endpoint(j))
	case j == Client:
		clients(e.Endpoint(i))
	default:
		servers(i, j)
	}
}
