package zkserver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/journal"
	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// Errors of data that [Server.Snapshot] or a server with [Config.DataFile] wrote.
var (
	// ErrCorrupt reports data that are damaged, or that this package did not write.
	ErrCorrupt = journal.ErrCorrupt
	// ErrNewerFormat reports data that a later version of this package wrote.
	ErrNewerFormat = journal.ErrNewerFormat
)

// Snapshot writes the tree, the sessions and the zxid, all as of one moment, for
// [Server.Restore]. Watches and connections are not in it; the passwords of the sessions
// are, with which anybody can take the sessions over. It takes as much memory
// as it writes, about a hundred bytes a znode and its path and data; the server
// waits while it is made, but not while w is written to.
func (s *Server) Snapshot(w io.Writer) error {
	s.mu.Lock()
	b := s.state().AppendTo(nil)
	s.mu.Unlock()
	_, err := w.Write(b)
	return err
}

// Restore gives the server what [Server.Snapshot] has written. The server must be
// as [New] or [NewEnsemble] made it: with an error nothing has changed. Sessions
// have their full timeout from now, and go if nobody takes them up again. An
// ensemble begins a new epoch.
//
// Errors are those of r, and ErrCorrupt or ErrNewerFormat with what is wrong.
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

var errUsed = errors.New("zkserver: restore a snapshot: the server is in use; restore into a new one, before anybody connects")

// adopt makes st the server's.
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

// install takes over what st has, before the server has a leader.
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

// removeOrphans removes ephemerals that were to go a little after their session,
// when the server ended.
func (s *Server) removeOrphans() {
	for _, id := range s.data.Tree.Owners() {
		if s.sessions.byID[id] == nil {
			s.removeEphemerals(s.data.Begin(tree.SuperUser, time.Now().UnixMilli(), false), id)
		}
	}
}

// state is the part of the server that outlives it. The caller holds mu, and the state
// is valid for as long.
func (s *Server) state() *journal.State {
	st := journal.NewState()
	st.Tree, st.Zxid = s.data.Tree, s.data.Zxid
	for _, e := range s.en.endpoints {
		st.LastIDs[byte(e.number)] = e.nextID - 1
	}
	for id, sess := range s.sessions.byID {
		st.Sessions[id] = journal.Session{Password: sess.password, Timeout: sess.timeout}
	}
	return st
}

// persist returns when all that happened is in the data file, if there is one. If
// that fails, the server stops, because it must not tell a client of a change that it will
// not remember.
func (s *Server) persist() error {
	err := s.journal.Flush()
	if err != nil {
		s.Stop()
	}
	return err
}
