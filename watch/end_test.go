package watch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// follower has the methods that all streams and the Cache share.
type follower struct {
	kind string
	// run reads until the end.
	run func(ctx context.Context, m *session.Manager, path string) error
	// leave reads until the first state and leaves the loop.
	leave func(ctx context.Context, m *session.Manager, path string) error
}

func follow[T any](kind string, stream func(ctx context.Context, m *session.Manager, path string) *watch.Stream[T]) follower {
	return follower{
		kind: kind,
		run: func(ctx context.Context, m *session.Manager, path string) error {
			st := stream(ctx, m, path)
			for range st.Events() {
			}
			return st.Err()
		},
		leave: func(ctx context.Context, m *session.Manager, path string) error {
			st := stream(ctx, m, path)
			for range st.All() {
				break
			}
			return st.Err()
		},
	}
}

var followers = []follower{
	follow("node", watch.Node),
	follow("children", watch.Children),
	follow("value", func(ctx context.Context, m *session.Manager, path string) *watch.Stream[watch.Decoded[int]] {
		return watch.Value(ctx, m, path, watch.JSON[int])
	}),
	follow("mine", func(ctx context.Context, m *session.Manager, path string) *watch.Stream[int] {
		return watch.NewStream(ctx, "mine", path, func(ctx context.Context, report func(int, any)) error {
			for st, err := range watch.Node(ctx, m, path).All() {
				if err != nil {
					return err
				}
				report(int(st.Stat.Version), nil)
			}
			return nil
		})
	}),
	{kind: "tree", run: func(ctx context.Context, m *session.Manager, path string) error {
		c := watch.Tree(ctx, m, path)
		for range c.Events() {
		}
		return c.Err()
	}},
}

// EndError tells the end of ctx, the Manager, a final refusal and the loop apart, even if the cause of ctx wraps
// another of these reasons.
func TestEndReasons(t *testing.T) {
	for _, f := range followers {
		t.Run(f.kind, func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				m := srv.Connect(t)
				must(t, srv.Create("/a", []byte("1")))
				_, err := live(t, m).Create(t.Context(), "/secret", nil, 0, zk.DigestACL(zk.PermAll, "joe", "x")...)
				must(t, err)
				check := func(name string, err error, path string, reason watch.EndReason, targets ...error) {
					t.Helper()
					var end *watch.EndError
					if !errors.As(err, &end) {
						t.Fatalf("%s: the error is %v, want an EndError", name, err)
					}
					if end.Reason != reason || end.Path != path || end.Stream != f.kind {
						t.Errorf("%s: %+v, want %v of %s %s", name, end, reason, f.kind, path)
					}
					for _, target := range targets {
						if !errors.Is(err, target) {
							t.Errorf("%s: the error is %v, want %v", name, err, target)
						}
					}
				}
				for _, cause := range []error{errors.New("why"), session.ErrClosed, session.ErrLost, zk.ErrNoAuth, zk.ErrNoNode} {
					cause := fmt.Errorf("a caller's cause: %w", cause)
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(time.Second, func() { cancel(cause) })
					check("ctx", f.run(ctx, m, "/a"), "/a", watch.ContextEnded, context.Canceled, cause)
					check("ctx before", f.run(ctx, m, "/a"), "/a", watch.ContextEnded, context.Canceled, cause)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				check("deadline", f.run(ctx, m, "/a"), "/a", watch.ContextEnded, context.DeadlineExceeded)
				check("denied", f.run(t.Context(), m, "/secret"), "/secret", watch.Refused, zk.ErrNoAuth)
				check("invalid", f.run(t.Context(), m, "/a//b"), "/a//b", watch.Refused, session.ErrInvalidPath)
				if f.leave != nil {
					check("left", f.leave(t.Context(), m, "/a"), "/a", watch.Stopped, watch.ErrStopped)
				}
				time.AfterFunc(time.Second, func() { m.Close() })
				check("closed", f.run(t.Context(), m, "/a"), "/a", watch.ManagerClosed, session.ErrClosed)
				check("closed before", f.run(t.Context(), m, "/a"), "/a", watch.ManagerClosed, session.ErrClosed)
			})
		})
	}
}

// A refusal that is not final, or an internal error of a server, ends neither a stream nor a Cache:
// they report the state once the server answers.
func TestTransientRefusalsEndNothing(t *testing.T) {
	testTransientRefusals(t, -127)
	testTransientRefusals(t, -1)
}

func testTransientRefusals(t *testing.T, code zkserver.Code) {
	for _, f := range followers {
		for _, op := range []zkserver.OpCode{zkserver.OpGetData, zkserver.OpGetChildren2, zkserver.OpExists} {
			t.Run(fmt.Sprint(f.kind, "/", op, code), func(t *testing.T) {
				bounds.Bubble(t, func(t *testing.T) {
					srv := zksynctest.Start(t)
					m := srv.Connect(t)
					refused := srv.Inject(zksynctest.Fault{Path: "/a*", Op: op, Times: 20, Do: zksynctest.Error(code)})
					time.AfterFunc(time.Minute, func() {
						if err := srv.Create("/a", []byte("1")); err != nil {
							t.Error(err)
						}
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					if err := f.run(ctx, m, "/a"); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("it has ended: %v", err)
					}
					asks := op != zkserver.OpGetChildren2 || f.kind == "children" || f.kind == "tree"
					if f.kind == "children" && op == zkserver.OpGetData {
						asks = false
					}
					if asks && refused.Count() != 20 {
						t.Errorf("%d refusals of 20", refused.Count())
					}
				})
			})
		}
	}
}

// A Cache is complete after refusals that are not final, at the root and below it,
// and WaitSynced waits for that.
func TestTreeIsCompleteAfterTransientRefusals(t *testing.T) {
	for _, op := range []zkserver.OpCode{zkserver.OpGetData, zkserver.OpGetChildren2, zkserver.OpMulti} {
		t.Run(fmt.Sprint(op), func(t *testing.T) {
			bounds.Bubble(t, func(t *testing.T) {
				srv := zksynctest.Start(t)
				m := srv.Connect(t)
				s := live(t, m)
				paths := plant(t, s, "/r", 300)
				refused := srv.Inject(zksynctest.Fault{Op: op, Nth: 2, Times: 50, Do: zksynctest.Error(-127), Match: func(op zksynctest.Op) bool { return op.Path != "/" }})
				c := watch.Tree(t.Context(), m, "/r")
				must(t, c.WaitSynced(t.Context()))
				if op == zkserver.OpMulti {
					must(t, c.WaitSynced(t.Context()))
				}
				if c.Len() != len(paths) || refused.Count() != 50 {
					t.Errorf("%d znodes of %d, after %d refusals", c.Len(), len(paths), refused.Count())
				}
			})
		})
	}
}

// Every EndReason has a name.
func TestEndReasonsInWords(t *testing.T) {
	for reason, want := range map[watch.EndReason]string{
		watch.ContextEnded: "ContextEnded", watch.ManagerClosed: "ManagerClosed", watch.Refused: "Refused", watch.Stopped: "Stopped", 0: "EndReason(0)", 9: "EndReason(9)",
	} {
		if got := reason.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(reason), got, want)
		}
	}
}
