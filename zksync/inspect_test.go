package zksync_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// inspected returns the parts of an Inspection that a test compares.
func inspected(i *zksync.Inspection) string {
	var b []string
	for _, p := range i.Participants {
		state := "waits"
		if p.Holds {
			state = "holds"
		}
		b = append(b, fmt.Sprintf("%s %v %s %s", p.ID, p.Class, state, p.Client))
	}
	return fmt.Sprintf("%v %v %d [%s]", i.Kind, i.Clients, i.Depth, strings.Join(b, ", "))
}

// layoutOf has the znodes that a client leaves: paths below the inspected path, and data.
// A path that ends with * is an ephemeral.
type layoutOf [][2]string

func (l layoutOf) create(t *testing.T, s *session.Session, path string) {
	t.Helper()
	for _, z := range l {
		flags := int32(zk.FlagPersistent)
		name, ephemeral := strings.CutSuffix(z[0], "*")
		if ephemeral {
			flags = zk.FlagEphemeral
		}
		_, err := s.Create(t.Context(), path+name, []byte(z[1]), flags)
		must(t, err)
	}
}

const uuid = "0a1b2c3d-0a1b-4c3d-8a1b-0a1b2c3d4e5f"

var hexUUID = strings.ReplaceAll(uuid, "-", "")

// The participants of a double barrier wait until it opens, and hold from then on.
func TestInspectDoubleBarrier(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		a, b := zksync.NewDoubleBarrier(m, "/b", 2), zksync.NewDoubleBarrier(m, "/b", 2)
		want := func(depth, holders int) {
			t.Helper()
			i, err := zksync.Inspect(t.Context(), m, "/b")
			must(t, err)
			if i.Kind != zksync.KindDoubleBarrier || i.Depth != depth || len(i.Holders()) != holders {
				t.Errorf("%v: %d participants wait and %d hold, want %d and %d", i.Kind, i.Depth, len(i.Holders()), depth, holders)
			}
		}
		in := entering(t.Context(), a)
		want(1, 0)
		mustEnter(t, b)
		mustEnd(t, "Enter", in, nil)
		want(0, 2)
		out := leaving(t.Context(), a)
		want(0, 1)
		mustLeave(t, b)
		mustEnd(t, "Leave", out, nil)
	})
}

// Inspect recognises the primitives of other clients by their znodes, as the clients
// name them. To see this test fail, take any case out of inspector.kind or clientOf.
func TestInspectOtherClients(t *testing.T) {
	cases := []struct {
		znodes layoutOf
		want   string
	}{
		{layoutOf{{"", ""}, {"/_c_" + uuid + "-lock-0000000003*", "10.0.0.7"}, {"/_c_" + uuid + "-lock-0000000004*", "host:12"}},
			"lock [Curator zksync] 1 [10.0.0.7 exclusive holds Curator, host:12 exclusive waits zksync]"},
		{layoutOf{{"", ""}, {"/_c_" + uuid + "-lock-0000000003*", "node-1"}},
			"lock [zksync or Curator] 0 [node-1 exclusive holds zksync or Curator]"},
		{layoutOf{{"", ""}, {"/_c_" + hexUUID + "-lock-0000000003*", ""}}, "lock [go-zookeeper] 0 [ exclusive holds go-zookeeper]"},
		{layoutOf{{"", ""}, {"/" + hexUUID + "__lock__0000000003*", "py"}}, "lock [kazoo] 0 [py exclusive holds kazoo]"},
		{layoutOf{{"", ""}, {"/x-72057594037927936-0000000001*", ""}}, "lock [ZooKeeper recipe] 0 [ exclusive holds ZooKeeper recipe]"},
		{layoutOf{{"", ""}, {"/_c_" + uuid + "-__READ__0000000003*", "10.0.0.7"}, {"/_c_" + uuid + "-__WRIT__0000000004*", "10.0.0.8"}},
			"rwlock [Curator] 1 [10.0.0.7 reader holds Curator, 10.0.0.8 writer waits Curator]"},
		{layoutOf{{"", ""}, {"/" + hexUUID + "__rlock__0000000003*", "py"}, {"/" + hexUUID + "__lock__0000000004*", "py2"}},
			"rwlock [kazoo] 1 [py reader holds kazoo, py2 writer waits kazoo]"},
		{layoutOf{{"", ""}, {"/_c_" + uuid + "-latch-0000000003*", "a"}}, "election [zksync or Curator] 0 [a exclusive holds zksync or Curator]"},
		{layoutOf{{"*", "broker-1"}}, "election [] 0 [broker-1 exclusive holds ]"},
		{layoutOf{{"", ""}, {"/locks", ""}, {"/leases", ""}, {"/leases/_c_" + uuid + "-lease-0000000001*", "10.0.0.7"}, {"/locks/_c_" + uuid + "-lock-0000000002*", "10.0.0.8"}},
			"semaphore [Curator] 1 [10.0.0.7 unit holds Curator, 10.0.0.8 exclusive waits Curator]"},
		{layoutOf{{"", ""}, {"/leases", ""}, {"/leases/_c_" + uuid + "-lease-0000000001*", "10.0.0.7"}}, "semaphore [Curator] 0 [10.0.0.7 unit holds Curator]"},
		{layoutOf{{"", ""}, {"/leases", ""}, {"/leases/host-1*", ""}}, "directory [] 0 []"},
		{layoutOf{{"", "3"}, {"-__lock__", ""}, {"/" + hexUUID + "*", "py"}, {"-__lock__/" + hexUUID + "__lock__0000000004*", "py2"}},
			"semaphore [kazoo] 1 [py unit holds kazoo, py2 exclusive waits kazoo]"},
		{layoutOf{{"", ""}, {"/qn-0000000001", "x"}, {"/qn-0000000002", "y"}}, "queue [] 2 []"},
		{layoutOf{{"", ""}, {"/queue-0000000001", "x"}}, "queue [Curator] 1 []"},
		{layoutOf{{"", ""}, {"/entry-100-0000000001", "x"}}, "queue [kazoo] 1 []"},
		{layoutOf{{"", ""}, {"/entries", ""}, {"/entries/entry-100-0000000001", "x"}, {"/taken", ""}}, "queue [kazoo] 1 []"},
		{layoutOf{{"", ""}, {"/" + uuid + "*", ""}}, "double barrier [Curator] 1 [" + uuid + " member waits Curator]"},
		{layoutOf{{"", ""}, {"/" + hexUUID + "*", ""}, {"/ready", ""}}, "double barrier [kazoo] 0 [" + hexUUID + " member holds kazoo]"},
		{layoutOf{{"", ""}, {"/node-1*", "data"}, {"/note", ""}}, "group [] 0 [node-1 member holds ]"},
		{layoutOf{{"", ""}, {"/locks", ""}}, "directory [] 0 []"},
		{layoutOf{{"", ""}}, "barrier [] 0 []"},
	}
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		s := live(t, m)
		dir := servers.Path(t)
		must(t, s.MakeDir(t.Context(), dir))
		for i, c := range cases {
			path := fmt.Sprintf("%s/%d", dir, i)
			c.znodes.create(t, s, path)
			got, err := zksync.Inspect(t.Context(), m, path)
			if err != nil {
				t.Errorf("%v: %v", c.znodes, err)
			} else if inspected(got) != c.want {
				t.Errorf("%v:\n got %s\nwant %s", c.znodes, inspected(got), c.want)
			}
		}
		_, err := zksync.Inspect(t.Context(), m, dir+"/absent")
		mustBe(t, err, zk.ErrNoNode, "inspect", dir+"/absent")
		_, err = zksync.Inspect(t.Context(), m, "absent")
		mustBe(t, err, session.ErrInvalidPath, "inspect", "absent")
	})
}

// Inspect recognises a Semaphore with LayoutKazoo by the names of its units if its path existed without the size as data.
// Breaks if inspector.kind does not look for LeaseRule.
func TestInspectSemaphoreWithoutASize(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		must(t, srv.Create("/s", nil))
		m := srv.Connect(t)
		must(t, zksync.NewSemaphore(m, "/s", 2, zksync.WithLayout(zksync.LayoutKazoo), zksync.WithID("a:1")).Acquire(t.Context(), 1))
		found, err := zksync.Inspect(t.Context(), m, "/s")
		must(t, err)
		if got, want := inspected(found), "semaphore [zksync] 0 [a:1 unit holds zksync]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Inspect shows the holders of a semaphore when the server has removed the directory of its empty line.
func TestInspectSemaphoreWithoutALine(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		must(t, zksync.NewSemaphore(m, "/sem", 3, zksync.WithID("host:1")).Acquire(t.Context(), 1))
		if n := srv.ReapNow(); n != 1 {
			t.Fatalf("the server has removed %d containers, want the directory of the line alone", n)
		}
		got, err := zksync.Inspect(t.Context(), m, "/sem")
		must(t, err)
		if want := "semaphore [zksync] 0 [host:1 unit holds zksync]"; inspected(got) != want {
			t.Errorf("got %s, want %s", inspected(got), want)
		}
	})
}

// Inspect recognises each primitive of this package while it is in use.
func TestInspectOwn(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m := srv.Connect(t)
		dir, ctx := servers.Path(t), t.Context()
		me := zksync.WithID("host:1")
		mu, rw := zksync.NewMutex(m, dir+"/mutex", me), zksync.NewRWMutex(m, dir+"/rw", me)
		sem, kazooSem := zksync.NewSemaphore(m, dir+"/sem", 3, me), zksync.NewSemaphore(m, dir+"/ksem", 3, me, asKazoo)
		latch, one := zksync.NewElection(m, dir+"/latch", me), zksync.NewElection(m, dir+"/one", me, byEphemeral)
		q, pq := zksync.NewQueue(m, dir+"/queue"), zksync.NewPriorityQueue(m, dir+"/pqueue")
		defer q.Close()
		defer pq.Close()
		barrier, double := zksync.NewBarrier(m, dir+"/barrier"), zksync.NewDoubleBarrier(m, dir+"/double", 1, zksync.WithID("a"))
		must(t, errors.Join(mu.Lock(ctx), rw.RLock(ctx), sem.Acquire(ctx, 2), kazooSem.Acquire(ctx, 1)))
		_, err := latch.Campaign(ctx)
		must(t, err)
		_, err = one.Campaign(ctx)
		must(t, err)
		must(t, errors.Join(q.Put(ctx, []byte("x")), q.Put(ctx, []byte("y")), pq.Put(ctx, []byte("x"), 7)))
		must(t, errors.Join(barrier.Set(ctx), double.Enter(ctx)))
		member, err := zksync.NewGroup(m, dir+"/group").Join(ctx, "node-1", nil)
		must(t, err)
		for name, want := range map[string]string{
			"mutex":   "lock [zksync] 0 [host:1 exclusive holds zksync]",
			"rw":      "rwlock [zksync] 0 [host:1 reader holds zksync]",
			"sem":     "semaphore [zksync] 0 [host:1 unit holds zksync, host:1 unit holds zksync]",
			"ksem":    "semaphore [zksync] 0 [host:1 unit holds zksync]",
			"latch":   "election [zksync] 0 [host:1 exclusive holds zksync]",
			"one":     "election [] 0 [host:1 exclusive holds ]",
			"queue":   "queue [zksync] 2 []",
			"pqueue":  "queue [zksync] 1 []",
			"barrier": "barrier [] 0 []",
			"double":  "double barrier [zksync] 0 [member-a member holds zksync]",
			"group":   "group [] 0 [node-1 member holds ]",
		} {
			got, err := zksync.Inspect(ctx, m, dir+"/"+name)
			must(t, err)
			if inspected(got) != want {
				t.Errorf("%s:\n got %s\nwant %s", name, inspected(got), want)
			}
			if holders := got.Holders(); len(holders) > 0 && holders[0].Session != live(t, m).ID() {
				t.Errorf("%s is held by %+v, want session %#x", name, holders, live(t, m).ID())
			}
		}
		must(t, errors.Join(mu.Unlock(), rw.RUnlock(), sem.Release(2), kazooSem.Release(1), latch.Resign(), one.Resign(), double.Leave(ctx), member.Leave()))
		got, err := zksync.Inspect(ctx, m, dir+"/mutex")
		must(t, err)
		if got.Kind != zksync.KindEmpty || !slices.Equal(got.Holders(), nil) {
			t.Errorf("a lock that is not in use: %s", inspected(got))
		}
	})
}

// Len and Inspect count the messages that Retry has put off, and Inspect shows the consumers of a queue.
func TestInspectAQueueInUse(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		m, path, ctx := srv.Connect(t), servers.Path(t), t.Context()
		q := zksync.NewQueue(m, path)
		defer q.Close()
		must(t, q.PutAll(ctx, []byte("x"), []byte("y")))
		must(t, (<-q.Messages()).Retry(ctx, time.Hour))
		<-q.Messages()
		if n, err := q.Len(ctx); n != 2 || err != nil {
			t.Errorf("Len: %d, %v, want 2", n, err)
		}
		got, err := zksync.Inspect(ctx, m, path)
		must(t, err)
		if got.Kind != zksync.KindQueue || got.Depth != 2 || len(got.Participants) != 1 || got.Participants[0].Session != live(t, m).ID() {
			t.Errorf("%+v, want a queue with 2 messages and a consumer of session %#x", got, live(t, m).ID())
		}
	})
}
