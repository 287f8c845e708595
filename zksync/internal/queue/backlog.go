package queue

import (
	"cmp"
	"slices"
)

// A backlog is the local list of the messages of one directory that are known to wait,
// in order. A listing fills it, and messages are picked from memory, so that the cost of
// a message does not depend on the length of the queue. It does no locking.
type backlog struct {
	listed   []Item // the messages of a listing that were not picked
	returned []Item // messages that were inserted later, in order; few
}

func (b *backlog) len() int { return len(b.listed) + len(b.returned) }

// replace replaces the backlog by a listing, which is in order.
func (b *backlog) replace(items []Item) { b.listed, b.returned = items, nil }

// first returns the message that pop removes next.
func (b *backlog) first() (Item, bool) {
	switch {
	case len(b.returned) > 0 && (len(b.listed) == 0 || compareItems(b.returned[0], b.listed[0]) <= 0):
		return b.returned[0], true
	case len(b.listed) > 0:
		return b.listed[0], true
	}
	return Item{}, false
}

// pop removes the first message.
func (b *backlog) pop() (Item, bool) {
	it, ok := b.first()
	if len(b.returned) > 0 && compareItems(b.returned[0], it) == 0 {
		b.returned = b.returned[1:]
	}
	// A message that was inserted may be in a later listing, too.
	if len(b.listed) > 0 && compareItems(b.listed[0], it) == 0 {
		// The array of a long listing stays in memory until the next listing, and the name must
		// not.
		b.listed[0] = Item{}
		b.listed = b.listed[1:]
	}
	return it, ok
}

// insert puts a message back into its position.
func (b *backlog) insert(it Item) {
	// The same message may come twice: from the claim table, which says that it was returned,
	// and from the end of a claim of this consumer.
	if i, found := slices.BinarySearchFunc(b.returned, it, compareItems); !found {
		b.returned = slices.Insert(b.returned, i, it)
	}
}

// countDue counts the messages that are due at a time, in milliseconds since 1970.
func (b *backlog) countDue(now int64) int {
	count := func(items []Item) int {
		// Each pick counts, so the cost must not grow with the length of the queue.
		n, _ := slices.BinarySearchFunc(items, now+1, func(it Item, due int64) int { return cmp.Compare(it.Due, due) })
		return n
	}
	return count(b.listed) + count(b.returned)
}
