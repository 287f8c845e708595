package session_test

import (
	"bytes"
	"io"
	"log"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// Without WithLogger nothing is written anywhere about events that are logged with it: neither to the output of the
// process nor to the default loggers of log, log/slog and zap.
func TestNothingIsLoggedByDefault(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	expireOne(t, session.WithLogger(zap.New(core)))
	if logs.Len() < 3 {
		t.Fatalf("%d lines with a logger, want those about two sessions", logs.Len())
	}

	before := logs.Len()
	defer zap.ReplaceGlobals(zap.New(core))()
	defer slog.SetDefault(slog.Default())
	var written bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&written, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.SetOutput(&written)
	defer log.SetOutput(os.Stderr)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = write, write
	expireOne(t)
	os.Stdout, os.Stderr = stdout, stderr
	write.Close()
	if _, err := io.Copy(&written, read); err != nil || written.Len() > 0 || logs.Len() > before {
		t.Errorf("written: %q, %v; %d lines to the default logger of zap", &written, err, logs.Len()-before)
	}
}

// expireOne has the servers end one session, and waits for the next one.
func expireOne(t *testing.T, opts ...session.Option) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := connect(t, srv, three, append(opts, session.WithDialer(srv.Dial))...)
		s := current(t, m)
		srv.Disconnect(s.ID())
		srv.ExpireSession(s.ID())
		<-s.Done()
		current(t, m)
	})
}
