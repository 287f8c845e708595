package enumeration_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const groupPath = "/groups/g"

// member joins as id for a while, and leaves.
func member(s *stage, c *client, id string, stay time.Duration) {
	var m *zksync.Member
	for m == nil && !c.gone() {
		g := zksync.NewGroup(c.manager(), groupPath, zksync.WithIDWait())
		_ = c.do("Join", func(ctx context.Context) (err error) {
			m, err = g.Join(ctx, id, []byte(id))
			return err
		})
	}
	if m == nil {
		return
	}
	c.sleep(stay)
	_ = c.do("Set", func(ctx context.Context) error { return m.Set(ctx, []byte("again")) })
	_ = c.end("Leave", m.Leave, orLater)
}

// probeGroup adds a probe that joins, lists the members and leaves.
func (s *stage) probeGroup() {
	s.probe("membership", func(ctx context.Context, c *client) error {
		g := zksync.NewGroup(c.manager(), groupPath)
		m, err := g.Join(ctx, "a", nil)
		for ; errors.Is(err, zksync.ErrIDTaken) && s.harm()&forbids != 0 && ctx.Err() == nil; m, err = g.Join(ctx, "a", nil) {
			s.pause(while) // the removal of the member that has left was refused, and is tried again now and then
		}
		if err != nil {
			return err
		}
		return m.Leave()
	})
}

var groupScenarios = []*scenario{
	// B watches A join, change its data and leave.
	{name: "group", clients: 2, run: func(s *stage) {
		s.probeGroup()
		a, b := s.clients[0], s.clients[1]
		left := make(chan struct{})
		s.together(
			func() { a.sleep(soon); member(s, a, "a", while); close(left) },
			func() {
				b.follow("Watch", func(ctx context.Context) (func() error, bool) {
					stream := zksync.NewGroup(b.manager(), groupPath).Watch(ctx)
					return stream.Err, until(b, stream.Events(), left,
						func(members []zksync.Member) bool { return len(members) == 0 })
				})
			},
		)
	}},
	// B lists the members while A is one.
	{name: "group-members", clients: 2, run: func(s *stage) {
		s.probeGroup()
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { member(s, a, "a", while) },
			func() {
				b.sleep(2 * soon)
				var all []zksync.Member
				there := s.lasting(groupPath+"/a", func() error {
					return b.do("Members", func(ctx context.Context) (err error) {
						all, err = zksync.NewGroup(b.manager(), groupPath).Members(ctx)
						return err
					})
				})
				if there && len(all) != 1 {
					s.fail("Members returned %d members, want 1", len(all))
				}
			},
		)
	}},
	// An Ephemeral comes back when its session ends by force.
	{name: "ephemeral", clients: 1, pairs: true, run: func(s *stage) {
		c := s.clients[0]
		const path = "/services/a"
		var e *session.Ephemeral
		for e == nil && !c.gone() {
			_ = c.do("Ephemeral", func(ctx context.Context) (err error) {
				e, err = c.manager().Ephemeral(ctx, path, []byte("1"))
				return err
			})
		}
		if e == nil {
			return
		}
		c.sleep(soon)
		first := s.owner(path)
		c.await("a leader that ends the session", func() bool {
			return !errors.Is(s.server.ExpireSession(first), zkserver.ErrNotServing)
		})
		c.await("the Ephemeral to come back", func() bool { now := s.owner(path); return now != 0 && now != first })
		_ = c.do("Set", func(ctx context.Context) error { return e.Set(ctx, []byte("2")) })
		_ = c.end("Close", e.Close, orLater)
	}},
}

// owner returns the session that owns an ephemeral znode, or 0.
func (s *stage) owner(path string) int64 {
	for _, info := range s.server.Sessions() {
		if slices.Contains(info.Ephemerals, path) {
			return info.ID
		}
	}
	return 0
}

// await waits until so returns true, while the client's Manager is open.
func (c *client) await(what string, so func() bool) {
	for end := time.Now().Add(8 * timeout); !so(); c.stage.pause(latency) {
		if c.gone() || c.stage.failed() {
			return
		}
		if time.Now().After(end) {
			c.stage.fail("client %d waits for %s", c.number, what)
			return
		}
	}
}
