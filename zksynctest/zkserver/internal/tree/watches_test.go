package tree

import "testing"

// The count of recursive watches goes back to zero when the last one is gone. Without recursive watches a server need
// not walk up to the root at a change.
func TestRecursiveWatchesAreCounted(t *testing.T) {
	w, own := NewWatches(false), NewWatches(false)
	c := &Client{}
	count := func(want int) {
		t.Helper()
		if n := w.tables[DataWatch].recursive; n != want {
			t.Fatalf("%d recursive watches counted, want %d", n, want)
		}
	}
	w.armMode(c, "/a", recursive)
	w.armMode(c, "/a", recursive)
	w.armMode(c, "/a", persistent)
	w.armMode(c, "/b", recursive)
	count(2)
	w.disarm(c, DataWatch, "/a", recursive)
	count(1)
	w.Detach(c)
	own.Attach(c)
	count(0)
	own.armMode(c, "/c", recursive)
	count(0)
	if n := own.tables[DataWatch].recursive; n != 2 {
		t.Fatalf("%d recursive watches went to the replica of its own, want 2", n)
	}
	other := &Client{}
	w.armMode(other, "/d", recursive)
	count(1)
	w.Drop(other)
	count(0)
	if n := len(w.tables[DataWatch].paths); n != 0 {
		t.Fatalf("%d paths left", n)
	}
}
