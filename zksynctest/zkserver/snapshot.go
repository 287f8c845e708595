package zkserver

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-zksync/toolkit/zksynctest/zkserver/internal/tree"
)

// Snapshot writes the tree, the sessions and the zxid, all as of one moment, for
// [Server.Restore]. Watches and connections are not in it; the passwords of the sessions
// are, with which anybody can take the sessions over. It takes as much memory
// as it writes, about a hundred bytes a znode and its path and data; the server
// waits while it is made, but not while w is written to.
func (s *Server) Snapshot(w io.Writer) error {
	s.mu.Lock()
	b := s.appendSnapshot(nil)
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
	l, err := load(r)
	if err != nil {
		return fmt.Errorf("zkserver: restore a snapshot: %w", err)
	}
	if l.torn {
		return fmt.Errorf("zkserver: restore a snapshot: %w: its end is missing", ErrCorrupt)
	}
	s.mu.Lock()
	err = s.adopt(l.state)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.persist()
}

var errUsed = errors.New("zkserver: restore a snapshot: the server is in use; restore into a new one, before anybody connects")

// adopt makes st the server's.
func (s *Server) adopt(st *state) error {
	unused := s.data.Tree.Size() == tree.NewTree().Size() && s.data.Zxid == 0
	if s.closed || !unused || len(s.sessions) > 0 || len(s.conns) > 0 || s.en.current == nil {
		return errUsed
	}
	s.install(st)
	s.en.leadAgain()
	s.removeOrphans()
	if s.journal != nil {
		s.journal.renew()
	}
	return nil
}

// install takes over what st has, before the server has a leader.
func (s *Server) install(st *state) {
	s.data.Tree, s.data.Zxid, s.data.Epoch = st.tree, st.zxid, st.zxid>>32
	for id, saved := range st.sessions {
		sess := newSession(id, saved.password, saved.timeout)
		s.sessions[id] = sess
		s.traffic.add(sess, s.sessions)
	}
	for _, e := range s.en.endpoints {
		if last, ok := st.lastIDs[byte(e.number)]; ok {
			e.nextID = max(e.nextID, last+1)
		}
	}
}

// removeOrphans removes ephemerals that were to go a little after their session,
// when the server ended.
func (s *Server) removeOrphans() {
	for _, id := range s.data.Tree.Owners() {
		if s.sessions[id] == nil {
			s.removeEphemerals(s.data.Begin(tree.SuperUser, time.Now().UnixMilli(), false), id)
		}
	}
}

// appendSnapshot appends all there is, from the header on. The caller holds mu.
func (s *Server) appendSnapshot(b []byte) []byte {
	b = appendDataHeader(b)
	start := len(b)
	b = beginDataFrame(b)
	b = appendNumber(b, stepZxid, s.data.Zxid)
	for _, e := range s.en.endpoints {
		b = appendNumber(b, stepLastID, e.nextID-1)
	}
	for id, sess := range s.sessions {
		b = appendSession(b, id, sess.password, sess.timeout)
	}
	for n := range s.data.Tree.All() {
		b = tree.AppendStep(b, tree.StepPut, n)
		if len(b)-start > snapshotFrame {
			b = endDataFrame(b, start)
			start = len(b)
			b = beginDataFrame(b)
		}
	}
	b = appendNumber(b, stepComplete, int64(s.data.Tree.Size()-1))
	return endDataFrame(b, start)
}
