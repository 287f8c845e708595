package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// likeAnswers are the errors that code must not mistake for the answer of a server
// when the cause of a caller's context wraps one of them.
var likeAnswers = []error{
	zksync.ErrLost, zksync.ErrClosed, zksync.ErrRemoved, session.ErrConnectionLost, session.ErrTooLarge,
	zksync.ErrIDTaken, zksync.ErrOutcomeUnknown, zksync.ErrQueueClosed, zksync.ErrNotHeld, session.ErrConflict,
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrSessionExpired,
	zk.ErrConnectionClosed, zk.ErrUnknown,
}

// A call whose ctx ends, at any of its requests, returns its result or an error that
// matches ctx.Err() and the cause; the call leaves nothing behind, and its error is
// true for any error that the cause wraps. To see this test fail, let ClassOf look
// for the sentinels before it looks for the end of a ctx.
func TestCausesAreNoAnswers(t *testing.T) {
	t.Parallel()
	// One error hides another: a cause that looks like a lost session is not asked
	// whether it looks like a missing znode, too.
	all := errors.Join(likeAnswers...)
	loops := errors.Join(slices.DeleteFunc(slices.Clone(likeAnswers), func(err error) bool {
		return err == zksync.ErrClosed || err == zksync.ErrRemoved || err == zksync.ErrQueueClosed
	})...)
	everywhere := []error{all, loops, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, session.ErrConnectionLost}
	for i, c := range blockingCalls {
		t.Run(c.name, func(t *testing.T) {
			for j, like := range likeAnswers {
				if chosen(i, j, 3) {
					endedAt(t, c.play, c.fails, like, 0, zksynctest.BeforeCommit)
				}
			}
			for j, like := range everywhere {
				if !chosen(i, j, 3) {
					continue
				}
				for step := 1; endedAt(t, c.play, c.fails, like, step, zksynctest.BeforeCommit) && !t.Failed(); step++ {
				}
			}
			for step := 1; endedAt(t, c.play, c.fails, loops, step, zksynctest.BeforeReply) && !t.Failed(); step++ {
			}
		})
	}
}

// endedAt ends the ctx of a call at one of its requests, or for step 0 while it
// waits. It reports whether there is such a step.
func endedAt(t *testing.T, play func(*stage) play, fails []error, like error, step int, at zksynctest.Moment) (hit bool) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		st := newStage(t, srv)
		p := play(st)
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := fmt.Errorf("what a sibling returned: %w", like)
		end := func() { cancel(cause) }
		var injected *zksynctest.Injection
		if step > 0 {
			injected = srv.Inject(zksynctest.Fault{
				Session: live(t, st.m).ID(), Nth: step, At: at, Do: zksynctest.Call(end),
				Match: func(op zkserver.Op) bool { return op.Code != zkserver.OpPing },
			})
		}
		r := begin(ctx, st, p)
		synctest.Wait()
		if step > 0 && p.release != nil && injected.Count() == 0 {
			p.release()
			synctest.Wait()
		}
		if hit = step > 0 && injected.Count() > 0; !hit {
			end()
		}
		if err, ok := r.result(5 * time.Second); ok {
			r.finish(err)
			isExpected := slices.ContainsFunc(fails, func(fail error) bool { return errors.Is(err, fail) })
			if err != nil && !isExpected && !(errors.Is(err, context.Canceled) && errors.Is(err, cause)) {
				t.Errorf("error %v, want one that is %v and the cause", err, context.Canceled)
			}
			st.checkNothing()
			if at == zksynctest.BeforeReply {
				st.checkQuiet()
			}
		}
		if t.Failed() {
			t.Logf("the ctx ended %v of request %d, because of %v", at, step, cause)
		}
	})
	return hit
}
