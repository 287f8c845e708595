package watch_test

import (
	"context"
	"maps"
	"slices"
	"time"
)

// waitSynced calls WaitSynced. When it returns, each path shows a state that the
// path had at the call, or a later one.
func (sim *simulation) waitSynced() {
	least := sim.truth.now()
	sim.say("WaitSynced begins")
	sim.waits.Go(func() {
		ctx, cancel := context.WithTimeout(sim.ctx, time.Hour) // no fault lasts for so long
		defer cancel()
		if err := sim.cache.WaitSynced(ctx); err != nil {
			if sim.ctx.Err() == nil {
				sim.fail("WaitSynced: %v", err)
			}
			return
		}
		sim.say("WaitSynced ends")
		for path, number := range least {
			history := sim.truth.history(path)
			state := shown(sim.cache.Get(path))
			if !slices.Contains(history[number:], state) {
				sim.fail("after WaitSynced %s shows %s, older than the state at the call: %v", sim.truth.short(path), state, history[number:])
			}
		}
		sim.mu.Lock()
		defer sim.mu.Unlock()
		sim.counts.synced++
	})
}

// look checks the invariants that hold at any time: each reader shows states that
// existed, and never an older one after a newer one.
func (sim *simulation) look() {
	for path := range sim.truth.now() {
		sim.lookAt(path)
	}
	sim.node.read(sim)
	sim.list.read(sim)
	if sim.rnd.IntN(3) == 0 {
		for range sim.rnd.IntN(20) {
			sim.receive()
		}
	}
	if err := sim.cache.Err(); err != nil {
		sim.fail("the Cache has ended: %v", err)
	}
}

func (sim *simulation) lookAt(path string) {
	state := shown(sim.cache.Get(path))
	at := sim.seen[path]
	if at == nil {
		at = new(progress)
		sim.seen[path] = at
	}
	if history := sim.truth.history(path); !advance(at, history, func(s string) bool { return s == state }) {
		sim.fail("the tree shows %s of %s, after %s of %v", state, sim.truth.short(path), history[*at], history)
	}
}

// receive applies an event of the Cache to the replica, unless no event is pending.
func (sim *simulation) receive() bool {
	select {
	case ev, open := <-sim.cache.Events():
		if !open {
			return false
		}
		sim.counts.events++
		if wrong := sim.replica.check(sim.truth.root, ev); wrong != "" {
			sim.fail("%s", wrong)
		}
		return true
	case <-time.After(time.Nanosecond):
		return false
	}
}

// rest heals everything and checks that all readers come to show the present
// state, with the watches that this takes and no more.
func (sim *simulation) rest() {
	sim.say("rest")
	sim.counts.rests++
	sim.net.Disarm()
	sim.healAll()
	sim.srv.RemoveFaults()
	time.Sleep(10 * simTimeout)
	sim.waits.Wait()
	for sim.receive() {
	}
	want := sim.truth.contents()
	if got := mirrored(sim.cache, sim.truth.root); !maps.Equal(got, want) || sim.cache.Len() != len(want) {
		sim.fail("at rest the tree of %d znodes is not the server's of %d:\n%s", sim.cache.Len(), len(want), difference(got, want))
	}
	if got := sim.replica.data(); !maps.Equal(got, want) {
		sim.fail("at rest the events add up to another tree than the server's:\n%s", difference(got, want))
	}
	sim.node.read(sim)
	if history := sim.truth.history(sim.truth.root); sim.node.last != history[len(history)-1] {
		sim.fail("at rest Node shows %s of %v", sim.node.last, history)
	}
	sim.list.read(sim)
	if history := sim.truth.listHistory(sim.truth.root); !sameList(sim.list.last, history[len(history)-1]) {
		sim.fail("at rest Children shows %v of %v", sim.list.last, history)
	}
	if n, most := sim.srv.Watches(), 2*sim.cache.Len()+64; n > most {
		sim.fail("at rest there are %d watches for %d znodes, %d at most", n, sim.cache.Len(), most)
	}
}
