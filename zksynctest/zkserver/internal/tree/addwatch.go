package tree

import (
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// The modes that addWatch can name.
const (
	addPersistent          = 0
	addPersistentRecursive = 1
)

// armMode leaves a watch of addWatch in the tables that fire it: a recursive watch has no
// events of children.
func (w *Watches) armMode(c *Client, path string, mode watchMode) {
	w.Arm(c, DataWatch, path, mode)
	if mode != recursive || w.compat38 {
		w.Arm(c, ChildWatch, path, mode)
	}
}

// The types of watch that checkWatches and removeWatches can name.
const (
	typeChildren            = 1
	typeData                = 2
	typeAny                 = 3
	typePersistent          = 4
	typePersistentRecursive = 5
)

// modesOf returns the modes of a type of watch in each of the tables.
func (w *Watches) modesOf(kind int32) (modes [2]watchMode, ok bool) {
	if w.compat38 {
		switch kind {
		case typeChildren:
			modes[ChildWatch] = anyMode
		case typeData:
			modes[DataWatch] = anyMode
		case typeAny:
			modes[DataWatch], modes[ChildWatch] = anyMode, anyMode
		}
		return modes, modes != [2]watchMode{}
	}
	switch kind {
	case typeChildren:
		modes[ChildWatch] = OneShot
	case typeData:
		modes[DataWatch] = OneShot
	case typeAny:
		modes[DataWatch], modes[ChildWatch] = anyMode, anyMode
	case typePersistent:
		modes[DataWatch], modes[ChildWatch] = persistent, persistent
	case typePersistentRecursive:
		modes[DataWatch] = recursive
	}
	return modes, modes != [2]watchMode{}
}

// Add leaves the watch of an addWatch, which is not used up. Neither the path nor the
// rights are checked.
func (w *Watches) Add(c *Client, r *jute.Request) jute.Code {
	switch r.Kind {
	case addPersistent:
		w.armMode(c, r.Path, persistent)
	case addPersistentRecursive:
		w.armMode(c, r.Path, recursive)
	default:
		return jute.ErrMarshalling
	}
	return jute.OK
}

// Check reports whether c has a watch of the type that r names. Before 3.9 a watch of any
// client counted.
func (w *Watches) Check(c *Client, r *jute.Request) jute.Code {
	modes, ok := w.modesOf(r.Kind)
	if !ok {
		return jute.ErrMarshalling
	}
	if w.compat38 && (r.Null || r.Path != "" && !strings.Contains(r.Path, "/")) {
		return jute.ErrMarshalling // it looks for a parent of everything
	}
	if r.Null {
		return jute.ErrNoWatcher
	}
	for kind := range modes {
		if c.has(watchKind(kind), r.Path, modes[kind]) {
			return jute.OK
		}
		if w.compat38 && modes[kind] != 0 && w.tables[kind].paths[r.Path].size() > 0 {
			return jute.OK
		}
	}
	return jute.ErrNoWatcher
}

// Remove removes the watches of c of the type that r names, without an event.
func (w *Watches) Remove(c *Client, r *jute.Request) jute.Code {
	modes, ok := w.modesOf(r.Kind)
	if !ok {
		return jute.ErrMarshalling
	}
	if r.Null {
		return jute.ErrNoWatcher
	}
	data := w.disarm(c, DataWatch, r.Path, modes[DataWatch])
	child := w.disarm(c, ChildWatch, r.Path, modes[ChildWatch])
	if !data && !child {
		return jute.ErrNoWatcher
	}
	return jute.OK
}
