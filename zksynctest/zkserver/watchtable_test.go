package zkserver

import "testing"

// The count of recursive watches goes back to zero when the last one is gone. Without recursive watches a server need
// not walk up to the root at a change.
func TestRecursiveWatchesAreCounted(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := s.Endpoint(1)
	c := &conn{s: s, ep: e, rep: e.rep}
	count := func(want int) {
		t.Helper()
		if n := e.rep.watches[dataWatch].recursive; n != want {
			t.Fatalf("%d recursive watches counted, want %d", n, want)
		}
	}
	s.armMode(c, "/a", recursive)
	s.armMode(c, "/a", recursive)
	s.armMode(c, "/a", persistent)
	s.armMode(c, "/b", recursive)
	count(2)
	s.disarm(c, dataWatch, "/a", recursive)
	count(1)
	own := s.en.ownReplica(c)
	count(0)
	s.armMode(c, "/c", recursive)
	count(0)
	if n := own.watches[dataWatch].recursive; n != 2 {
		t.Fatalf("%d recursive watches went to the replica of its own, want 2", n)
	}
	other := &conn{s: s, ep: e, rep: e.rep}
	s.armMode(other, "/d", recursive)
	count(1)
	s.dropWatches(other)
	count(0)
	if n := len(e.rep.watches[dataWatch].paths); n != 0 {
		t.Fatalf("%d paths left", n)
	}
}
