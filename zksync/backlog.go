package zksync

import "slices"

// A backlog is the local list of the messages of one directory that are known to
// wait, in order. It is filled by a listing and drained from memory, so that the cost
// of a message does not depend on how many wait. It does no locking.
type backlog struct {
	listed   []queueItem // the messages of a listing, without the messages taken already
	returned []queueItem // messages that came back later, in order; few
}

func (b *backlog) len() int { return len(b.listed) + len(b.returned) }

// replace replaces the backlog by a listing, which is in order.
func (b *backlog) replace(items []queueItem) { b.listed, b.returned = items, nil }

// first is the message to be taken next.
func (b *backlog) first() (queueItem, bool) {
	switch {
	case len(b.returned) > 0 && (len(b.listed) == 0 || compareItems(b.returned[0], b.listed[0]) <= 0):
		return b.returned[0], true
	case len(b.listed) > 0:
		return b.listed[0], true
	}
	return queueItem{}, false
}

// pop removes the first message.
func (b *backlog) pop() (queueItem, bool) {
	it, ok := b.first()
	if len(b.returned) > 0 && compareItems(b.returned[0], it) == 0 {
		b.returned = b.returned[1:]
	}
	if len(b.listed) > 0 && compareItems(b.listed[0], it) == 0 {
		b.listed[0] = queueItem{}
		b.listed = b.listed[1:]
	}
	return it, ok
}

// insert puts a message back in its place.
func (b *backlog) insert(it queueItem) {
	if i, found := slices.BinarySearchFunc(b.returned, it, compareItems); !found {
		b.returned = slices.Insert(b.returned, i, it)
	}
}

// countDue counts the messages that are due, in milliseconds since 1970.
func (b *backlog) countDue(now int64) int {
	count := func(items []queueItem) int {
		n, _ := slices.BinarySearchFunc(items, now, func(it queueItem, now int64) int {
			if it.due <= now {
				return -1
			}
			return 1
		})
		return n
	}
	return count(b.listed) + count(b.returned)
}
