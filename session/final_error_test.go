package session_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// The error with which Connect gives up has the class Final and matches no end of a context, although the dialer or
// the SASL mechanism has reported the end of another context, or the loss of another session (finalError).
func TestClassOfAFailedConnect(t *testing.T) {
	final := func(t *testing.T, err, want error) {
		t.Helper()
		mustBe(t, err, want)
		wrapped := fmt.Errorf("start: %w", err)
		if c := session.ClassOf(wrapped); c != session.ClassFinal {
			t.Errorf("class %v of: %v", c, err)
		}
		for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
			if errors.Is(wrapped, end) {
				t.Errorf("%q matches %q", wrapped, end)
			}
		}
		if session.WaitReason(wrapped) != nil {
			t.Errorf("%q has a reason for a wait", wrapped)
		}
	}
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the key server is closed"))
	for name, refusal := range map[string]error{
		"deadline":     context.DeadlineExceeded,
		"cancelled":    session.CancelledWaiting(ended, errors.New("waiting for a key")),
		"lost session": session.ErrLost,
	} {
		t.Run("mechanism/"+name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				mechanism := steps{next: func([]byte) ([]byte, bool, error) { return nil, false, fmt.Errorf("key server: %w", refusal) }}
				_, err := session.Connect(t.Context(), three, session.WithDialer(srv.Dial), session.WithSASL(mechanism))
				final(t, err, session.ErrAuthFailed)
			}, zksynctest.WithConfig(zkserver.Config{SASLUsers: saslUsers}))
		})
	}
	t.Run("dialer", func(t *testing.T) {
		bounds.Bubble(t, func(t *testing.T) {
			var dials atomic.Int32 // the probes dial at the same time
			dial := func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials.Add(1) == 1 {
					<-ctx.Done() // as net.Dialer, when no answer to its SYN arrives
					return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
				}
				conn, server := net.Pipe()
				go serveHTTP(server)
				return conn, nil
			}
			_, err := session.Connect(t.Context(), "10.0.0.1", session.WithDialer(dial), session.WithTimeout(8*time.Second))
			final(t, err, session.ErrMisconfigured)
			var op *net.OpError
			if !errors.As(err, &op) {
				t.Errorf("%q does not have the error of the dial", err)
			}
		})
	})
}

// serveHTTP answers as an HTTP server that waits for the rest of any other request.
func serveHTTP(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, 100)
	if n, _ := conn.Read(buf); strings.HasPrefix(string(buf[:n]), "HEAD") {
		io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		return
	}
	io.Copy(io.Discard, conn)
}
