package zksynctest

import (
	"errors"

	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Kill stops endpoint i like a crash. The endpoint keeps its address, which refuses connections.
// Kill has no effect on a stopped endpoint.
func (e *EmbeddedEnsemble) Kill(i int) { e.Endpoint(i).Stop() }

// Start starts endpoint i with all transactions that it has missed, and waits for the end of the
// election, if the start of the endpoint causes an election. Without a quorum the endpoint does not serve; see
// WaitReady. Start has no effect on a running endpoint.
func (e *EmbeddedEnsemble) Start(i int) {
	e.tb.Helper()
	e.check(e.Endpoint(i).Start())
	e.wait(e.WaitElection)
}

// Restart calls Kill and then Start.
func (e *EmbeddedEnsemble) Restart(i int) {
	e.tb.Helper()
	e.Kill(i)
	e.Start(i)
}

// Pause stops endpoint i like SIGSTOP, until Resume: its connections stay open, and clients can
// open new ones.
func (e *EmbeddedEnsemble) Pause(i int) { e.Endpoint(i).Freeze() }

// Resume resumes a paused endpoint (SIGCONT). An endpoint that the others have given up does not
// notice at once; WaitReady waits until it is a member again.
func (e *EmbeddedEnsemble) Resume(i int) { e.Endpoint(i).Thaw() }

// Cut drops all bytes that endpoints i and j send each other from now on, or, when i or j is
// Client, all bytes between the endpoint and its clients. Connections stay open; clients can open
// new connections, but get no answer.
func (e *EmbeddedEnsemble) Cut(i, j int) {
	e.link(i, j, (*zkserver.Endpoint).CutFromClients, e.CutLink)
}

// Heal ends a Cut. The connections that were open during the cut have lost bytes and are closed;
// new connections work.
func (e *EmbeddedEnsemble) Heal(i, j int) {
	e.link(i, j, (*zkserver.Endpoint).HealClients, e.HealLink)
}

// HealAll heals all cut links.
func (e *EmbeddedEnsemble) HealAll() {
	for i := 1; i <= e.Size(); i++ {
		e.Endpoint(i).HealClients()
		e.Endpoint(i).Rejoin()
		for j := i + 1; j <= e.Size(); j++ {
			e.HealLink(i, j)
		}
	}
}

// Reset closes the connections between endpoints i and j, or, when i or j is Client, between the
// endpoint and its clients. New connections work.
func (e *EmbeddedEnsemble) Reset(i, j int) {
	e.link(i, j, (*zkserver.Endpoint).DisconnectClients, func(i, j int) {
		e.ResetEnd(i, j)
		e.ResetEnd(j, i)
	})
}

// Depose cuts the leader off from the other endpoints. They notice and elect another leader; then
// Depose returns the number of the old leader. For syncLimit ticks and up to a tick more the old
// leader does not notice: it answers reads, pings, syncs and reconnects, and commits nothing. Then
// it closes its connections. HealAll ends the cut; zkserver's Server.Depose describes the deposed
// leader in full.
func (e *EmbeddedEnsemble) Depose() int {
	e.tb.Helper()
	old := e.Server.Depose()
	if old == 0 {
		e.check(errors.New("depose the leader: there is none"))
		return 0
	}
	e.WaitLeader(old)
	return old
}

// link applies a fault to the link between i and j.
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
