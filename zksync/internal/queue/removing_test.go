package queue

import "testing"

// A consumer remembers the last messages of Chan that it could not remove, and a message that comes again counts as
// one message.
func TestRemovingForgetsTheOldest(t *testing.T) {
	var r removing
	nth := func(i int) message { return message{Item: Item{Name: itemName(i)}} }
	for range 2 {
		for i := range maxRemoving {
			r.add(nth(i), int64(i))
		}
	}
	for i := range maxRemoving {
		if !r.has(nth(i), int64(i)) {
			t.Fatalf("message %d of %d is forgotten", i, maxRemoving)
		}
	}
	// Message 0 comes again under another session, and then a new message comes.
	r.add(nth(0), 0)
	r.add(nth(maxRemoving), maxRemoving)
	for i, want := range map[int]bool{0: true, 1: false, 2: true, maxRemoving: true} {
		if r.has(nth(i), int64(i)) != want {
			t.Errorf("message %d is remembered: %v, want %v", i, !want, want)
		}
	}
}
