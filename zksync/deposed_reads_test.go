package zksync_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A call that reports the state as of its time returns no older state at a leader that was deposed and has not noticed:
// the call waits for a leader that commits. To see this test fail, read behind Sync instead of SyncQuorum, or drop
// view.invalidate from TryTake.
func TestReadsAtADeposedLeader(t *testing.T) {
	// A change is what the successor of the deposed leader commits. later, if it is not nil, is another
	// change, which the call waits for.
	type change struct {
		now, later func(ctx context.Context) error
	}
	leads := func(t *testing.T, next *session.Manager) change {
		before := zksync.NewElection(next, path, zksync.WithID("before"))
		if _, err := before.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		return change{now: func(ctx context.Context) error {
			if err := before.Resign(); err != nil {
				return err
			}
			_, err := zksync.NewElection(next, path, zksync.WithID("after")).Campaign(ctx)
			return err
		}}
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, next *session.Manager) change
		read   func(m *session.Manager) func(ctx context.Context) (string, error)
		want   string
	}{
		"Barrier.Wait": {
			func(_ *testing.T, next *session.Manager) change {
				gate := zksync.NewBarrier(next, path)
				return change{now: gate.Set, later: gate.Remove}
			},
			func(m *session.Manager) func(context.Context) (string, error) {
				gate := zksync.NewBarrier(m, path)
				return func(ctx context.Context) (string, error) { return "open", gate.Wait(ctx) }
			},
			"open",
		},
		"Election.Leader": {
			leads,
			func(m *session.Manager) func(context.Context) (string, error) {
				e := zksync.NewElection(m, path)
				return func(ctx context.Context) (string, error) {
					c, err := e.Leader(ctx)
					return c.ID, err
				}
			},
			"after",
		},
		"Election.Candidates": {
			leads,
			func(m *session.Manager) func(context.Context) (string, error) {
				e := zksync.NewElection(m, path)
				return func(ctx context.Context) (string, error) {
					all, err := e.Candidates(ctx)
					ids := ""
					for _, c := range all {
						ids += c.ID
					}
					return ids, err
				}
			},
			"after",
		},
		"Group.Members": {
			func(t *testing.T, next *session.Manager) change {
				g := zksync.NewGroup(next, path)
				before, err := g.Join(t.Context(), "before", nil)
				must(t, err)
				return change{now: func(ctx context.Context) error {
					if err := before.Leave(); err != nil {
						return err
					}
					_, err := g.Join(ctx, "after", nil)
					return err
				}}
			},
			func(m *session.Manager) func(context.Context) (string, error) {
				g := zksync.NewGroup(m, path)
				return func(ctx context.Context) (string, error) {
					all, err := g.Members(ctx)
					return roll(all), err
				}
			},
			"after= ",
		},
		"Cache.WaitSynced": {
			func(t *testing.T, next *session.Manager) change {
				s := live(t, next)
				must(t, s.MakeDir(t.Context(), path))
				return change{now: func(ctx context.Context) error {
					_, err := s.Set(ctx, path, []byte("after"), -1)
					return err
				}}
			},
			func(m *session.Manager) func(context.Context) (string, error) {
				tree := watch.Tree(context.Background(), m, path) // ends with m
				return func(ctx context.Context) (string, error) {
					err := tree.WaitSynced(ctx)
					st, _ := tree.Get(path)
					return string(st.Data), err
				}
			},
			"after",
		},
		"Queue.TryTake": {
			func(_ *testing.T, next *session.Manager) change {
				q := zksync.NewQueue(next, path)
				return change{now: func(ctx context.Context) error { return q.Put(ctx, []byte("after")) }}
			},
			func(m *session.Manager) func(context.Context) (string, error) {
				q := zksync.NewQueue(m, path)
				return func(ctx context.Context) (string, error) {
					data, ok, err := q.TryTake(ctx)
					if !ok {
						data = []byte("nothing")
					}
					return string(data), err
				}
			},
			"after",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				e := zksynctest.StartEnsemble(t, 3)
				m, next := e.ConnectTo(t, e.Leader()), e.ConnectTo(t, 1)
				change, read := c.before(t, next), c.read(m)
				before, err := read(t.Context())
				must(t, err)
				e.Depose()
				must(t, change.now(t.Context()))
				must(t, live(t, next).MakeDir(t.Context(), "/since"))
				s := live(t, m)
				must(t, s.Sync(t.Context(), "/"))
				if ok, _, err := s.Exists(t.Context(), "/since"); ok || err != nil {
					t.Fatalf("the deposed leader shows what its successor has committed: %v, %v", ok, err)
				}

				var got string
				reading := start(func() (err error) {
					got, err = read(t.Context())
					return err
				})
				time.Sleep(time.Second)
				pending(t, fmt.Sprintf("the read, which was answered %q before the deposition,", before), reading)
				e.HealAll()
				if change.later != nil {
					time.Sleep(time.Minute)
					pending(t, "the read of the present state", reading)
					must(t, change.later(t.Context()))
				}
				mustEnd(t, "the read", reading, nil)
				if got != c.want {
					t.Errorf("the read has returned %q, want %q; before the deposition it returned %q", got, c.want, before)
				}
			})
		})
	}
}
