package zksync

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Group is a set of members that know of each other: the members that have joined
// it at a path and are alive. A member is an ephemeral znode, path/id, with the
// member's data, so that any client in any language can read the directory.
//
// A Group may be shared by goroutines. A process need not be a member to list or
// watch the members.
type Group struct {
	m    *session.Manager
	path string
	cfg  config
	err  error
}

// NewGroup returns the group at path. The first Join creates the directory. It does
// no I/O and returns no error: an invalid path or option is reported by the first
// call.
func NewGroup(m *session.Manager, path string, opts ...GroupOption) *Group {
	cfg, err := newConfig("Group", opts)
	if err == nil {
		err = session.CheckPath(path)
	}
	return &Group{m: m, path: path, cfg: cfg, err: err}
}

// A Member is one of a Group: as Join returns it, which is the handle of one's own
// membership, or as Members and Watch list it.
type Member struct {
	ID      string
	Data    []byte
	Session int64 // the id of the session by which it is there
	Token   int64 // the czxid of its znode: a member that went and came again has a greater one

	changed int64 // the mzxid of its znode
	own     *session.Ephemeral
}

// Join makes this process a member with the given id, until Leave or the end of the
// Manager: the membership is renewed under every new session, and when another client
// removes the znode. If the id exists already, Join fails with ErrIDTaken, even if an
// earlier run of this process has left the id's znode, which is deleted when the
// earlier run's session ends. With the option WithIDWait, Join waits until the znode
// is deleted, and the reason for the wait is logged after three seconds. When ctx
// ends first, this process is no member, and the error names the owner of the other
// znode. The Member that Join returns has only ID and methods; Members returns all
// fields.
func (g *Group) Join(ctx context.Context, id string, data []byte) (*Member, error) {
	path, err := g.member(id)
	if err != nil {
		return nil, opError("join", g.path, err)
	}
	own, err := g.join(ctx, path, data)
	if err != nil {
		return nil, opError("join", path, err)
	}
	return &Member{ID: id, own: own}, nil
}

func (g *Group) member(id string) (string, error) {
	if g.err != nil {
		return "", g.err
	}
	path := znode.Join(g.path, id)
	if id == "" || strings.Contains(id, "/") {
		return "", fmt.Errorf(`%w: the id %q cannot name a znode, want one as "node-1"`, session.ErrInvalidPath, id)
	}
	return path, session.CheckPath(path)
}

func (g *Group) join(ctx context.Context, path string, data []byte) (*session.Ephemeral, error) {
	own, err := g.m.Ephemeral(ctx, path, data)
	if err != nil {
		return nil, err
	}
	for {
		select {
		case st, ok := <-own.Status():
			switch {
			case !ok:
				return nil, own.Err()
			case st == session.Present:
				return own, nil
			case st == session.Conflict && !g.cfg.idWait:
				err := own.Err()
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					_ = own.Close() // there is nothing of ours to remove
				}()
				select { // so that another Join does not find this one in its way
				case <-closed:
				case <-ctx.Done():
				}
				return nil, fmt.Errorf("%w: %w", ErrIDTaken, err)
			}
		case <-ctx.Done():
			reason := own.Err()
			go own.Close() // it waits for a server that may not be there
			if reason == nil || g.m.State() != session.Connected {
				return nil, g.m.Cancelled(ctx)
			}
			return nil, session.CancelledWaiting(ctx, fmt.Errorf("waiting for the id to be free: %w", reason))
		}
	}
}

// Leave ends the membership: its znode is removed. It returns when the znode is
// gone, or the session is; if that takes longer than the session timeout, with an
// error, and goes on in the background. Leaving again does nothing. A Member that
// was listed cannot be made to leave: that is ErrNotHeld.
func (m *Member) Leave() error {
	if m.own == nil {
		return opError("leave", m.ID, fmt.Errorf("%w: it was listed, not joined by us", ErrNotHeld))
	}
	return m.own.Close()
}

// Set changes the data of our own membership; see session.Ephemeral.Set. A
// Member that was listed cannot be changed: that is ErrNotHeld.
func (m *Member) Set(ctx context.Context, data []byte) error {
	if m.own == nil {
		return opError("set", m.ID, fmt.Errorf("%w: it was listed, not joined by us", ErrNotHeld))
	}
	return m.own.Set(ctx, data)
}

// Status tells whether our own membership is there: see session.Ephemeral.Status.
// It is nil for a Member that was listed.
func (m *Member) Status() <-chan session.EphemeralStatus {
	if m.own == nil {
		return nil
	}
	return m.own.Status()
}

// Members returns who is in the group, as of the time of the call, sorted by
// id. It commits a transaction without effect first (see session.Session.SyncQuorum),
// and is repeated over lost connections and sessions until ctx ends.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	if g.err != nil {
		return nil, opError("members", g.path, g.err)
	}
	var all []Member
	err := g.m.Do(ctx, func(ctx context.Context, s *session.Session) error {
		if err := s.SyncQuorum(ctx, g.path); err != nil {
			return err
		}
		names, _, err := s.Children(ctx, g.path)
		if session.ClassOf(err) == session.ClassNoNode {
			all = nil
			return nil
		}
		if err != nil {
			return err
		}
		found, err := znode.ReadAll(ctx, s, g.path, names)
		all = make([]Member, 0, len(found))
		for _, z := range found {
			all = append(all, Member{ID: z.Name, Data: z.Data, Session: z.Stat.EphemeralOwner, Token: z.Stat.Czxid, changed: z.Stat.Mzxid})
		}
		return err
	})
	return all, opError("members", g.path, err)
}
