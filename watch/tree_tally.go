package watch

import "slices"

// A tally tells when everything has been read that was to be read at some
// moment, whatever else has come up since. What is to be read belongs to an
// epoch, and an epoch ends when somebody waits for it.
type tally struct {
	epoch   uint64
	open    map[uint64]int // how much is to be read, by epoch
	waiters []tallyWaiter
}

type tallyWaiter struct {
	epoch uint64
	done  chan struct{}
}

func (t *tally) add(epoch uint64) {
	if t.open == nil {
		t.open = make(map[uint64]int)
	}
	t.open[epoch]++
}

func (t *tally) done(epoch uint64) {
	if t.open[epoch]--; t.open[epoch] == 0 {
		delete(t.open, epoch)
		t.settle()
	}
}

// settle lets those go who wait for nothing any more.
func (t *tally) settle() {
	if len(t.waiters) == 0 {
		return
	}
	oldest := t.epoch + 1
	for epoch := range t.open {
		oldest = min(oldest, epoch)
	}
	t.waiters = slices.DeleteFunc(t.waiters, func(w tallyWaiter) bool {
		if w.epoch < oldest {
			close(w.done)
			return true
		}
		return false
	})
}

// wait returns a channel that is closed when all has been read that is open at
// present.
func (t *tally) wait() <-chan struct{} {
	w := tallyWaiter{t.epoch, make(chan struct{})}
	t.epoch++
	t.waiters = append(t.waiters, w)
	t.settle()
	return w.done
}

// forget is for a waiter that has gone.
func (t *tally) forget(done <-chan struct{}) {
	t.waiters = slices.DeleteFunc(t.waiters, func(w tallyWaiter) bool { return w.done == done })
}

// restart forgets what is open, for it will be read anew. What is added as of
// epoch 0 is waited for by everybody.
func (t *tally) restart() { t.open = nil }
