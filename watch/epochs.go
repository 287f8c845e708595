package watch

// epochs tell a mirror when all sides that were asked at some moment have been
// answered; sides that were asked later do not count. The answer to a sync begins
// another epoch. A side belongs to the epoch in which it became asked, until it is
// answered; the sides of a new child belong to the epoch of the list that named the
// child.
type epochs struct {
	now  uint64
	open map[uint64]int // the number of sides that are asked, by epoch
}

// firstEpoch is the epoch of the sides that become asked when a session begins:
// every waiter waits for them.
const firstEpoch = 0

func (e *epochs) asked(epoch uint64) {
	if e.open == nil {
		e.open = make(map[uint64]int)
	}
	e.open[epoch]++
}

func (e *epochs) answered(epoch uint64) {
	// complete takes every entry for an epoch with sides to wait for.
	if e.open[epoch]--; e.open[epoch] == 0 {
		delete(e.open, epoch)
	}
}

// next ends the present epoch and returns it.
func (e *epochs) next() (ended uint64) {
	e.now++
	return e.now - 1
}

// complete reports whether no side is asked of this epoch or an older one.
func (e *epochs) complete(epoch uint64) bool {
	for open := range e.open {
		if open <= epoch {
			return false
		}
	}
	return true
}

// restart forgets all sides: they are about to be asked again.
func (e *epochs) restart() { e.open = nil }
