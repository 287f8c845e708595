package zkserver

import (
	"iter"
	"slices"
)

// watchers are the connections that watch a path, in the order in which they began
// to: a defined order makes runs repeatable. Among many, one is found by at and
// leaves a gap, so that a crowd that leaves one by one costs no more than it did to
// come.
type watchers struct {
	list []*conn       // a gap is nil
	gaps int           // none while at is nil
	at   map[*conn]int // where each is in list; nil until one leaves a long list
}

// longList is from what length on a list is not searched.
const longList = 32

func (w watchers) size() int { return len(w.list) - w.gaps }

func (w *watchers) add(c *conn) {
	if w.at != nil {
		w.at[c] = len(w.list)
	}
	w.list = append(w.list, c)
}

func (w *watchers) remove(c *conn) {
	if w.at == nil && len(w.list) < longList {
		if i := slices.Index(w.list, c); i >= 0 {
			w.list = slices.Delete(w.list, i, i+1)
		}
		return
	}
	if w.at == nil {
		w.at = make(map[*conn]int, len(w.list))
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
		w.filter(func(*conn) bool { return true })
		w.list = slices.Clone(w.list) // a crowd that was here once is not for ever
	}
}

// filter shows stays all of them in order, and closes the gaps that are left.
func (w *watchers) filter(stays func(*conn) bool) {
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

func (w watchers) all() iter.Seq[*conn] {
	return func(yield func(*conn) bool) {
		for _, c := range w.list {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}
