package session

// maxUnseen is the most that push leaves for a reader: a value that is kept, and
// what followed it.
const maxUnseen = 2

// push puts next into a reader's channel, which has room for maxUnseen: it
// replaces what was not received, except that a kept value stays, once, for the
// reader to be told of. Only one goroutine at a time may push into a channel.
func push[T comparable](ch chan T, next, kept T) {
	var unseen []T
	for len(ch) > 0 {
		select {
		case old := <-ch:
			unseen = append(unseen, old)
		default: // its reader was faster
		}
	}
	for _, v := range merge(unseen, next, kept) {
		ch <- v
	}
}

func merge[T comparable](unseen []T, next, kept T) []T {
	last := len(unseen) - 1
	switch {
	case last < 0 || unseen[last] == kept && next != kept:
		return append(unseen, next)
	case last > 0 && next == kept:
		return unseen[:last] // an older one is there to tell
	default:
		unseen[last] = next
		return unseen
	}
}
