package session

import (
	"fmt"
	"sync"
	"time"

	"github.com/go-zksync/toolkit/session/internal/wire"
)

// maxIdlePace is the longest pause between two requests of a session, and between two steps of
// the keeper, for any session timeout. A connection that is silent for twice as long is closed.
const maxIdlePace = time.Minute

// A keeper makes the requests that keep a session proven, closes a connection that does
// not answer, and ends the session when its deadline passes. The keeper is a goroutine
// that runs from the first handshake to the end of the session. It calls no code of the
// program, such as a logger or a connection of WithDialer, which might block.
type keeper struct {
	m    *shared
	gate *gate
	v    *leases
	wg   *sync.WaitGroup // for the goroutines that close a connection

	progress time.Time // the newest arrival of bytes that leases.heard includes

	// The following fields are guarded by leases.mu.
	beat   uint64    // the connection on which a commit of the keeper is unanswered
	beatAt time.Time // when that commit was sent
	spare  int       // index in alwaysThere of the znode to check if no znode of ours can be checked
	resume time.Time // no commit is made earlier, because the last commit has failed
}

// run keeps the session proven until the session is over. An error ends the session.
func (k *keeper) run() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-k.gate.over.Done():
			return nil
		case <-timer.C:
		case <-k.v.kick:
		}
		wait, err := k.step()
		if err != nil {
			return err
		}
		timer.Reset(wait)
	}
}

// A task is the next action of the keeper: at most one of drop, a commit and a contact.
type task struct {
	drop    func()        // closes the connection
	commit  bool          // send a transaction
	contact bool          // send any request, unless commit is set
	wait    time.Duration // until the next step
}

// step does the task that is due and returns the time until the next step. Its error ends
// the session.
func (k *keeper) step() (wait time.Duration, err error) {
	w := k.gate.current()
	// The plan is made under mu, and carried out without it: to end a connection calls back
	// into the session.
	k.v.mu.Lock()
	k.noteProgress(w)
	now := k.v.now()
	// Ahead of the plan: a machine that was suspended may have missed the deadline by far.
	if err := k.v.expired(now); err != nil {
		k.v.mu.Unlock()
		return 0, err
	}
	t := k.plan(w, now)
	// A lease that is prepared or held meanwhile wakes the keeper if this is too late
	// for it.
	k.v.wake = now.Add(t.wait)
	k.v.mu.Unlock()
	switch {
	case t.drop != nil:
		// In another goroutine: the end of a connection calls the program's logger, and nothing
		// may delay the step that ends the session at its deadline.
		k.wg.Go(t.drop)
	case t.commit:
		k.proveAlive(w)
		k.lookForUnreadable(w)
	case !t.contact:
	// A ping would not notice that the server has lost its leader. The sync also keeps the
	// gap between two leader contacts short, so that a grant need not wait for the end of
	// a lapse.
	case k.m.holds.Load():
		w.Send(syncRoot())
	default:
		w.Send(&wire.Request{Op: wire.OpPing, Own: true})
	}
	return t.wait, nil
}

// plan determines the task for now and the time until the next step; leases.mu is held.
func (k *keeper) plan(w *wire.Conn, now time.Time) (t task) {
	v := k.v
	timeout, active := v.proof.timeout, len(v.open) > 0
	// At these times expired ends the session, with a connection or without one.
	t.wait = v.heard.Add(timeout).Sub(now)
	if v.held > 0 {
		t.wait = min(t.wait, v.proof.deadline.Sub(now))
	}
	if w == nil {
		return t // attach wakes the keeper
	}
	silence, limit := now.Sub(w.LastArrival()), min(timeout*2/3, 2*maxIdlePace)
	if active {
		// The deadline of a holder may be only 0.28 of the timeout ahead.
		silence, limit = w.Unanswered(now), min(timeout/silenceFraction, 2*maxIdlePace)
	}
	if silence >= limit {
		t.drop = func() {
			// If an answer has stopped in the middle, its read may be the reason, and must not
			// break one connection after another.
			w.BlameStall()
			w.End(fmt.Errorf("nothing was answered for %v", w.Unanswered(now)))
		}
		return t
	}
	t.wait = min(t.wait, limit-silence)
	if p, got, ok := w.Arriving(); ok {
		due := k.patience(p, got, now)
		if !due.After(now) {
			t.drop = func() { k.dropSlow(w, p, now) }
			return t
		}
		t.wait = min(t.wait, due.Sub(now))
	}
	if due, ok := k.stuckAt(w); ok {
		if !due.After(now) {
			age := roundTime(now.Sub(k.beatAt))
			t.drop = func() {
				w.End(fmt.Errorf("the transaction that proves the session alive was not answered for %v", age))
			}
			return t
		}
		t.wait = min(t.wait, due.Sub(now))
	}
	// Every request of the session is a contact, so a busy session needs no requests of the
	// keeper between two commits.
	last, leader := w.LastRequest()
	// A hold after idleness relies on the contacts of the idle session. If their pace is p, the next
	// commit that moves the deadline must be answered within 0.7 T - 2p: see leases.grantable.
	pace := min(timeout/idleFraction, maxIdlePace)
	switch {
	case active:
		pace = min(timeout/contactFraction, maxIdlePace)
	case k.m.holds.Load():
		last = leader // reads do not prevent a lapse, which would delay the next grant
	}
	contact := last.Add(pace)
	if t.contact = !contact.After(now); t.contact {
		contact = now.Add(pace)
	}
	t.wait = min(t.wait, contact.Sub(now))
	if active {
		k.planCommit(w, now, &t)
	}
	return t
}
