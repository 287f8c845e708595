package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// codes are all error codes of ZooKeeper 3.8 and 3.9 with their meanings, and some codes that no server knows.
var codes = map[zkserver.Code]session.Class{
	-1: session.ClassUnknown, -2: session.ClassUnknown, -3: session.ClassUnknown, -4: session.ClassConnectionLost,
	-5: session.ClassUnknown, -6: session.ClassFinal, -7: session.ClassConnectionLost, -8: session.ClassFinal,
	-13: session.ClassFinal, -100: session.ClassUnknown, -101: session.ClassNoNode, -102: session.ClassNoAuth,
	-103: session.ClassBadVersion, -108: session.ClassFinal, -110: session.ClassNodeExists, -111: session.ClassNotEmpty,
	-113: session.ClassFinal, -114: session.ClassFinal, -115: session.ClassFinal, -120: session.ClassFinal,
	-121: session.ClassFinal, -122: session.ClassConnectionLost, -123: session.ClassFinal, -124: session.ClassFinal,
	-125: session.ClassFinal,
	-9:   session.ClassUnknown, -126: session.ClassUnknown, -999: session.ClassUnknown, 7: session.ClassUnknown,
}

// Every refusal of a server has the class of its entry in the table. A refusal that is not in the table is final for
// the caller, and its error has the number.
func TestEveryRefusalHasAClass(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		s := current(t, connect(t, srv, three))
		for code, want := range codes {
			srv.Inject(zkserver.Fault{Op: zkserver.OpCreate, Do: zkserver.Error(code)})
			srv.ResetOps()
			_, err := s.Create(t.Context(), "/x", nil, 0)
			if got := session.ClassOf(err); got != want {
				t.Errorf("code %d: class %v of %v, want %v", code, got, err, want)
			}
			if n := count(srv.Ops(), zkserver.OpCreate); n != 1 {
				t.Errorf("code %d: %d requests, want 1", code, n)
			}
			if want == session.ClassUnknown && code != -100 && !strings.Contains(err.Error(), fmt.Sprint(int32(code))) {
				t.Errorf("code %d: the error does not say so: %v", code, err)
			}
		}
	})
}

// A refusal that is about the connection ends the connection, and a request that is safe to repeat is carried out on
// the next connection.
func TestRefusalsThatEndTheConnection(t *testing.T) {
	for _, code := range []zkserver.Code{-12, -112, -118, -119} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			before := s.Connection()
			srv.Inject(zkserver.Fault{Op: zkserver.OpGetData, Do: zkserver.Error(code)})
			if _, _, err := s.Get(t.Context(), "/"); err != nil {
				t.Errorf("code %d: %v", code, err)
			}
			if s.Connection() == before {
				t.Errorf("code %d: the connection goes on", code)
			}
		})
	}
}

// The class of the error of an ended ctx is ClassCancelled, regardless of the errors that its cause wraps, also when
// other code wraps or joins the error.
func TestClassOf(t *testing.T) {
	ended := func(cause error) error {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return session.Cancelled(ctx)
	}
	for _, c := range []struct {
		err  error
		want session.Class
	}{
		{nil, session.ClassOK},
		{ended(nil), session.ClassCancelled},
		{ended(zk.ErrNoNode), session.ClassCancelled},
		{fmt.Errorf("get /x: %w", ended(session.ErrLost)), session.ClassCancelled},
		{errors.Join(session.ErrLost, ended(session.ErrConnectionLost)), session.ClassCancelled},
		{fmt.Errorf("%w: %w", session.ErrLost, ended(session.ErrClosed)), session.ClassCancelled},
		{context.DeadlineExceeded, session.ClassCancelled},
		{fmt.Errorf("x: %w", context.Canceled), session.ClassCancelled},
		{session.ErrLost, session.ClassLost},
		{fmt.Errorf("%w: %w", session.ErrLost, session.ErrClosed), session.ClassClosed},
		{session.ErrRemoved, session.ClassRemoved},
		{session.ErrConnectionLost, session.ClassConnectionLost},
		{session.ErrStale, session.ClassTransient},
		{session.ErrTooLarge, session.ClassTooLarge},
		{session.ErrInvalidPath, session.ClassFinal},
		{session.ErrConflict, session.ClassNodeExists},
		{&session.Error{Op: "get", Path: "/x", Err: zk.ErrNoNode}, session.ClassNoNode},
		{errors.New("anything"), session.ClassUnknown},
	} {
		if got := session.ClassOf(c.err); got != c.want {
			t.Errorf("%v has class %v, want %v", c.err, got, c.want)
		}
	}
	for err, want := range map[error]bool{
		nil: false, session.ErrTooLarge: false, fmt.Errorf("get /x: %w", session.ErrAnswerTooLarge): true, ended(session.ErrAnswerTooLarge): false,
	} {
		if got := session.IsAnswerTooLarge(err); got != want {
			t.Errorf("IsAnswerTooLarge(%v) is %v, want %v", err, got, want)
		}
	}
	for err, want := range map[error]bool{
		nil: false, session.ErrAnswerTooLarge: false, fmt.Errorf("get /x: %w", session.ErrAnswerTooSlow): true, ended(session.ErrAnswerTooSlow): false,
	} {
		if got := session.IsAnswerTooSlow(err); got != want {
			t.Errorf("IsAnswerTooSlow(%v) is %v, want %v", err, got, want)
		}
	}
	if s := session.ClassUnknown.String() + session.ClassOK.String() + session.Class(99).String(); s != "UnknownOKClass(99)" {
		t.Error(s)
	}
}

// A call whose ctx ends returns an error of class Cancelled that matches ctx.Err() and the cause, regardless of the
// errors that the cause wraps.
func TestCausesAreNotClassified(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three)
		s := current(t, m)
		create(t, s, "/node", 0)
		srv.Freeze()
		cause := fmt.Errorf("a sibling: %w", errors.Join(session.ErrLost, session.ErrConnectionLost, session.ErrTooLarge,
			zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNoAuth, zk.ErrSessionExpired, zk.ErrUnknown))
		for name, call := range everyCall {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { done <- call(ctx, m, s) }()
			synctest.Wait()
			cancel(cause)
			select {
			case err := <-done:
				mustBe(t, err, context.Canceled, cause)
				if c := session.ClassOf(err); c != session.ClassCancelled {
					t.Errorf("%s: class %v of %v", name, c, err)
				}
			case <-time.After(time.Second):
				t.Errorf("%s has not returned", name)
			}
		}
		srv.Thaw()
	})
}
