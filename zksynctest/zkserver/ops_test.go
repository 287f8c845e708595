package zkserver_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// Ops lists the requests in order, with the result of each request.
func TestOps(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpCreate, createRec("/n-", "", 2))
		r.want(zkserver.ErrNoNode, zkserver.OpGetData, rec{}.str("/no").flag(false))
		r.want(0, zkserver.OpMulti, multi(
			sub(zkserver.OpDelete, rec{}.str("/no").i32(-1)),
			sub(zkserver.OpCheck, rec{}.str("/").i32(-1))))
		now := time.Now()
		want := []zkserver.Op{
			{Time: now, Session: r.id, Endpoint: 1, Conn: 1, Code: zkserver.OpConnect, Zxid: 1, Done: true},
			{Time: now, Session: r.id, Endpoint: 1, Conn: 1, Xid: 1, Code: zkserver.OpCreate, Path: "/n-", Zxid: 2, Done: true},
			{Time: now, Session: r.id, Endpoint: 1, Conn: 1, Xid: 2, Code: zkserver.OpGetData, Path: "/no", Zxid: 2, Err: -101, Done: true},
			{
				Time: now, Session: r.id, Endpoint: 1, Conn: 1, Xid: 3, Code: zkserver.OpMulti, Zxid: 3, Done: true,
				Sub: []zkserver.SubOp{{Code: zkserver.OpDelete, Path: "/no", Err: -101}, {Code: zkserver.OpCheck, Path: "/", Err: -2}},
			},
		}
		if got := s.Ops(); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v\nwant %+v", got, want)
		}
		s.ResetOps()
		if got := s.Ops(); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
		r.want(0, zkserver.OpPing, nil)
		if got := s.Ops(); len(got) != 1 || got[0].Code != zkserver.OpPing {
			t.Fatalf("%+v", got)
		}
	})
}

// Ops returns the latest OpsKept requests.
func TestOpsKept(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		s := start(t, zkserver.Config{OpsKept: 3})
		r := session(t, s, 0)
		s.ResetOps()
		for i := range 11 {
			r.want(0, zkserver.OpPing, nil)
			got := s.Ops()
			if n := min(i+1, 3); len(got) != n || got[n-1].Xid != int32(i+1) || got[0].Xid != int32(i+2-n) {
				t.Fatalf("after %d: %+v", i+1, got)
			}
		}
	})
}

// Traffic counts the requests and bytes of a session over all its connections.
func TestTraffic(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(0, zkserver.OpPing, nil)
		want := zkserver.Traffic{Requests: 2, BytesIn: 48 + 12, BytesOut: 40 + 20}
		if got := s.Traffic(r.id); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		r.again(s).welcome().want(0, zkserver.OpPing, nil)
		synctest.Wait()
		want = zkserver.Traffic{Requests: 4, BytesIn: 2 * 60, BytesOut: 2 * 60}
		if got := s.Traffic(r.id); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if got := s.Traffic(1); got != (zkserver.Traffic{}) {
			t.Fatalf("%+v", got)
		}
	})
}

// Create, Set, Delete, Get and Children of a Server act like an operator's client: they fire
// watches and return the server's errors.
func TestOperator(t *testing.T) {
	inBubble(t, func(t *testing.T, s *zkserver.Server) {
		r := session(t, s, 0)
		r.want(zkserver.ErrNoNode, zkserver.OpExists, watchRec("/a"))
		steps := []struct {
			err  error
			want string
		}{
			{s.Create("/a", []byte("1")), ""},
			{s.Create("/a", nil), "zkserver: Create /a: zkserver: node exists"},
			{s.Set("/a", []byte("2")), ""},
			{s.Set("/b", nil), "zkserver: Set /b: zkserver: no node"},
			{s.Delete("/"), "zkserver: Delete /: zkserver: bad arguments"},
		}
		for i, step := range steps {
			if step.want == "" && step.err != nil || step.want != "" && (step.err == nil || step.err.Error() != step.want) {
				t.Errorf("step %d: %v, want %q", i, step.err, step.want)
			}
		}
		if ev := r.event(); ev != (event{1, "/a"}) || s.Zxid() != 6 {
			t.Fatalf("%v, zxid %d", ev, s.Zxid())
		}
		if data, ok := s.Get("/a"); !ok || string(data) != "2" {
			t.Fatalf("%q %v", data, ok)
		}
		names, ok := s.Children("/")
		slices.Sort(names)
		if !ok || !slices.Equal(names, []string{"a", "zookeeper"}) {
			t.Fatalf("%v %v", names, ok)
		}
		if err := s.Delete("/a"); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get("/a"); ok {
			t.Fatal("still there")
		}
		if _, ok := s.Children("/a"); ok {
			t.Fatal("still there")
		}
	})
}

// New refuses an invalid Config with an error that names the field.
func TestConfig(t *testing.T) {
	for field, cfg := range map[string]zkserver.Config{
		"TickTime":          {TickTime: time.Microsecond},
		"MinSessionTimeout": {MinSessionTimeout: -1},
		"MaxSessionTimeout": {MinSessionTimeout: time.Minute, MaxSessionTimeout: time.Second},
		"MaxClientConns":    {MaxClientConns: -1},
		"MaxFrame":          {MaxFrame: 1},
		"ReapInterval":      {ReapInterval: time.Microsecond},
		"NeverUsedTTL":      {NeverUsedTTL: -1},
		"SuperDigest":       {SuperDigest: "super"},
		"Without":           {Without: []zkserver.OpCode{zkserver.OpConnect}},
		"OpsKept":           {OpsKept: -1},
		"MaxConns":          {MaxConns: -2},
		"MaxAnswer":         {MaxAnswer: 100},
		"MaxQueued":         {MaxQueued: 100},
		"MaxQueuedTotal":    {MaxQueuedTotal: -2},
		"OpsBytes":          {OpsBytes: -2},
	} {
		if s, err := zkserver.New(cfg); err == nil || !strings.HasPrefix(err.Error(), "zkserver: Config."+field+" is ") {
			t.Errorf("%s: %v, %v", field, s, err)
		}
	}
	// A single bound never contradicts the default of the other bound.
	start(t, zkserver.Config{MaxSessionTimeout: time.Second})
	start(t, zkserver.Config{MinSessionTimeout: time.Hour})
}
