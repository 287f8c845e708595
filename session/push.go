package session

// maxUnseen is the largest number of values that push leaves for a reader: a kept value
// and a later value.
const maxUnseen = 2

// push puts next into a reader's channel, which has a buffer of maxUnseen. It replaces a
// value that was not received. A kept value is not replaced: it stays, once, for the
// reader. Only one goroutine at a time may push into a channel.
func push[T comparable](ch chan T, next, kept T) {
	var unseen []T
	for len(ch) > 0 {
		select {
		case old := <-ch:
			unseen = append(unseen, old)
		default: // the reader has received the value meanwhile
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
		return unseen[:last] // the older kept value suffices
	default:
		unseen[last] = next
		return unseen
	}
}
