package zksync

import (
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A stake has the znodes on which one or more holds rest. They are removed when the
// last of these holds is released. Its pool's mutex guards left.
type stake struct {
	s      *session.Session
	lease  *session.Lease // held
	paths  []string
	guards []*guard // of the znodes
	token  int64

	left     int // holds that have not been released
	owned    int // of these, holds that a Do owns
	unfollow func()
}

// shared reports whether a stake has a hold that no Do owns.
func (st *stake) shared() bool { return st.left > st.owned }

// lost says why the stake is none any more, nil if it is.
func (st *stake) lost() error {
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
func (st *stake) follow(onLoss func(error)) error {
	for _, g := range st.guards {
		if err := g.follow(onLoss); err != nil {
			return err
		}
	}
	var err error
	st.unfollow, err = znode.NotifyLoss(st.s, onLoss)
	return err
}

// close ends everything that belongs to a stake except its znodes.
func (st *stake) close() {
	st.stopGuards()
	st.lease.End()
}

func (st *stake) stopGuards() {
	if st.unfollow != nil {
		st.unfollow()
	}
	for _, g := range st.guards {
		g.stop()
	}
}

// leave gives the stake up without waiting.
func (st *stake) leave() {
	st.close()
	discardAll(st.s, st.paths)
}

// release gives the stake up in order; see removeAll.
func (st *stake) release() error {
	defer st.close()
	st.stopGuards()
	st.lease.Prepare() // nothing is held, but the answer should still come in time
	return removeAll(st.s, st.paths)
}

// stake returns a stake with the znode of a granted place, which is not used any
// more.
func (p *place) stake() *stake {
	return &stake{s: p.s, lease: p.lease, paths: []string{p.path}, guards: []*guard{p.guard}, token: p.token}
}

// takeLease takes the lease away from a place that has been exchanged for the
// znode at path, by which its hold goes on.
func (p *place) takeLease(path string) *session.Lease {
	l := p.lease
	l.Own(path)
	p.lease = p.s.Lease()
	return l
}
