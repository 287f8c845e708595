package zksync

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Group is the set of members that have joined it at a path and are alive. A member is
// an ephemeral znode, path/id, with the member's data, so that any client in any language
// can read the directory. A process need not be a member to list or watch the members.
type Group struct {
	_ noCopy
	primitive
}

// NewGroup returns the group at path. The first Join creates the directory.
func NewGroup(m *session.Manager, path string, opts ...GroupOption) *Group {
	return &Group{primitive: newPrimitive("Group", m, path, opts)}
}

// A Member is a member of a Group: the membership that Join returns, or a member that
// Members and Watch list. The Member of Join has only ID and methods.
type Member struct {
	ID      string
	Data    []byte
	Session int64 // the id of the session that owns its znode
	Token   int64 // the czxid of its znode: greater after the member has left and joined again

	changed int64 // the mzxid of its znode
	own     *session.Ephemeral
}

// Join makes this process a member with the given id, until Leave or the end of the
// Manager: the membership is renewed under every new session, and when another client
// removes the znode. If the id exists already, Join fails with ErrIDTaken, even if the
// znode is from an earlier run of this process whose session has not ended. With the
// option WithIDWait, Join waits until that znode is deleted. When ctx ends first, this
// process is no member, and the error names the owner of the other znode. An id that cannot be
// the name of a znode fails with session.ErrInvalidPath.
func (g *Group) Join(ctx context.Context, id string, data []byte) (*Member, error) {
	path, err := znode.Join(g.path, id), g.invalid()
	switch {
	case err != nil:
	case id == "" || strings.Contains(id, "/"):
		err = fmt.Errorf(`%w: the id %q cannot name a znode, want one as "node-1"`, session.ErrInvalidPath, id)
	default:
		err = session.CheckPath(path)
	}
	if err != nil {
		return nil, g.opError("join", err)
	}
	own, err := g.join(ctx, path, data)
	if err != nil {
		return nil, opError("join", path, withoutOp(err))
	}
	return &Member{ID: id, own: own}, nil
}

func (g *Group) join(ctx context.Context, path string, data []byte) (*session.Ephemeral, error) {
	own, err := g.m.Ephemeral(ctx, path, data)
	if err != nil {
		return nil, err
	}
	var absent <-chan time.Time // set while the znode is absent
	for {
		select {
		case st, ok := <-own.Status():
			absent = nil
			switch {
			case !ok:
				return nil, own.Err()
			case st == session.Present:
				return own, nil
			case st == session.Conflict && !g.cfg.idWait:
				err := own.Err()
				if session.ClassOf(err) != session.ClassNodeExists {
					continue // the id has become free, and the next status has followed
				}
				own.Discard() // there is nothing of ours to remove
				return nil, fmt.Errorf("%w (see WithIDWait): %w", ErrIDTaken, withoutOp(err))
			case st == session.Absent:
				absent = time.After(0)
			}
		case <-absent:
			// The id is free, and the first creation may be refused only now. Status tells of no second
			// reason for the absence.
			switch err := own.Err(); session.ClassOf(err) {
			case session.ClassNoAuth, session.ClassFinal, session.ClassTooLarge:
				own.Discard()
				return nil, err
			}
			absent = time.After(time.Second)
		case <-ctx.Done():
			reason := own.Err()
			// Before Join returns: the next Join would find this Ephemeral in its way. There is no wait,
			// since perhaps no server can be reached.
			own.Discard()
			if reason == nil || g.m.State() != session.Connected {
				return nil, g.m.Cancelled(ctx)
			}
			what := "for the znode"
			if session.ClassOf(reason) == session.ClassNodeExists {
				what = "for the id to be free"
			}
			return nil, session.CancelledWaiting(ctx, fmt.Errorf("waiting %s: %w", what, withoutOp(reason)))
		}
	}
}

// withoutOp returns the reason in an error of an Ephemeral. The error of Join has the path already.
func withoutOp(err error) error {
	if e, ok := err.(*Error); ok {
		return e.Err
	}
	return err
}

var errListed = fmt.Errorf("%w: the Member was listed, want one that Join returned", ErrNotHeld)

// Leave ends the membership, and returns when the znode or its session is gone. If that
// takes longer than the session timeout, Leave returns an error, and goes on in the
// background. Leaving again does nothing. It fails with ErrNotHeld for a Member that was
// listed.
func (m *Member) Leave() error {
	if m.own == nil {
		return opError("leave", m.ID, errListed)
	}
	return m.own.Close()
}

// Set changes the data of a membership; see session.Ephemeral.Set. It fails with
// ErrNotHeld for a Member that was listed.
func (m *Member) Set(ctx context.Context, data []byte) error {
	if m.own == nil {
		return opError("set", m.ID, errListed)
	}
	return m.own.Set(ctx, data)
}

// Status reports each change of the znode of a membership since Join, which has returned when the
// znode was present: see session.Ephemeral.Status. The channel is nil for a Member that was listed.
func (m *Member) Status() <-chan session.EphemeralStatus {
	if m.own == nil {
		return nil
	}
	return m.own.Status()
}

// Members returns the members, as of the time of the call, sorted by id. It reads like
// Mutex.Contenders. It fails if a member has more data than session.WithMaxAnswer, which Watch
// leaves out. Like Watch, it leaves out a znode that this client may not read: servers from 3.8.4
// on do not show whether such a znode is a member.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	if err := g.invalid(); err != nil {
		return nil, g.opError("members", err)
	}
	all, err := znode.ReadCommitted(ctx, g.m, g.path, g.list)
	return all, g.opError("members", err)
}

func (g *Group) list(ctx context.Context, s *session.Session) ([]Member, error) {
	return znode.ListWhole(ctx, s, func() (all []Member, whole bool, err error) {
		names, _, err := znode.Children(ctx, s, g.path)
		if err != nil {
			return nil, false, err
		}
		found, err := znode.FindAll(g.path, names, func(path string) ([]byte, *zk.Stat, error) { return readChild(ctx, s, path) })
		for _, z := range found {
			if isMember(z.Stat) {
				all = append(all, memberOf(z.Name, z.Data, z.Stat))
			}
		}
		return all, len(found) == len(names), err
	})
}

// readChild reads a child of the directory of a group. For a znode that may not be read, it returns
// the Stat of a znode that is no member.
func readChild(ctx context.Context, s *session.Session, path string) ([]byte, *zk.Stat, error) {
	data, stat, err := s.Get(ctx, path)
	switch session.ClassOf(err) {
	case session.ClassOK, session.ClassNoNode:
		return data, stat, err
	case session.ClassNoAuth:
		return nil, &zk.Stat{}, nil
	}
	// The data of another program's znode may be too large.
	ok, stat, failed := s.Exists(ctx, path)
	switch {
	case failed != nil:
		return nil, nil, err
	case !ok:
		return nil, nil, zk.ErrNoNode
	case isMember(stat):
		return s.Get(ctx, path)
	}
	return nil, stat, nil
}

// isMember reports whether a child of the directory is a member: another program may
// have created other znodes there.
func isMember(stat *zk.Stat) bool { return znode.IsSession(stat.EphemeralOwner) }

func memberOf(id string, data []byte, stat *zk.Stat) Member {
	return Member{ID: id, Data: data, Session: stat.EphemeralOwner, Token: stat.Czxid, changed: stat.Mzxid}
}

// Watch reports the members, sorted by id, and then again after each change: when
// a member joins or leaves, or changes its data. A member whose connection breaks
// stays in the list until its session ends. A member that this client may not read, or that has more
// data than session.WithMaxAnswer, is not in the list. A list that was not received is
// replaced by the newest. Behind a list of n members, if these are more than 100, the next list comes
// n times 10 µs later at the earliest, with all changes until then. The lists belong to the receiver.
//
// Lost connections and sessions of the watching process only delay the stream. The
// stream ends with ctx, when the Manager is closed, and when the path is invalid or
// may not be read; its Err is a *watch.EndError with the reason.
func (g *Group) Watch(ctx context.Context) *watch.Stream[[]Member] {
	return watch.NewStream(ctx, "group", g.path, func(ctx context.Context, report func([]Member, any)) error {
		if err := g.invalid(); err != nil {
			return err
		}
		return g.follow(ctx, report)
	})
}

// follow reports the members until ctx or the mirror of the group ends.
func (g *Group) follow(ctx context.Context, report func([]Member, any)) error {
	ctx, cancel := context.WithCancel(ctx)
	tree := watch.Tree(ctx, g.m, g.path)
	defer func() {
		cancel()
		for range tree.Events() { // until nothing of the mirror is left
		}
	}()
	if err := tree.WaitSynced(ctx); err != nil {
		return err
	}
	known := make(map[string]Member)
	names, _ := tree.Children(g.path)
	for _, id := range names {
		g.note(known, tree, id)
	}
	changed := true
	var rest <-chan time.Time // fires at the earliest time of the next list; nil from then on
	for {
		if changed && rest == nil {
			report(sorted(known), nil)
			changed = false
			if len(known) > smallGroup {
				rest = time.After(time.Duration(len(known)) * listRest)
			}
		}
		select {
		case ev, more := <-tree.Events():
			if !more {
				if changed {
					report(sorted(known), nil)
				}
				return tree.Err()
			}
			changed = g.note(known, tree, znode.Base(ev.Path)) || changed
		case <-rest:
			rest = nil
		}
	}
}

// listRest is the time for each member of a list during which Watch merges changes. A list costs
// about a microsecond for each member: without a rest, n members that join one after the other
// would cost n lists of up to n members, and the receiver would get old lists. The lists of a
// smallGroup cost little, and nobody has to wait for them.
const (
	listRest   = 10 * time.Microsecond
	smallGroup = 100
)

// note updates the known state of one member, and reports whether the state has
// changed. The group's own directory is no member.
func (g *Group) note(known map[string]Member, tree *watch.Cache, id string) bool {
	before, was := known[id]
	st, is := tree.Get(znode.Join(g.path, id))
	if !is || !isMember(&st.Stat) {
		delete(known, id)
		return was
	}
	known[id] = memberOf(id, st.Data, &st.Stat)
	return !was || before.Token != known[id].Token || before.changed != known[id].changed
}

func sorted(known map[string]Member) []Member {
	all := make([]Member, 0, len(known))
	for _, m := range known {
		m.Data = slices.Clone(m.Data)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return all
}
