package zksynctest

import (
	"context"
	"errors"
	"time"
)

// errShared is the error of a method that would affect all tests of a shared server.
var errShared = errors.New("cannot stop or configure the server of RealShared, because other tests use it; start one with RealZooKeeper")

// change runs a step that other users of the servers notice.
func (e *Ensemble) change(step func(context.Context) error) {
	e.tb.Helper()
	if e.shared {
		e.check(errShared)
		return
	}
	ctx, cancel := realContext(context.Background())
	defer cancel()
	e.check(step(ctx))
}

// Kill kills server i (SIGKILL) and waits until its process has ended. The server keeps its data
// and its address, which now resets connections. Kill has no effect on a stopped server.
func (e *Ensemble) Kill(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Kill(ctx, i) })
}

// Start starts server i with its data and waits until it serves. If too few servers run for a
// quorum, or links between running servers are cut, Start only waits until the server answers; see
// WaitReady. Start has no effect on a running server.
func (e *Ensemble) Start(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Start(ctx, i) })
}

// Restart calls Kill and then Start.
func (e *Ensemble) Restart(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Restart(ctx, i) })
}

// Pause stops server i (SIGSTOP) until Resume: its connections stay open, and its kernel still
// accepts bytes and new connections.
func (e *Ensemble) Pause(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Pause(ctx, i) })
}

// Resume resumes a paused server (SIGCONT) and waits until it answers. A server that its peers have
// given up does not notice at once; WaitReady waits until it is a member again.
func (e *Ensemble) Resume(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Resume(ctx, i) })
}

// Cut drops all bytes that servers i and j send each other from now on, or, when i or j is Client,
// all bytes between the server and its clients. As with a broken cable, connections stay open, even
// when one side closes them; new connections can be opened, but get no answer. Cut takes effect at
// once; the servers notice after some ticks.
func (e *Ensemble) Cut(i, j int) {
	e.tb.Helper()
	e.link(i, j, e.front.Cut, e.cluster.Cut)
}

// Heal ends a Cut. The connections that were open during the cut have lost bytes and are reset; new
// connections work. Heal takes effect at once; WaitReady waits until the servers have found each
// other again.
func (e *Ensemble) Heal(i, j int) {
	e.tb.Helper()
	e.link(i, j, e.front.Heal, e.cluster.Heal)
}

// HealAll heals all cut links.
func (e *Ensemble) HealAll() {
	e.tb.Helper()
	for i := 1; i <= e.cluster.Size(); i++ {
		e.check(e.front.Heal(i))
	}
	if !e.shared {
		e.check(e.cluster.HealAll())
	}
}

// Reset resets the connections between servers i and j, or, when i or j is Client, between the
// server and its clients, and waits for their end. New connections work.
func (e *Ensemble) Reset(i, j int) {
	e.tb.Helper()
	e.link(i, j, e.front.Reset, e.cluster.Reset)
}

// ResetEnd resets server i's ends of its connections with server j. Server j notices, unless the
// link between the two servers is cut: then j keeps its ends open. Two followers whose ends are
// reset behind a cut elect a new leader at once, and the old leader continues for syncLimit ticks.
func (e *Ensemble) ResetEnd(i, j int) {
	e.tb.Helper()
	e.check(e.cluster.ResetEnd(i, j))
}

// Depose cuts the leader off from the other servers. They notice and elect another leader; then
// Depose returns the number of the old leader. For syncLimit ticks and up to a tick more the old
// leader does not notice: it answers reads, pings, syncs and reconnects, and commits nothing. Then
// it closes its connections. HealAll ends the cut.
func (e *Ensemble) Depose() int {
	e.tb.Helper()
	if e.shared {
		e.check(errShared)
		return 0
	}
	old, followers := e.Leader(), e.Followers()
	if old == 0 || len(followers) == 0 {
		e.tb.Errorf("zksynctest: depose the leader: server %d leads, and %v follow", old, followers)
		return 0
	}
	for _, i := range followers {
		e.Cut(old, i)
	}
	for _, i := range followers {
		e.ResetEnd(i, old)
	}
	e.WaitLeader(old)
	return old
}

// SetProperty sets a line of the zoo.cfg of server i. The line takes effect at the server's next
// start, so that a rolling restart changes the servers one by one. SetProperty marks the test as
// failed for the server of RealShared, which tests cannot start again.
func (e *Ensemble) SetProperty(i int, key, value string) {
	e.tb.Helper()
	e.change(func(context.Context) error { return e.cluster.SetProperty(i, key, value) })
}

// Delay delays each byte between servers i and j by d, or, when i or j is Client, each byte between
// the server and its clients: a round trip takes 2d longer. Zero ends the delay. The
// new delay also applies to bytes that are under way.
func (e *Ensemble) Delay(i, j int, d time.Duration) {
	e.tb.Helper()
	e.link(i, j,
		func(i int) error { return e.front.Delay(i, d) },
		func(i, j int) error { return e.cluster.Delay(i, j, d) })
}

// LastSent returns the time at which server i last sent server j a message that is not an election
// message, or the zero time. If i or j is Client, LastSent returns the time at which a client last
// sent the server bytes over the links of this Ensemble.
func (e *Ensemble) LastSent(i, j int) time.Time {
	e.tb.Helper()
	var at time.Time
	e.link(i, j,
		func(j int) (err error) { at, err = e.front.LastSent(j); return err },
		func(i, j int) (err error) { at, err = e.cluster.LastSent(i, j); return err })
	return at
}

// link applies a fault to the link between i and j.
func (e *Ensemble) link(i, j int, client func(int) error, servers func(int, int) error) {
	e.tb.Helper()
	switch {
	case i == Client:
		e.check(client(j))
	case j == Client:
		e.check(client(i))
	default:
		e.check(servers(i, j))
	}
}

// Leader returns the number of the current leader, or 0. If two servers claim to lead, because one
// of them was cut off or paused, Leader returns the server that was elected later. A single server
// leads.
func (e *Ensemble) Leader() int {
	ctx, cancel := realContext(context.Background())
	defer cancel()
	return e.cluster.Leader(ctx)
}

// Followers returns the numbers of the followers, in order.
func (e *Ensemble) Followers() []int {
	ctx, cancel := realContext(context.Background())
	defer cancel()
	return e.cluster.Followers(ctx)
}

// WaitLeader waits for a leader whose number is not in not, and returns its number. After a leader
// was killed, paused or cut off, pass its number.
func (e *Ensemble) WaitLeader(not ...int) int {
	e.tb.Helper()
	ctx, cancel := realContext(context.Background())
	defer cancel()
	leader, err := e.cluster.WaitLeader(ctx, not...)
	e.check(err)
	return leader
}

// WaitReady waits until all servers that are neither killed nor paused serve: one leads, and the
// others follow and are up to date.
func (e *Ensemble) WaitReady() {
	e.tb.Helper()
	ctx, cancel := realContext(context.Background())
	defer cancel()
	e.check(e.cluster.WaitReady(ctx))
}
