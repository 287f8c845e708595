package line

import (
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Grant has the znodes on which one or more holds rest. The znodes are deleted when
// the last of these holds is released. The pool's mutex guards left and owned.
type Grant struct {
	s      *session.Session
	lease  *session.Lease // held
	paths  []string
	guards []*holdGuard // of the znodes
	token  int64

	left     int // holds that have not been released
	owned    int // of these, holds that a Do owns
	unfollow func()
}

// Session returns the session on which the grant depends.
func (st *Grant) Session() *session.Session { return st.s }

// shared reports whether a grant has a hold that no Do owns.
func (st *Grant) shared() bool { return st.left > st.owned }

// lost returns the loss of the grant, nil if it is not lost.
func (st *Grant) lost() error {
	if err := znode.SessionLost(st.s); err != nil {
		return err
	}
	for _, g := range st.guards {
		if err := g.lost(); err != nil {
			return err
		}
	}
	return nil
}

// follow sets the function to call at a loss. If the loss has happened already,
// follow returns it.
func (st *Grant) follow(onLoss func(error)) error {
	for _, g := range st.guards {
		if err := g.follow(onLoss); err != nil {
			return err
		}
	}
	var err error
	st.unfollow, err = znode.NotifyLoss(st.s, onLoss)
	return err
}

// close stops the guards and ends the lease. The znodes stay.
func (st *Grant) close() {
	st.stopGuards()
	st.lease.End()
}

func (st *Grant) stopGuards() {
	if st.unfollow != nil {
		st.unfollow()
	}
	for _, g := range st.guards {
		g.stop()
	}
}

// leave deletes the znodes in the background.
func (st *Grant) leave() {
	st.close()
	discardAll(st.s, st.paths)
}

// release deletes the znodes and waits for the answer; see removeAll.
func (st *Grant) release() error {
	defer st.close()
	st.stopGuards()
	st.lease.Prepare() // nothing is held, but the answer should still come in time
	return removeAll(st.s, st.paths)
}

// toGrant returns a grant with the znode of a granted contender, which is not used any
// more.
func (p *contender) toGrant() *Grant {
	return &Grant{s: p.s, lease: p.lease, paths: []string{p.path}, guards: []*holdGuard{p.guard}, token: p.token}
}

// takeLease takes the lease of a contender that was exchanged for the znode at path. The
// hold goes on by that znode.
func (p *contender) takeLease(path string) *session.Lease {
	l := p.lease
	l.Own(path)
	p.lease = p.s.Lease()
	return l
}
