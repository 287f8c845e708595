// Package servers runs one test on both kinds of servers: the embedded one, and
// real Apache ZooKeeper where that is installed.
package servers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A Server has the operations that a test can use on either kind of server.
type Server interface {
	// Connect opens a session that is closed with the test.
	Connect(tb testing.TB, opts ...session.Option) *session.Manager
	// Address is a connection string that any client can use.
	Address() string
	// Disconnect breaks the connection of a session, and maybe of others.
	Disconnect(tb testing.TB, id int64)
	// Expire ends a session on the server, as its expiry would.
	Expire(tb testing.TB, id int64)
}

// Both runs test on an embedded server, reached in memory, and on a real server,
// which the tests of the package share. Each test must use paths of its own on the
// real server; Path makes one.
func Both(t *testing.T, test func(t *testing.T, srv Server)) {
	t.Run("zkserver", func(t *testing.T) {
		srv := zksynctest.Start(t, zksynctest.WithTick(500*time.Millisecond))
		test(t, embedded{srv})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		test(t, real{zksynctest.RealShared(t)})
	})
}

// Path is a path for one run of one test.
func Path(tb testing.TB) string {
	return "/" + sanitize(tb.Name()) + "-" + time.Now().UTC().Format("150405.000000000")
}

func sanitize(name string) string {
	b := []byte(name)
	for i, c := range b {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		default:
			b[i] = '_'
		}
	}
	return string(b)
}

type embedded struct{ srv *zksynctest.Server }

func (e embedded) Connect(tb testing.TB, opts ...session.Option) *session.Manager {
	tb.Helper()
	return e.srv.Connect(tb, opts...)
}

func (e embedded) Address() string { return e.srv.Addr() }

func (e embedded) Disconnect(tb testing.TB, id int64) {
	tb.Helper()
	if err := e.srv.Disconnect(id); err != nil {
		tb.Error(err)
	}
}

func (e embedded) Expire(tb testing.TB, id int64) {
	tb.Helper()
	if err := e.srv.ExpireSession(id); err != nil {
		tb.Error(err)
	}
}

type real struct{ *zksynctest.Ensemble }

func (r real) Address() string { return r.Servers() }

func (r real) Disconnect(testing.TB, int64) { r.Reset(zksynctest.Client, 1) }

// Expire takes the session over and closes it, unless it has ended already. A
// server recomputes the password from the id, so anyone can. The session's client may
// reconnect at the same moment; then the server closes our connection, and we try again.
func (r real) Expire(tb testing.TB, id int64) {
	tb.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		err := r.end(id, deadline)
		if err == nil {
			return
		}
		if !errors.Is(err, errTakenBack) || time.Now().After(deadline) {
			tb.Errorf("end session %#x: %v", id, err)
			return
		}
	}
}

// errTakenBack says that the server has closed a connection that was to end a session.
var errTakenBack = errors.New("the server has closed the connection")

// end tries once to end a session.
func (r real) end(id int64, deadline time.Time) error {
	conn, err := net.Dial("tcp", r.DirectAddr(1))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	be := binary.BigEndian
	req := be.AppendUint32(nil, 44)
	req = be.AppendUint32(req, 0)
	req = be.AppendUint64(req, 0)
	req = be.AppendUint32(req, 10_000)
	req = be.AppendUint64(req, uint64(id))
	req = be.AppendUint32(req, 16)
	req = append(req, password(id)...)
	// closeSession, directly behind the handshake: on a busy machine, the session's client could
	// always be faster than a request that waits for the answer.
	req = append(req, 0, 0, 0, 8, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xf5)
	answer := make([]byte, 4+36)
	if _, err = conn.Write(req); err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	switch granted := be.Uint64(answer[12:]); {
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET):
		return errTakenBack
	case err != nil:
		return err
	case granted == 0:
		return nil // as the server says, there is none
	case granted != uint64(id):
		return fmt.Errorf("the server has answered with another session: % x", answer)
	}
	// The answer to closeSession comes before the end of the connection.
	if rest, err := io.ReadAll(conn); len(rest) == 0 || err != nil && !errors.Is(err, syscall.ECONNRESET) {
		return errTakenBack
	}
	return nil
}

// password returns the bytes that java.util.Random yields when seeded with the id.
func password(id int64) []byte {
	const mult, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (uint64(id) ^ 0xB3415C00 ^ mult) & mask
	var p []byte
	for range 4 {
		seed = (seed*mult + 0xB) & mask
		p = binary.LittleEndian.AppendUint32(p, uint32(seed>>16))
	}
	return p
}
