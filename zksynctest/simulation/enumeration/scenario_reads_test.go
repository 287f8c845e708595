package enumeration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
)

// readScenarios are of reads that show what was committed before the call, also at a server that
// lags and at a leader that was deposed. They go on for a while after the write: its client may first
// have to find the next leader.
var readScenarios = []*scenario{
	// An operator creates znodes, and the mirror has each of them after WaitSynced.
	{name: "tree-synced", clients: 1, run: func(s *stage) {
		c := s.clients[0]
		s.operator(func() error { return s.server.Create("/w", nil) })
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		tree := watch.Tree(ctx, c.manager(), "/w")
		for i := range 3 {
			c.sleep(while)
			path := fmt.Sprintf("/w/%d", i)
			s.operator(func() error { return s.server.Create(path, nil) })
			if err := c.do("WaitSynced", tree.WaitSynced); err != nil {
				continue
			}
			if _, ok := tree.Get(path); !ok {
				s.fail("the mirror does not have %s after WaitSynced", path)
			}
		}
	}},
	// A joins, and B lists the members.
	{name: "members-synced", clients: 2, run: func(s *stage) {
		s.probeGroup()
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { member(s, a, "a", 2*timeout) },
			func() {
				for range 4 {
					b.sleep(timeout / 2)
					var all []zksync.Member
					there := s.lasting(groupPath+"/a", func() error {
						return b.do("Members", func(ctx context.Context) (err error) {
							all, err = zksync.NewGroup(b.manager(), groupPath).Members(ctx)
							return err
						})
					})
					if there && len(all) == 0 {
						s.fail("client 1: Members does not have the member")
					}
				}
			},
		)
	}},
	// A leads, and B asks who leads.
	{name: "leader-synced", clients: 2, run: func(s *stage) {
		es := withElection(s)
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { es.campaign(a, 2*timeout) },
			func() {
				for range 4 {
					b.sleep(timeout / 2)
					var err error
					there := s.lasting(s.firstIn("/elections/e"), func() error {
						return b.do("Leader", func(ctx context.Context) error {
							if _, err = es.values.of(b).Leader(ctx); errors.Is(err, zksync.ErrNoLeader) {
								return nil
							}
							return err
						})
					})
					if there && err != nil {
						s.fail("client 1: Leader does not know the leader: %v", err)
					}
				}
			},
		)
	}},
	// A closes a gate for a while, and B tries to pass.
	{name: "gate-synced", clients: 2, run: func(s *stage) {
		const path = "/gates/g"
		a, b := s.clients[0], s.clients[1]
		gates := valuesOf(func(_ *client, m *session.Manager) *zksync.Barrier { return zksync.NewBarrier(m, path) })
		s.together(
			func() {
				_ = a.do("Set", gates.of(a).Set)
				a.sleep(2 * timeout)
				s.operator(func() error {
					if _, there := s.server.Get(path); there {
						return s.server.Delete(path)
					}
					return nil
				})
			},
			func() {
				for range 4 {
					b.sleep(timeout / 2)
					if s.lasting(path, func() error { return b.impatiently("Wait", soon, gates.of(b).Wait) }) {
						s.fail("client 1: Wait returned while the gate was closed")
					}
				}
			},
		)
	}},
	// A puts messages, and B looks for the first one.
	looking("queue-peek", "Peek", (*zksync.Queue).Peek),
	// A puts messages, and B tries to take them.
	looking("queue-trytake", "TryTake", (*zksync.Queue).TryTake),
}

// looking returns a scenario of calls that return a message if the queue has any.
func looking(name, what string, get func(*zksync.Queue, context.Context) ([]byte, bool, error)) *scenario {
	return &scenario{name: name, clients: 2, run: func(s *stage) {
		mb := withQueue(s, queueKinds[0])
		a, b := s.clients[0], s.clients[1]
		s.together(
			func() { mb.produce(a, "1"); a.sleep(timeout); mb.put(a, "2") },
			func() {
				for range 4 {
					b.sleep(timeout / 2)
					if data, err := mb.look(b, what, get); data != nil && what != "Peek" {
						mb.took(b, data, err)
					}
				}
			},
		)
	}}
}

// look makes a call, which must return a message if there is one all the time.
func (mb *mailbox) look(c *client, what string, get func(*zksync.Queue, context.Context) ([]byte, bool, error)) (data []byte, err error) {
	there := mb.lasting(mb.firstIn(queuePath), func() error {
		err = c.do(what, func(ctx context.Context) (err error) {
			data, _, err = get(mb.values.of(c).(*zksync.Queue), ctx)
			return err
		}, orUnknown)
		return err
	})
	if there && data == nil {
		mb.fail("client %d: %s does not see the message", c.number, what)
	}
	return data, err
}

// lasting makes a call, and reports whether it has succeeded and the znode at path has existed all
// the time.
func (s *stage) lasting(path string, call func() error) bool {
	_, before := s.server.Get(path)
	owner := s.owner(path)
	if err := call(); err != nil {
		return false
	}
	_, after := s.server.Get(path)
	return before && after && s.owner(path) == owner && s.harm()&(removes|forbids|refuses) == 0
}

// firstIn returns the path of the first sequential znode in a directory, or of the directory.
func (s *stage) firstIn(dir string) string {
	names, _ := s.server.Children(dir)
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "zksync-") || slices.Contains(foreign, name) })
	if len(names) == 0 {
		return dir + "/none"
	}
	return dir + "/" + slices.Min(names)
}
