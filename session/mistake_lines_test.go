package session_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// mostLines returns the greatest number of lines within ten seconds.
func mostLines(lines []observer.LoggedEntry) (most int) {
	for i := range lines {
		n := 0
		for _, line := range lines[i:] {
			if line.Time.Sub(lines[i].Time) < 10*time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

var five = "127.0.0.1:2181,127.0.0.2:2181,127.0.0.3:2181,127.0.0.4:2181,127.0.0.5:2181"

// A Manager whose credentials are refused again and again logs it for each server, and not for each attempt.
func TestCredentialsThatAreRefusedLater(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zap.DebugLevel)
		m := connect(t, srv, five, session.WithAuth("digest", []byte("a:b")), session.WithLogger(zap.New(core)))
		srv.Inject(zkserver.Fault{Op: zkserver.OpAuth, Do: zkserver.Error(-115), Times: -1})
		srv.Disconnect(current(t, m).ID())
		time.Sleep(5 * time.Minute)
		lines := logs.FilterMessage("credentials refused").All()
		servers := map[any]bool{}
		for _, line := range lines {
			servers[line.ContextMap()["server"]] = true
		}
		if len(lines) != 5 || len(servers) != 5 {
			t.Errorf("%d lines about %d servers, want 5 about 5", len(lines), len(servers))
		}
	})
}

// Servers that show one mistake after the other cause 20 lines in ten seconds at most.
func TestMistakesThatAlternate(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		core, logs := observer.New(zap.WarnLevel)
		var broken atomic.Bool
		var dials atomic.Int32
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if !broken.Load() {
				return srv.Dial(ctx, network, address)
			}
			answer := []string{"HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x01\x00\x02\x02\x46"}[dials.Add(1)%2]
			near, far := net.Pipe()
			go func() {
				defer far.Close()
				far.Read(make([]byte, 1024))
				far.Write([]byte(answer))
			}()
			return near, nil
		}
		m := connect(t, srv, five, session.WithDialer(dial), session.WithLogger(zap.New(core)))
		broken.Store(true)
		srv.Disconnect(current(t, m).ID())
		time.Sleep(5 * time.Minute)
		lines := logs.FilterMessage("server could not be used").All()
		if most := mostLines(lines); most > 20 || most < 10 {
			t.Errorf("%d lines in ten seconds, want 20 at most, and nearly as many", most)
		}
	})
}

// Connect ends with ErrAuthFailed when every server has refused the credentials, and the error names each of them. One
// server alone does not end Connect.
func TestServersThatRefuseTheCredentials(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		refusals := srv.Inject(zkserver.Fault{Op: zkserver.OpAuth, Do: zkserver.Error(-115), Times: -1})
		auth := session.WithAuth("digest", []byte("a:b"))
		start := time.Now()
		_, err := session.Connect(timeoutContext(t, time.Minute), three, session.WithDialer(srv.Dial), auth)
		mustBe(t, err, session.ErrAuthFailed)
		_, tries, _ := strings.Cut(err.Error(), ": ")
		for server := range strings.SplitSeq(three, ",") {
			if !strings.Contains(strings.TrimPrefix(tries, "connect to "+three), server+": session: the server refused") {
				t.Errorf("%v does not say what %s has answered", err, server)
			}
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("Connect took %v", took)
		}
		refusals.Remove()
		srv.Inject(zkserver.Fault{Op: zkserver.OpAuth, Do: zkserver.Error(-115), Times: 2})
		m, err := session.Connect(timeoutContext(t, time.Minute), three, session.WithDialer(srv.Dial), auth)
		if err != nil {
			t.Fatalf("two of three servers refuse the credentials: %v", err)
		}
		m.Close()
	})
}

// A line whose number is limited has the file of its caller as its source.
func TestSourceOfLimitedLines(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		var sources sourceHandler
		srv.Connect(t, session.WithSlog(slog.New(&sources)))
		synctest.Wait() // for the line, which may come a little after Connect has returned
		if file := sources.file("connected"); filepath.Base(file) != "connection.go" {
			t.Errorf("the line about a connection comes from %q, want connection.go", file)
		}
	})
}

// A sourceHandler keeps the file that has written each message.
type sourceHandler struct{ files sync.Map }

func (h *sourceHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h *sourceHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *sourceHandler) WithGroup(string) slog.Handler            { return h }
func (h *sourceHandler) Handle(_ context.Context, r slog.Record) error {
	frame, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
	h.files.Store(r.Message, frame.File)
	return nil
}

func (h *sourceHandler) file(message string) string {
	file, _ := h.files.Load(message)
	name, _ := file.(string)
	return name
}
