package zksync_test

import (
	"context"
	"testing/synctest"

	"github.com/go-zksync/toolkit/zksync"
)

// groupCalls are the blocking calls of Election, Group, Barrier and DoubleBarrier.
var groupCalls = []blockingCall{
	{name: "Election.Campaign", play: func(st *stage) play {
		e := zksync.NewElection(st.m, stagePath)
		return play{call: func(ctx context.Context) error { _, err := e.Campaign(ctx); return err }, undo: e.Resign}
	}},
	{name: "Election.Campaign behind another", play: func(st *stage) play {
		theirs, e := zksync.NewElection(st.other, stagePath), zksync.NewElection(st.m, stagePath)
		_, err := theirs.Campaign(st.ctx)
		st.must(err)
		return play{
			call:    func(ctx context.Context) error { _, err := e.Campaign(ctx); return err },
			release: func() { st.must(theirs.Resign()) },
			undo:    e.Resign,
		}
	}},
	{name: "Election.Leader", play: func(st *stage) play {
		_, err := zksync.NewElection(st.other, stagePath).Campaign(st.ctx)
		st.must(err)
		e := zksync.NewElection(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			c, err := e.Leader(ctx)
			if err == nil && c.Token == 0 {
				st.errorf("Leader returned nobody and no error")
			}
			return err
		}}
	}},
	{name: "Election.Candidates", play: func(st *stage) play {
		_, err := zksync.NewElection(st.other, stagePath).Campaign(st.ctx)
		st.must(err)
		e := zksync.NewElection(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			all, err := e.Candidates(ctx)
			if err == nil && len(all) != 1 {
				st.errorf("Candidates returned %d candidates and no error", len(all))
			}
			return err
		}}
	}},
	{name: "Group.Join", play: func(st *stage) play {
		g := zksync.NewGroup(st.m, stagePath)
		var own *zksync.Member
		return play{
			call: func(ctx context.Context) (err error) { own, err = g.Join(ctx, "a", nil); return err },
			undo: func() error { return own.Leave() },
		}
	}},
	{name: "Group.Join behind another", play: func(st *stage) play {
		theirs, err := zksync.NewGroup(st.other, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		g := zksync.NewGroup(st.m, stagePath, zksync.WithIDWait())
		var own *zksync.Member
		return play{
			call:    func(ctx context.Context) (err error) { own, err = g.Join(ctx, "a", nil); return err },
			release: func() { st.must(theirs.Leave()) },
			undo:    func() error { return own.Leave() },
		}
	}},
	{name: "Group.Join with an id that is taken", fails: []error{zksync.ErrIDTaken}, play: func(st *stage) play {
		_, err := zksync.NewGroup(st.other, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		g := zksync.NewGroup(st.m, stagePath)
		return play{call: func(ctx context.Context) error { _, err := g.Join(ctx, "a", nil); return err }}
	}},
	{name: "Group.Members", play: func(st *stage) play {
		_, err := zksync.NewGroup(st.other, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		g := zksync.NewGroup(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			all, err := g.Members(ctx)
			if err == nil && len(all) != 1 {
				st.errorf("Members returned %d members and no error", len(all))
			}
			return err
		}}
	}},
	{name: "Member.Set", play: func(st *stage) play {
		own, err := zksync.NewGroup(st.m, stagePath).Join(st.ctx, "a", nil)
		st.must(err)
		synctest.Wait()
		return play{call: func(ctx context.Context) error {
			err := own.Set(ctx, []byte("x"))
			if data, _ := st.srv.Get(stagePath + "/a"); err == nil && string(data) != "x" {
				st.errorf("Set returned nil, and the data is %q", data)
			}
			return err
		}, close: own.Leave}
	}},
	{name: "Barrier.Set", play: func(st *stage) play {
		b := zksync.NewBarrier(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			err := b.Set(ctx)
			if _, ok := st.srv.Get(stagePath); err == nil && !ok {
				st.errorf("Set returned nil, and there is no gate")
			}
			return err
		}}
	}},
	{name: "Barrier.Remove", play: func(st *stage) play {
		st.must(zksync.NewBarrier(st.other, stagePath).Set(st.ctx))
		b := zksync.NewBarrier(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			err := b.Remove(ctx)
			if _, ok := st.srv.Get(stagePath); err == nil && ok {
				st.errorf("Remove returned nil, and the gate is closed")
			}
			return err
		}}
	}},
	{name: "Barrier.Wait at an open gate", play: func(st *stage) play {
		return play{call: zksync.NewBarrier(st.m, stagePath).Wait}
	}},
	{name: "Barrier.Wait at a closed gate", play: func(st *stage) play {
		theirs := zksync.NewBarrier(st.other, stagePath)
		st.must(theirs.Set(st.ctx))
		b := zksync.NewBarrier(st.m, stagePath)
		return play{call: func(ctx context.Context) error {
			err := b.Wait(ctx)
			if _, closed := st.srv.Get(stagePath); err == nil && closed {
				st.errorf("Wait returned nil at a closed gate")
			}
			return err
		}, release: func() { st.must(theirs.Remove(st.ctx)) }}
	}},
	{name: "DoubleBarrier.Enter alone", play: func(st *stage) play {
		b := zksync.NewDoubleBarrier(st.m, stagePath, 1)
		return play{call: b.Enter, undo: func() error { return b.Leave(st.ctx) }}
	}},
	{name: "DoubleBarrier.Enter with another", play: func(st *stage) play {
		theirs, b := zksync.NewDoubleBarrier(st.other, stagePath, 2), zksync.NewDoubleBarrier(st.m, stagePath, 2)
		come := false
		return play{
			call:    b.Enter,
			release: func() { come = true; st.blocked(theirs.Enter) },
			undo: func() error {
				if come {
					st.blocked(theirs.Leave)
				}
				return b.Leave(st.ctx)
			},
		}
	}},
	{name: "DoubleBarrier.Leave", play: func(st *stage) play {
		theirs, b := zksync.NewDoubleBarrier(st.other, stagePath, 2), zksync.NewDoubleBarrier(st.m, stagePath, 2)
		st.blocked(theirs.Enter)
		st.must(b.Enter(st.ctx))
		return play{call: b.Leave, release: func() { st.blocked(theirs.Leave) }}
	}},
}
