package session_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// logged returns the lines at WARN and above with a message, and the times since start at which the lines were
// written.
func logged(logs *observer.ObservedLogs, message string, start time.Time) (lines []string, after []time.Duration) {
	for _, e := range logs.FilterMessage(message).All() {
		if e.Level < zapcore.WarnLevel {
			continue
		}
		lines = append(lines, fmt.Sprint(e.ContextMap()))
		after = append(after, e.Time.Sub(start))
	}
	return lines, after
}

func observed() (session.Option, *observer.ObservedLogs) {
	core, logs := observer.New(zapcore.DebugLevel)
	return session.WithLogger(zap.New(core, zap.WithClock(testClock{}))), logs
}

// testClock gives log entries the time of the bubble.
type testClock struct{}

func (testClock) Now() time.Time                         { return time.Now() }
func (testClock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// While no server can be reached, the reason is logged after three seconds and then at growing intervals, once for
// all calls, and the error of a call that its ctx ends has each server and the outcome of the attempts. Breaks if
// watchOutages does not log, or if Manager.Session returns Cancelled without a reason.
func TestAnOutageIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := observed()
		m := connect(t, srv, three, opt)
		s := current(t, m)
		srv.Stop()
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for range 10 {
			go s.Get(ctx, "/")
		}
		_, err := m.Session(ctx)
		mustBe(t, err, context.DeadlineExceeded)
		for _, part := range append(strings.Split(three, ","), "no server could be used for 5m0s", "attempts)") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("error %v, want one that says %q", err, part)
			}
		}
		lines, after := logged(logs, "no server could be used", start)
		if len(after) < 5 || len(after) > 8 || after[0] != 3*time.Second {
			t.Fatalf("reports after %v, want some at growing intervals, the first after 3s", after)
		}
		for i := 2; i < len(after); i++ {
			if after[i]-after[i-1] < after[i-1]-after[i-2] {
				t.Errorf("reports after %v, want growing intervals", after)
			}
		}
		if !strings.Contains(lines[0], "127.0.0.2:2181: ") {
			t.Errorf("the report %s does not name each server", lines[0])
		}
		srv.Start()
		if err := current(t, m).Sync(t.Context(), "/"); err != nil {
			t.Error(err)
		}
		before := logs.Len()
		time.Sleep(time.Hour)
		if _, after := logged(logs, "no server could be used", start); len(after) != len(lines) || logs.Len() > before+10 {
			t.Errorf("%d reports, %d lines, want none while connected", len(after), logs.Len()-before)
		}
	})
}

// A server that accepts requests and does not answer is reported after three seconds, with the number of requests.
// Breaks if Conn.reportSilence does nothing.
func TestASilentServerIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := observed()
		s := current(t, connect(t, srv, three, opt))
		time.Sleep(time.Minute)
		srv.Freeze()
		defer srv.Thaw()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, _, err := s.Get(ctx, "/")
		mustBe(t, err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "no answer from 127.0.0.") {
			t.Errorf("error %v, want one that names the server", err)
		}
		if lines, after := logged(logs, "the server did not answer", start); len(after) == 0 || after[0] > 4*time.Second {
			t.Errorf("reports %v after %v, want one within 4s", lines, after)
		}
	})
}

// A request that the server refuses temporarily is reported, and its error has the server's answer. Breaks if
// requester.persist starts no Wait.
func TestAThrottledRequestIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := observed()
		s := current(t, connect(t, srv, three, opt))
		srv.Inject(zksynctest.Fault{Op: 4, Do: zksynctest.Error(-127), Times: -1})
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		_, _, err := s.Get(ctx, "/")
		mustBe(t, err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "throttled") {
			t.Errorf("error %v, want one that says throttled", err)
		}
		lines, after := logged(logs, "a call waited", start)
		if len(after) != 1 || after[0] != 3*time.Second || !strings.Contains(lines[0], "throttled") {
			t.Errorf("reports %v after %v, want one after 3s", lines, after)
		}
	})
}

// Ten thousand waits write only a few lines, with the number of suppressed lines. Breaks if lineLimit.line always
// returns true.
func TestManyWaitsLogFewLines(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		opt, logs := observed()
		m := connect(t, srv, three, opt)
		var all []*session.Wait
		for range 10_000 {
			all = append(all, m.StartWait("lock", "/l", func(context.Context) error { return errors.New("for nothing") }))
		}
		time.Sleep(time.Minute)
		for _, w := range all {
			w.Stop()
		}
		lines, _ := logged(logs, "a call waited", time.Now())
		if len(lines) == 0 || len(lines) > 200 || !strings.Contains(strings.Join(lines, ""), "suppressed:") {
			t.Errorf("%d lines, want at most 20 in 10s, and the number of lines left out", len(lines))
		}
	})
}

// A chroot that does not exist ends Connect with ErrNoChroot, and is created only with WithCreateChroot. Breaks if
// Connect does not call checkChroot.
func TestAChrootThatDoesNotExist(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t) + "/app"
		_, err := session.Connect(t.Context(), srv.Address()+path)
		mustBe(t, err, session.ErrNoChroot)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v does not name %s", err, path)
		}
		for _, opts := range [][]session.Option{{session.WithCreateChroot()}, nil} {
			m, err := session.Connect(t.Context(), srv.Address()+path, opts...)
			if err != nil {
				t.Fatal(err)
			}
			m.Close()
		}
	})
}

// A refusal by an ACL names the permission, the znode whose ACL decides with its path on the servers, and the
// identity of the client without its password. Breaks if shared.denied returns err unchanged.
func TestPermissionErrorsNameTheACL(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		ctx, root := t.Context(), servers.Path(t)
		owner := current(t, srv.Connect(t, session.WithAuth("digest", []byte("owner:secret"))))
		create(t, owner, root, 0)
		create(t, owner, root+"/kid", 0)
		m, err := session.Connect(ctx, srv.Address()+root, session.WithAuth("digest", []byte("guest:hidden")))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		s := current(t, m)
		_, _, get := s.Get(ctx, "/")
		_, creates := s.Create(ctx, "/x", nil, 0)
		_, set := s.Set(ctx, "/", nil, -1)
		_, multi := s.Multi(ctx, &zk.CheckVersionRequest{Path: "/", Version: -1})
		for what, test := range map[string]struct {
			err  error
			says string
		}{
			"get":    {get, "READ"},
			"create": {creates, "CREATE"},
			"set":    {set, "WRITE"},
			"dir":    {s.MakeDir(ctx, "/a/b"), "CREATE"},
			"multi":  {multi, "READ"},
			"delete": {s.Delete(ctx, "/kid", -1), "DELETE"},
		} {
			mustBe(t, test.err, zk.ErrNoAuth)
			if test.err == nil {
				continue
			}
			for _, part := range []string{test.says + " to this client", "the znode " + root + " on", "digest:guest"} {
				if !strings.Contains(test.err.Error(), part) {
					t.Errorf("%s: error %v, want one that says %q", what, test.err, part)
				}
			}
			if strings.Contains(test.err.Error(), "hidden") {
				t.Errorf("%s: error %v shows the password", what, test.err)
			}
		}
		_, err = s.Create(ctx, "/y", nil, 0, zk.ACL{Perms: 99, Scheme: "auth"})
		mustBe(t, err, zk.ErrInvalidACL)
	})
}

// Connect ends at once if every server speaks another protocol, names the protocol, and logs it; with a server that
// may still start it waits. Breaks if wire.foreign recognises nothing.
func TestConnectFailsFastOnAnotherProtocol(t *testing.T) {
	for says, answer := range map[string]string{
		"HTTP":         "HTTP/1.1 400 Bad Request\r\n\r\n",
		"SSH-":         "SSH-2.0-OpenSSH\r\n",
		"expects TLS":  "\x15\x03\x01\x00\x02\x02\x46",
		"other prefix": "",
	} {
		bubble(t, func(t *testing.T, srv *zksynctest.Server) {
			opt, logs := observed()
			speak := func(ctx context.Context, _, address string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() {
					defer far.Close()
					far.Read(make([]byte, 1024))
					if answer == "" {
						far.Write([]byte{0x7f, 0, 0, 0})
						return
					}
					far.Write([]byte(answer))
				}()
				return near, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			_, err := session.Connect(ctx, three, opt, session.WithDialer(speak))
			if answer == "" {
				mustBe(t, err, context.DeadlineExceeded)
				return
			}
			mustBe(t, err, session.ErrMisconfigured)
			if took := time.Since(start); took > 0 || !strings.Contains(fmt.Sprint(err), says) {
				t.Errorf("after %v: %v, want at once, and one that says %q", took, err, says)
			}
			if lines, _ := logged(logs, "server could not be used", start); len(lines) != 3 {
				t.Errorf("lines %v, want one for each server", lines)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err = session.Connect(ctx, three, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "127.0.0.3:") {
					return nil, errors.New("refused")
				}
				return speak(ctx, network, address)
			}))
			mustBe(t, err, context.DeadlineExceeded)
		})
	}
}
