package tree

import (
	"iter"
	"slices"
)

// watchers are the clients that watch a path, in the order in which they began to: a
// defined order makes runs repeatable. In a long list at finds a client, and a client that
// leaves the list leaves a gap. So n clients leave in a time that is proportional to n.
type watchers struct {
	list []*Client       // a gap is nil
	gaps int             // none while at is nil
	at   map[*Client]int // the index of each client in list; nil until a client leaves a long list
}

// longList is the length from which on a list is not searched.
const longList = 32

func (w watchers) size() int { return len(w.list) - w.gaps }

func (w *watchers) add(c *Client) {
	if w.at != nil {
		w.at[c] = len(w.list)
	}
	w.list = append(w.list, c)
}

func (w *watchers) remove(c *Client) {
	if w.at == nil && len(w.list) < longList {
		if i := slices.Index(w.list, c); i >= 0 {
			w.list = slices.Delete(w.list, i, i+1)
		}
		return
	}
	if w.at == nil {
		w.at = make(map[*Client]int, len(w.list))
		for i, c := range w.list {
			w.at[c] = i
		}
	}
	i, ok := w.at[c]
	if !ok {
		return
	}
	delete(w.at, c)
	w.list[i] = nil
	if w.gaps++; w.gaps > len(w.list)/2 {
		w.filter(func(*Client) bool { return true })
		w.list = slices.Clone(w.list) // to free the room of a crowd that has left
	}
}

// filter keeps the clients for which stays returns true, and closes the gaps. It calls
// stays for each client in order.
func (w *watchers) filter(stays func(*Client) bool) {
	kept := w.list[:0]
	for _, c := range w.list {
		if c != nil && stays(c) {
			kept = append(kept, c)
		}
	}
	if len(kept) < len(w.list) {
		clear(w.list[len(kept):])
		*w = watchers{list: kept}
	}
}

func (w watchers) all() iter.Seq[*Client] {
	return func(yield func(*Client) bool) {
		for _, c := range w.list {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}
