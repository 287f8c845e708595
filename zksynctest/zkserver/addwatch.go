package zkserver

import "strings"

// The modes that addWatch can name.
const (
	addPersistent          = 0
	addPersistentRecursive = 1
)

// addWatch leaves a watch that is not used up. Neither the path nor the right to
// it is looked at.
func (s *Server) addWatch(c *conn, r *request) Code {
	switch r.kind {
	case addPersistent:
		s.armMode(c, r.path, persistent)
	case addPersistentRecursive:
		s.armMode(c, r.path, recursive)
	default:
		return ErrMarshalling
	}
	c.reply = appendInt32(c.reply, int32(codeOK)) // the record is an error code of its own
	return codeOK
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
func (s *Server) checkWatches(c *conn, r *request) Code {
	modes, ok := s.modesOf(r.kind)
	if !ok {
		return ErrMarshalling
	}
	if s.cfg.Compat38 && (r.null || r.path != "" && !strings.Contains(r.path, "/")) {
		return ErrMarshalling // it looks for a parent of everything
	}
	if r.null {
		return ErrNoWatcher
	}
	for kind := range modes {
		if c.watches[kind][r.path]&modes[kind] != 0 {
			return codeOK
		}
		if s.cfg.Compat38 && modes[kind] != 0 && c.rep.watches[kind].paths[r.path].size() > 0 {
			return codeOK
		}
	}
	return ErrNoWatcher
}

// removeWatches removes them without an event.
func (s *Server) removeWatches(c *conn, r *request) Code {
	modes, ok := s.modesOf(r.kind)
	if !ok {
		return ErrMarshalling
	}
	if r.null {
		return ErrNoWatcher
	}
	data := s.disarm(c, dataWatch, r.path, modes[dataWatch])
	child := s.disarm(c, childWatch, r.path, modes[childWatch])
	if !data && !child {
		return ErrNoWatcher
	}
	return codeOK
}
