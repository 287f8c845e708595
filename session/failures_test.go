package session_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// A create that a server leaves without an outcome again and again is reported, and the error at the end of its ctx has
// the reason.
func TestRepeatedCreatesStateTheReason(t *testing.T) {
	for name, call := range map[string]func(context.Context, *session.Session) error{
		"CreateProtected": func(ctx context.Context, s *session.Session) error {
			_, err := s.CreateProtected(ctx, "/d/x", nil, zk.FlagEphemeral)
			return err
		},
		"MultiProtected": func(ctx context.Context, s *session.Session) error {
			_, _, err := s.MultiProtected(ctx, &zk.CreateRequest{Path: session.Protect("/d/x")})
			return err
		},
		"MakeDir": func(ctx context.Context, s *session.Session) error { return s.MakeDir(ctx, "/d/e") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				opt, logs := observed()
				s := current(t, connect(t, srv, three, opt))
				create(t, s, "/d", 0)
				for _, op := range []zkserver.OpCode{zkserver.OpCreate, zkserver.OpCreateContainer, zkserver.OpMulti} {
					srv.Inject(zkserver.Fault{Op: op, Path: "/d/*", Do: zkserver.Error(-7), Times: -1})
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				start := time.Now()
				if err := call(ctx, s); session.WaitReason(err) == nil {
					t.Errorf("error %v, want one with a reason", err)
				}
				if lines, _ := logged(logs, "a call waited", start); len(lines) == 0 {
					t.Error("no report in a minute")
				}
			})
		})
	}
}

// A Grant that waits for a proof has the refusal of the server that keeps the session unproven.
func TestGrantStatesTheRefusal(t *testing.T) {
	for code, name := range map[zkserver.Code]string{-127: "throttled", -1: "system error"} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			s := current(t, connect(t, srv, three))
			srv.Inject(zkserver.Fault{Op: zkserver.OpMulti, Do: zkserver.Error(code), Times: -1})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l := s.Lease()
			defer l.End()
			if err := l.Grant(ctx); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("error %v, want one that says %q", err, name)
			}
		})
	}
}
