package zkserver_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// faced is what both kinds of ensemble can be asked for.
type faced interface {
	Addr(i int) string
	Leader() int
	Followers() []int
	WaitLeader(not ...int) int
	WaitReady()
	Kill(i int)
	Cut(i, j int)
	HealAll()
}

// script goes through faults of an ensemble and notes what clients see.
type script struct {
	t    *testing.T
	e    faced
	seen []string
}

func (s *script) note(format string, args ...any) {
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

// connect makes a session on server i, or goes on with one, and notes if it
// cannot.
func (s *script) connect(i int, of *raw) *raw {
	s.t.Helper()
	nc, err := net.Dial("tcp", s.e.Addr(i))
	if err != nil {
		s.t.Fatal(err)
	}
	r := rawOver(s.t, nc)
	if of == nil {
		of = r
	}
	// A real server knows a request again by its session and xid. Where a session has
	// moved away it may take the commit of a request from there, which comes late on
	// a busy machine, for that of one that waits here.
	r.xid = of.xid + 1000
	r.hello(0, 20*time.Second, of.id, of.password)
	in, err := r.read()
	if err != nil {
		s.note("the connection is closed without a session")
		return r
	}
	in.i32()
	r.timeout, r.id, r.password = in.i32(), in.i64(), in.str()
	return r
}

// ask notes what becomes of a request, and returns the zxid of the answer.
func (s *script) ask(what string, r *raw, op zkserver.OpCode, body []byte) int64 {
	xid := r.send(op, body)
	r.patience = 1500 * time.Millisecond
	defer func() { r.patience = 0 }()
	in, err := r.read()
	switch {
	case err == nil:
		got, zxid, code := in.i32(), in.i64(), in.i32()
		s.note("%s: answered %v, code %d", what, got == xid, code)
		return zxid
	case strings.Contains(err.Error(), "timeout"):
		s.note("%s: no answer", what)
	default:
		s.note("%s: closed", what)
	}
	return 0
}

func (s *script) moves() {
	leader, followers := s.e.Leader(), s.e.Followers()
	for _, from := range []int{followers[0], leader} {
		for _, op := range []zkserver.OpCode{zkserver.OpPing, zkserver.OpExists, zkserver.OpSync, zkserver.OpSetData} {
			body := map[zkserver.OpCode][]byte{
				zkserver.OpExists: existsRec("/"), zkserver.OpSync: rec{}.str("/"), zkserver.OpSetData: setRec("/"),
			}[op]
			old := s.connect(from, nil)
			moved := s.connect(followers[1], old)
			before := s.ask("write", moved, zkserver.OpSetData, setRec("/"))
			s.ask(fmt.Sprintf("%v where the session was, leader %v", op, from == leader), old, op, body)
			after := s.ask("write", moved, zkserver.OpSetData, setRec("/"))
			s.note("%d transactions", after-before)
			s.ask("close", moved, zkserver.OpCloseSession, nil)
			old.nc.Close()
		}
	}
}

func (s *script) cut() {
	leader, f := s.e.Leader(), s.e.Followers()
	r, behind := s.connect(f[0], nil), s.connect(f[0], nil)
	s.e.Cut(f[0], leader)
	s.e.Cut(f[0], f[1])
	begin := time.Now()
	s.ask("cut off: ping", r, zkserver.OpPing, nil)
	s.ask("cut off: exists", r, zkserver.OpExists, existsRec("/"))
	behind.send(zkserver.OpSync, rec{}.str("/"))
	behind.send(zkserver.OpExists, existsRec("/"))
	s.ask("cut off: ping behind a sync", behind, zkserver.OpPing, nil)
	if _, err := r.read(); err != nil {
		ticks := time.Since(begin) / realzkTick
		s.note("closed after its sync limit of 5 ticks: %v", ticks >= 4 && ticks <= 7)
	}
	s.connect(f[0], r)
	again := s.connect(f[1], r)
	s.ask("the session lives elsewhere", again, zkserver.OpSetData, setRec("/"))
	s.e.HealAll()
	s.e.WaitReady()
	s.ask("and there still", again, zkserver.OpExists, existsRec("/"))
}

const realzkTick = 500 * time.Millisecond

func (s *script) killLeader() {
	leader, f := s.e.Leader(), s.e.Followers()
	r := s.connect(f[0], nil)
	last := s.ask("before", r, zkserver.OpCreate, createRec("/e", "", 1))
	s.e.Kill(leader)
	if _, err := r.read(); err != nil {
		s.note("clients of followers are closed with the leader's end")
	}
	next := s.e.WaitLeader(leader)
	s.e.WaitReady()
	i := slices.IndexFunc(f, func(i int) bool { return i != next })
	led, follows := s.connect(next, nil), s.connect(f[i], r)
	s.note("epoch %d", s.ask("exists", led, zkserver.OpExists, existsRec("/e"))>>32-last>>32)
	zxid := s.ask("write", follows, zkserver.OpSetData, setRec("/e"))
	s.note("transaction %d of epoch %d", int32(zxid), zxid>>32-last>>32)
}

// TestLikeARealEnsemble has the same done to three real servers and to three
// endpoints, and wants their clients to see the same.
func TestLikeARealEnsemble(t *testing.T) {
	run := func(t *testing.T, e faced) []string {
		s := &script{t: t, e: e}
		s.moves()
		s.cut()
		s.killLeader()
		return s.seen
	}
	real := run(t, zksynctest.RealZooKeeper(t, 3))
	embedded := run(t, zksynctest.StartEnsemble(t, 3, zksynctest.WithTick(realzkTick)))
	if !slices.Equal(real, embedded) {
		t.Fatalf("real:\n%s\nembedded:\n%s", strings.Join(real, "\n"), strings.Join(embedded, "\n"))
	}
	for _, line := range real {
		t.Log(line)
	}
}
