package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// timeout is the session timeout of tests that set none: the default.
const timeout = 10 * time.Second

// three is a connection string with three addresses of the embedded server.
const three = "127.0.0.1:2181,127.0.0.2:2181,127.0.0.3:2181"

// bubble runs test with its own server, in fake time.
func bubble(t *testing.T, test func(t *testing.T, srv *zksynctest.Server), opts ...zksynctest.Option) {
	t.Helper()
	bounds.Bubble(t, func(t *testing.T) { test(t, zksynctest.Start(t, opts...)) })
}

// connect opens a Manager on the server by any addresses.
func connect(t testing.TB, srv *zksynctest.Server, servers string, opts ...session.Option) *session.Manager {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m, err := session.Connect(ctx, servers, append([]session.Option{session.WithDialer(srv.Dial)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func current(t testing.TB, m *session.Manager) *session.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := m.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// hold opens a lease and holds it.
func hold(t testing.TB, s *session.Session) *session.Lease {
	t.Helper()
	l := s.Lease()
	if err := l.Grant(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.End)
	return l
}

func create(t testing.TB, s *session.Session, path string, flags int32) string {
	t.Helper()
	created, err := s.Create(t.Context(), path, nil, flags)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func count(ops []zkserver.Op, code zkserver.OpCode) int {
	n := 0
	for _, op := range ops {
		if op.Code == code {
			n++
		}
	}
	return n
}

func mustExist(t testing.TB, srv *zksynctest.Server, path string, want bool) {
	t.Helper()
	if _, ok := srv.Get(path); ok != want {
		t.Errorf("znode %s exists: %v, want %v\n%s", path, ok, want, srv.Dump())
	}
}

func mustBe(t testing.TB, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want one that is %v", err, target)
		}
	}
}

// within fails the test unless f returns within d of the test's time.
func within(t testing.TB, d time.Duration, what string, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > d {
		t.Errorf("%s took %v, want at most %v", what, took, d)
	}
}

func sessionOf(srv *zksynctest.Server, id int64) (zkserver.SessionInfo, bool) {
	for _, info := range srv.Sessions() {
		if info.ID == id {
			return info, true
		}
	}
	return zkserver.SessionInfo{}, false
}
