package zksync

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync/internal/znode"
)

// A Barrier is a gate that processes wait at: closed from Set to Remove, and open
// otherwise. Remove lets all waiting processes go on at once.
//
// On the server it is the znode path itself, as with Curator's DistributedBarrier,
// which opens and closes the same gates. The znode is persistent: a gate stays closed
// when the process that set it has gone.
type Barrier struct {
	_ noCopy
	primitive
}

// NewBarrier returns the gate at path. WithMaxWait bounds Wait.
func NewBarrier(m *session.Manager, path string, opts ...BarrierOption) *Barrier {
	p := newPrimitive("Barrier", m, path, opts)
	if p.err == nil && path == "/" {
		p.err = fmt.Errorf(`%w: "/" always exists, want a gate as "/app/gate"`, session.ErrInvalidPath)
	}
	return &Barrier{primitive: p}
}

// Set closes the gate, and creates the directories above it if they are missing. It is
// not an error if the gate is closed already, also without the permission to close it. Set
// is repeated over lost connections and sessions until ctx ends; then Set returns the error
// of ctx, and the gate may or may not have been closed. See Remove for a repetition beside other
// clients.
func (b *Barrier) Set(ctx context.Context) error {
	gate := znode.Directory{Path: b.path, Lasting: true}
	return b.opError("set", b.do(ctx, func(ctx context.Context, s *session.Session) error {
		return b.unlessDone(ctx, s, true, gate.Create(ctx, s))
	}))
}

// unlessDone returns the error of a Set or a Remove. A refusal is no error if the gate is as the
// caller wants it: the server checks permissions before it looks for the znode.
func (b *Barrier) unlessDone(ctx context.Context, s *session.Session, closed bool, err error) error {
	if session.ClassOf(err) != session.ClassNoAuth {
		return err
	}
	if failed := s.SyncQuorum(ctx, b.path); failed != nil {
		return failed
	}
	ok, _, failed := s.Exists(ctx, b.path)
	if failed == nil && ok == closed {
		return nil
	}
	return err
}

// Remove opens the gate. It is not an error if the gate is open already, also without the
// permission to open it. Remove is repeated like Set; when ctx ends first, the gate may or may not have been opened.
//
// If the answer to a request of Set or Remove is lost, and another client changes the gate before the
// repetition, the repetition changes it again and reports success: a Remove opens a gate that was set
// meanwhile, and a Set closes a gate that was opened, perhaps for good. This does not happen if only one
// client at a time sets and removes the gate, and repeats each call until it succeeds. Otherwise use
// another path for each phase of a program, or a DoubleBarrier.
func (b *Barrier) Remove(ctx context.Context) error {
	return b.opError("remove", b.do(ctx, func(ctx context.Context, s *session.Session) error {
		err := s.Delete(ctx, b.path, -1)
		if session.ClassOf(err) == session.ClassNoNode {
			return nil
		}
		return b.unlessDone(ctx, s, false, err)
	}))
}

// Wait returns when the gate is open: at once if it is open at the time of the call, and
// otherwise as soon as it has been removed, even if it was set again right after. Wait
// first commits a transaction without effect (see session.Session.SyncQuorum). It
// continues to wait after a lost connection or session. It fails with the error of ctx
// when ctx ends first, and with ErrClosed when the Manager is closed.
func (b *Barrier) Wait(ctx context.Context) error {
	ctx, cancel := b.cfg.bound(ctx)
	defer cancel()
	var closed int64 // the czxid of the gate that we wait for
	return b.opError("wait", b.do(ctx, func(ctx context.Context, s *session.Session) error {
		// A caller that was told that the gate is set may be connected to a server
		// that does not know it yet, or never will: a leader that was deposed shows
		// the gate as it was then, also behind a sync.
		if err := s.SyncQuorum(ctx, b.path); err != nil {
			return err
		}
		var wait *session.Wait
		for {
			gate, err := znode.WatchPresent(ctx, s, "wait", b.path)
			if session.ClassOf(err) == session.ClassNoNode {
				return nil
			}
			if err != nil {
				return err
			}
			if closed != 0 && gate.Stat.Czxid != closed {
				gate.Watch.Stop()
				return nil
			}
			closed = gate.Stat.Czxid
			if wait == nil {
				since := time.UnixMilli(gate.Stat.Ctime)
				wait = b.m.StartWait("wait", b.path, func(context.Context) error {
					return fmt.Errorf("for the gate to be opened, which was set at %s", since.Format(time.RFC3339))
				})
				defer wait.Stop()
			}
			deleted, err := gate.Await(ctx, s)
			switch {
			case session.ClassOf(err) == session.ClassCancelled:
				return wait.Cancelled(ctx)
			case deleted || err != nil:
				return err
			}
		}
	}))
}

func (b *Barrier) do(ctx context.Context, fn func(context.Context, *session.Session) error) error {
	if err := ready(ctx, b.invalid()); err != nil {
		return err
	}
	return b.m.Do(ctx, fn)
}
