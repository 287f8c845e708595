package zkserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// faced is the common interface of both kinds of ensemble.
type faced interface {
	Leader() int
	Followers() []int
	WaitLeader(not ...int) int
	WaitReady()
	Kill(i int)
	Start(i int)
	Restart(i int)
	Pause(i int)
	Resume(i int)
	Cut(i, j int)
	ResetEnd(i, j int)
	Depose() int
	HealAll()
}

// script applies faults to an ensemble and records the results that clients see.
type script struct {
	t    *testing.T
	e    faced
	dial func(i int) (net.Conn, error)
	// embedded is nil with real servers.
	embedded *zksynctest.EmbeddedEnsemble
	// cutAfter cuts server i off from all other servers after it has forwarded or proposed the
	// request that send sends, and before it hears of the result.
	cutAfter func(i int, send func())
	// limit makes server i grant timeouts of at most max from now on. It may restart the server.
	limit func(i int, max time.Duration)
	seen  []string
}

// comparison is a script for both kinds of ensemble, and the configuration of each kind.
type comparison struct {
	name   string
	tick   time.Duration
	limit  int // in ticks
	real   []zksynctest.RealOption
	config zkserver.Config // of the embedded ensemble, beyond tick and limit
	script func(*script)
}

func (c comparison) onReal(t *testing.T) []string {
	bounds.Long(t)
	opts := append([]zksynctest.RealOption{zksynctest.RealTickTime(c.tick), zksynctest.RealSyncLimit(c.limit)}, c.real...)
	e := zksynctest.RealZooKeeper(t, 3, opts...)
	s := &script{
		t: t, e: e,
		dial: func(i int) (net.Conn, error) { return net.Dial("tcp", e.Addr(i)) },
		cutAfter: func(i int, send func()) {
			const delay = 400 * time.Millisecond
			others := slices.DeleteFunc([]int{1, 2, 3}, func(other int) bool { return other == i })
			for _, other := range others {
				e.Delay(i, other, delay)
			}
			send()
			time.Sleep(3 * delay / 2) // the answer is on its way
			for _, other := range others {
				e.Cut(i, other)
				e.Delay(i, other, 0)
			}
		},
		limit: func(i int, max time.Duration) {
			e.SetProperty(i, "maxSessionTimeout", fmt.Sprint(max.Milliseconds()))
			e.Restart(i)
			e.WaitReady()
		},
	}
	c.script(s)
	return s.seen
}

func (c comparison) onEmbedded(t *testing.T) (seen []string) {
	bounds.Bubble(t, func(t *testing.T) {
		config := c.config
		config.TickTime, config.MaxSessionTimeout, config.SyncLimit = c.tick, time.Minute, c.limit
		config.ElectionTime, config.FourLetterWords = 200*time.Millisecond, []string{"*"}
		e := zksynctest.StartEnsemble(t, 3, zksynctest.WithConfig(config))
		s := &script{
			t: t, e: e, embedded: e,
			dial: func(i int) (net.Conn, error) { return e.Endpoint(i).Dial(context.Background(), "tcp", "") },
			cutAfter: func(i int, send func()) {
				e.Inject(zkserver.Fault{Endpoint: i, Do: zkserver.CutAfterForward})
				send()
				synctest.Wait()
			},
			limit: func(i int, max time.Duration) {
				if err := e.Endpoint(i).SetSessionTimeouts(2*c.tick, max); err != nil {
					t.Error(err)
				}
				e.Restart(i)
			},
		}
		c.script(s)
		seen = s.seen
	})
	return seen
}

func (s *script) note(format string, args ...any) {
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

func (s *script) open(i int) *raw {
	s.t.Helper()
	nc, err := s.dial(i)
	if err != nil {
		s.t.Fatal(err)
	}
	return rawOver(s.t, nc)
}

// usualTimeout is the timeout that clients of a script ask for.
const usualTimeout = 20 * time.Second

// connect opens a session on server i, or resumes the session of another connection.
func (s *script) connect(i int, of *raw) *raw {
	s.t.Helper()
	r := s.hello(i, of, 0, usualTimeout)
	s.welcome("", r)
	return r
}

// session opens a session with the given timeout.
func (s *script) session(i int, timeout time.Duration) *raw {
	s.t.Helper()
	r := s.hello(i, nil, 0, timeout)
	s.welcome("", r)
	return r
}

// hello sends a ConnectRequest, and leaves its answer to welcome.
func (s *script) hello(i int, of *raw, zxid int64, timeout time.Duration) *raw {
	s.t.Helper()
	r := s.open(i)
	if of == nil {
		of = r
	}
	// A real server identifies a request by its session and xid. After a session has moved away, it
	// may mistake the late commit of a request from the new server for the commit of a request that
	// waits here, on a busy machine.
	r.xid = of.xid + 1000
	r.hello(zxid, timeout, of.id, of.password)
	return r
}

// welcome reads the answer to hello. It records the answer under the name what, or only a failure
// if what is empty.
func (s *script) welcome(what string, r *raw) {
	s.t.Helper()
	in, how := s.read(r, 1500*time.Millisecond)
	switch {
	case in != nil:
		in.i32()
		r.timeout, r.id, r.password = in.i32(), in.i64(), in.str()
		if what != "" {
			s.note("%s: accepted %v", what, r.id != 0)
		}
	case what == "":
		s.note("the connection is %s without a session", how)
	default:
		s.note("%s: %s", what, how)
	}
}

// read waits for a frame, or describes the event that came instead.
func (s *script) read(r *raw, patience time.Duration) (*reading, string) {
	s.t.Helper()
	r.patience = patience
	defer func() { r.patience = 0 }()
	in, err := r.read()
	switch {
	case err == nil:
		return in, ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, "not answered"
	}
	return nil, "closed"
}

// outcome records the outcome of the request with that xid, and returns the zxid of its answer.
func (s *script) outcome(what string, r *raw, xid int32, patience time.Duration) int64 {
	s.t.Helper()
	in, how := s.read(r, patience)
	if in == nil {
		s.note("%s: %s", what, how)
		return 0
	}
	got, zxid, code := in.i32(), in.i64(), in.i32()
	s.note("%s: answered %v, code %d", what, got == xid, code)
	return zxid
}

// ask sends a request and records its outcome.
func (s *script) ask(what string, r *raw, op zkserver.OpCode, body []byte) int64 {
	s.t.Helper()
	return s.outcome(what, r, r.send(op, body), 1500*time.Millisecond)
}

// untilClosed sends pings until the connection is closed.
func (s *script) untilClosed(r *raw) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := r.nc.Write(rec{}.i32(8, -2, int32(zkserver.OpPing))); err != nil {
			return
		}
		if in, how := s.read(r, time.Second); in == nil && how == "closed" {
			return
		}
	}
	s.t.Error("the connection stays open")
}

func (s *script) command(i int, word string) string {
	s.t.Helper()
	r := s.open(i)
	r.write([]byte(word))
	var all strings.Builder
	for buf := make([]byte, 4096); ; {
		n, err := r.nc.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			return all.String()
		}
	}
}
