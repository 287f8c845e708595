package zkserver

import (
	"strings"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/jute"
)

// The modes that addWatch can name.
const (
	addPersistent          = 0
	addPersistentRecursive = 1
)

// addWatch leaves a watch that is not used up. Neither the path nor the right to
// it is looked at.
func (s *Server) addWatch(c *conn, r *jute.Request) Code {
	switch r.Kind {
	case addPersistent:
		s.armMode(c, r.Path, persistent)
	case addPersistentRecursive:
		s.armMode(c, r.Path, recursive)
	default:
		return ErrMarshalling
	}
	c.reply = jute.AppendInt32(c.reply, int32(jute.OK)) // the record is an error code of its own
	return jute.OK
}

// armMode arms where a mode of addWatch has its events from: for a recursive watch
// that is the one table that has no events of children.
func (s *Server) armMode(c *conn, path string, mode watchMode) {
	s.arm(c, dataWatch, path, mode)
	if mode != recursive || s.cfg.Compat38 {
		s.arm(c, childWatch, path, mode)
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

// modesOf is what a type of watch means in each of the tables.
func (s *Server) modesOf(kind int32) (modes [2]watchMode, ok bool) {
	if s.cfg.Compat38 {
		switch kind {
		case typeChildren:
			modes[childWatch] = anyMode
		case typeData:
			modes[dataWatch] = anyMode
		case typeAny:
			modes[dataWatch], modes[childWatch] = anyMode, anyMode
		}
		return modes, modes != [2]watchMode{}
	}
	switch kind {
	case typeChildren:
		modes[childWatch] = oneShot
	case typeData:
		modes[dataWatch] = oneShot
	case typeAny:
		modes[dataWatch], modes[childWatch] = anyMode, anyMode
	case typePersistent:
		modes[dataWatch], modes[childWatch] = persistent, persistent
	case typePersistentRecursive:
		modes[dataWatch] = recursive
	}
	return modes, modes != [2]watchMode{}
}

// checkWatches tells whether c has a watch of the type that r names. Before 3.9
// anybody's watch would do.
func (s *Server) checkWatches(c *conn, r *jute.Request) Code {
	modes, ok := s.modesOf(r.Kind)
	if !ok {
		return ErrMarshalling
	}
	if s.cfg.Compat38 && (r.Null || r.Path != "" && !strings.Contains(r.Path, "/")) {
		return ErrMarshalling // it looks for a parent of everything
	}
	if r.Null {
		return ErrNoWatcher
	}
	for kind := range modes {
		if c.watches[kind][r.Path]&modes[kind] != 0 {
			return jute.OK
		}
		if s.cfg.Compat38 && modes[kind] != 0 && c.rep.watches[kind].paths[r.Path].size() > 0 {
			return jute.OK
		}
	}
	return ErrNoWatcher
}

// removeWatches removes them without an event.
func (s *Server) removeWatches(c *conn, r *jute.Request) Code {
	modes, ok := s.modesOf(r.Kind)
	if !ok {
		return ErrMarshalling
	}
	if r.Null {
		return ErrNoWatcher
	}
	data := s.disarm(c, dataWatch, r.Path, modes[dataWatch])
	child := s.disarm(c, childWatch, r.Path, modes[childWatch])
	if !data && !child {
		return ErrNoWatcher
	}
	return jute.OK
}
