package watch

import "testing"

// While a side stays asked, the memory of the epochs does not grow with the syncs that are answered meanwhile, and all
// of them are complete when the side is answered (epochs.go: the delete of answered).
func TestEpochsWhileASideStaysAsked(t *testing.T) {
	var e epochs
	e.restart()
	first := e.now
	e.asked(first)
	last := e.next()
	for range 1000 {
		e.asked(e.now)
		e.answered(e.now)
		last = e.next()
		if e.complete(last) {
			t.Fatalf("epoch %d is complete while a side of epoch %d is asked", last, first)
		}
	}
	if len(e.open) > 1 {
		t.Errorf("%d epochs are kept, want 1", len(e.open))
	}
	if e.answered(first); !e.complete(last) {
		t.Errorf("epoch %d is not complete", last)
	}
}
