package zkserver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// Errors about data that [Server.Snapshot] or a server with [Config.DataFile] wrote.
var (
	// ErrCorrupt reports data that is damaged or that this package did not write.
	ErrCorrupt = journal.ErrCorrupt
	// ErrNewerFormat reports data that a later version of this package wrote.
	ErrNewerFormat = journal.ErrNewerFormat
)

// Snapshot writes the tree, the sessions and the zxid, all as of one moment, for [Server.Restore].
// The snapshot has no watches and connections, but it has the passwords of the sessions, with which
// any client can take the sessions over. Snapshot takes as much memory as it writes: for each znode
// about a hundred bytes, its path and its data. The server waits while the snapshot is built, but
// not while w is written to.
func (s *Server) Snapshot(w io.Writer) error {
	s.mu.Lock()
	b := s.state().AppendTo(nil)
	s.mu.Unlock()
	_, err := w.Write(b)
	return err
}

// Restore loads a snapshot of [Server.Snapshot]. The server must be unchanged since [New] or
// [NewEnsemble]. Sessions get their full timeout from now on, and expire if no client resumes them.
// An ensemble begins a new epoch.
//
// Restore returns the errors of r, and errors that wrap ErrCorrupt or ErrNewerFormat. If Restore
// returns an error, the server is unchanged.
func (s *Server) Restore(r io.Reader) error {
	st, err := journal.ReadSnapshot(r)
	if err != nil {
		return fmt.Errorf("zkserver: restore a snapshot: %w", err)
	}
	s.mu.Lock()
	err = s.adopt(st)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.persist()
}

var errUsed = errors.New("zkserver: restore a snapshot: the server is in use; restore into a new one, before a client connects")

// adopt makes st the state of the server.
func (s *Server) adopt(st *journal.State) error {
	unused := s.data.Tree.Size() == tree.NewTree().Size() && s.data.Zxid == 0
	if s.closed || !unused || len(s.sessions.byID) > 0 || len(s.conns.open) > 0 || s.en.current == nil {
		return errUsed
	}
	s.install(st)
	s.en.leadAgain()
	s.removeOrphans()
	s.journal.Renew()
	return nil
}

// install sets the state of the server to st, before the server has a leader.
func (s *Server) install(st *journal.State) {
	s.data.Tree, s.data.Zxid, s.data.Epoch = st.Tree, st.Zxid, st.Zxid>>32
	for id, saved := range st.Sessions {
		sess := newSession(id, saved.Password, saved.Timeout)
		s.sessions.byID[id] = sess
		s.sessions.traffic.add(sess, s.sessions.byID)
	}
	for _, e := range s.en.endpoints {
		if last, ok := st.LastIDs[byte(e.number)]; ok {
			e.nextID = max(e.nextID, last+1)
		}
	}
}

// removeOrphans deletes ephemerals of ended sessions whose delayed deletion was pending when the
// server ended.
func (s *Server) removeOrphans() {
	for _, id := range s.data.Tree.Owners() {
		if s.sessions.byID[id] == nil {
			s.removeEphemerals(s.data.Begin(tree.SuperUser, time.Now().UnixMilli(), false), id)
		}
	}
}

// state returns the state of the server that survives a restart. The caller holds mu, and the
// result is valid while mu is held.
func (s *Server) state() *journal.State {
	st := journal.NewState()
	st.Tree, st.Zxid = s.data.Tree, s.data.Latest()
	for _, e := range s.en.endpoints {
		st.LastIDs[byte(e.number)] = e.nextID - 1
	}
	for id, sess := range s.sessions.byID {
		st.Sessions[id] = journal.Session{Password: sess.password, Timeout: sess.timeout}
	}
	return st
}

// persist returns when all changes are in the data file of a durable server. If that fails, persist
// stops the server, because a client must not see a change that the server will not remember.
func (s *Server) persist() error {
	err := s.journal.Flush()
	if err != nil {
		s.Stop()
	}
	return err
}
