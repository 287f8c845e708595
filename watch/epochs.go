package watch

// epochs tell a mirror when all sides that were asked at some moment have been
// answered; sides that were asked later do not count. The answer to a sync begins
// another epoch, and so does a session. A side belongs to the epoch in which it became
// asked, until it is answered; the sides of a new child belong to the epoch of the list
// that named the child.
type epochs struct {
	now    uint64
	oldest uint64         // all earlier epochs are complete
	open   map[uint64]int // the number of sides that are asked, by epoch; without the epochs that have none
}

func (e *epochs) asked(epoch uint64) { e.open[epoch]++ }

func (e *epochs) answered(epoch uint64) {
	// While a server refuses a read again and again, no epoch is complete, and each sync begins another one.
	if e.open[epoch]--; e.open[epoch] == 0 {
		delete(e.open, epoch)
	}
}

// next ends the present epoch and returns it.
func (e *epochs) next() (ended uint64) {
	e.now++
	return e.now - 1
}

// complete reports whether no side is asked of this epoch, which has ended, or an older one.
// It must not be called while a delivery is being applied: the delivery answers a side, and
// then asks others of the same epoch.
func (e *epochs) complete(epoch uint64) bool {
	for e.oldest <= epoch && e.open[e.oldest] == 0 {
		e.oldest++
	}
	return e.oldest > epoch
}

// restart forgets all sides, which are about to be asked again, and begins an epoch for them.
// The caller must end this epoch, by next, when it has asked them.
func (e *epochs) restart() { e.oldest, e.open = e.now, make(map[uint64]int) }
