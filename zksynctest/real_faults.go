package zksynctest

import (
	"context"
	"errors"
	"time"
)

// errShared is the error of a fault on a shared server that would hit every test.
var errShared = errors.New("the server of RealShared is not to be stopped: other tests use it; start one with RealZooKeeper")

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

// Kill kills server i (SIGKILL) and waits until it is gone. Its data stays,
// and so does its address, where connections are now reset. A server that
// does not run is left as it is.
func (e *Ensemble) Kill(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Kill(ctx, i) })
}

// Start starts server i over its data and waits until it serves. When too few servers
// run for a quorum, or links between running servers are cut, Start only waits until
// the server answers; see WaitReady. Start does nothing if the server runs.
func (e *Ensemble) Start(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Start(ctx, i) })
}

// Restart is Kill and then Start.
func (e *Ensemble) Restart(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Restart(ctx, i) })
}

// Pause stops server i where it stands (SIGSTOP) until Resume: its connections
// stay open, its kernel still takes bytes and new connections for it.
func (e *Ensemble) Pause(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Pause(ctx, i) })
}

// Resume lets a paused server go on (SIGCONT) and waits until it answers. A
// server that its peers have given up may still believe for a moment that it
// serves; WaitReady waits until it is a member again.
func (e *Ensemble) Resume(i int) {
	e.tb.Helper()
	e.change(func(ctx context.Context) error { return e.cluster.Resume(ctx, i) })
}

// Cut swallows all bytes that servers i and j send each other from now on, or, when i
// or j is Client, all bytes between the server and its clients. As on a broken cable,
// connections stay open, even when one side closes them; new connections seem to be
// made, and lead nowhere. Cut takes effect at once; the servers notice after some
// ticks.
func (e *Ensemble) Cut(i, j int) {
	e.tb.Helper()
	e.link(i, j, e.front.Cut, e.cluster.Cut)
}

// Heal ends a Cut. The connections that lived through it have lost bytes and
// are reset; new ones work. It takes effect at once; see WaitReady for when
// the servers have found each other again.
func (e *Ensemble) Heal(i, j int) {
	e.tb.Helper()
	e.link(i, j, e.front.Heal, e.cluster.Heal)
}

// HealAll heals all links that are cut.
func (e *Ensemble) HealAll() {
	e.tb.Helper()
	for i := 1; i <= e.cluster.Size(); i++ {
		e.check(e.front.Heal(i))
	}
	if !e.shared {
		e.check(e.cluster.HealAll())
	}
}

// Reset resets the connections between servers i and j, or, when i or j is
// Client, between server and clients, and waits until they are gone. New ones
// work.
func (e *Ensemble) Reset(i, j int) {
	e.tb.Helper()
	e.link(i, j, e.front.Reset, e.cluster.Reset)
}

// ResetEnd resets server i's ends of its connections with server j. Server j
// learns of it, except while the link between the two is cut: j then goes on
// believing in connections that are gone. Two followers whose ends are reset
// behind a cut elect a new leader at once, and the old leader goes on for
// syncLimit ticks.
func (e *Ensemble) ResetEnd(i, j int) {
	e.tb.Helper()
	e.check(e.cluster.ResetEnd(i, j))
}

// Depose cuts the leader off from the other servers, which notice and elect another
// leader, and returns the number of the old one when they have. For syncLimit ticks
// and up to a tick more the old leader does not notice: it answers reads, pings, syncs
// and reconnects, and commits nothing. Then it closes its connections. HealAll ends
// the cut.
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

// SetProperty sets a line of the zoo.cfg of server i, from its next start on: a
// rolling restart changes the servers one by one.
func (e *Ensemble) SetProperty(i int, key, value string) {
	e.tb.Helper()
	e.check(e.cluster.SetProperty(i, key, value))
}

// Delay has each byte take d longer between servers i and j, or, when i or j
// is Client, between server and clients: a round trip takes 2d longer. Zero
// ends the delay.
func (e *Ensemble) Delay(i, j int, d time.Duration) {
	e.tb.Helper()
	e.link(i, j,
		func(i int) error { return e.front.Delay(i, d) },
		func(i, j int) error { return e.cluster.Delay(i, j, d) })
}

// LastSent returns when server i last sent server j anything but election
// messages, and the zero time if it never did. If i or j is Client, it is the time
// when a client last sent the server anything by way of this Ensemble's links.
func (e *Ensemble) LastSent(i, j int) time.Time {
	e.tb.Helper()
	var at time.Time
	e.link(i, j,
		func(j int) (err error) { at, err = e.front.LastSent(j); return err },
		func(i, j int) (err error) { at, err = e.cluster.LastSent(i, j); return err })
	return at
}

// link does something to the link between i and j.
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

// Leader returns the number of the server that leads at present, or 0. Of two
// that believe they do, as when one was cut off or paused, it is that which
// was elected later. A single server leads.
func (e *Ensemble) Leader() int {
	ctx, cancel := realContext(context.Background())
	defer cancel()
	return e.cluster.Leader(ctx)
}

// Followers returns the numbers of the servers that follow, in order.
func (e *Ensemble) Followers() []int {
	ctx, cancel := realContext(context.Background())
	defer cancel()
	return e.cluster.Followers(ctx)
}

// WaitLeader waits for a leader that is none of those named, and returns its
// number: after a leader was killed, paused or cut off, name it.
func (e *Ensemble) WaitLeader(not ...int) int {
	e.tb.Helper()
	ctx, cancel := realContext(context.Background())
	defer cancel()
	leader, err := e.cluster.WaitLeader(ctx, not...)
	e.check(err)
	return leader
}

// WaitReady waits until all servers that are neither killed nor paused serve,
// as one leader and its followers in step.
func (e *Ensemble) WaitReady() {
	e.tb.Helper()
	ctx, cancel := realContext(context.Background())
	defer cancel()
	e.check(e.cluster.WaitReady(ctx))
}
