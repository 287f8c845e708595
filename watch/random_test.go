package watch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/watch"
	"github.com/go-zksync/toolkit/zksynctest"
)

// A storm is a random history of one znode and its children, and readers that
// follow it while all goes wrong for them.
type storm struct {
	path    string
	writer  *session.Manager
	reader  *session.Manager
	changes int
	batch   int                    // changes in a transaction, at most
	every   int                    // changes from one fault to the next
	fault   func(rnd *rand.Rand)   // something bad for the reader's session
	pause   func(rnd *rand.Rand)   // between changes
	doze    func(rnd *rand.Rand)   // of the reader, between events
	settle  func(done func() bool) // waits until done, or for very long
}

// sequence checks that states come in order: an existing one by its zxids and by the
// count that the writer puts into the data, an absent one by the state after it.
type sequence struct {
	czxid, mzxid int64
	count        int
	last         watch.State
	events       int
}

func (q *sequence) take(t *testing.T, got watch.State) {
	q.events++
	if q.events > 1 && got.Exists == q.last.Exists && got.Stat.Czxid == q.last.Stat.Czxid && got.Stat.Mzxid == q.last.Stat.Mzxid {
		t.Errorf("told %+v twice", got)
	}
	if got.Exists {
		var count int
		fmt.Sscan(string(got.Data), &count)
		switch {
		case got.Stat.Mzxid <= q.mzxid, got.Stat.Czxid < q.czxid, count <= q.count:
			t.Errorf("told %q of zxid %#x, instance %#x, after %d of %#x, instance %#x",
				got.Data, got.Stat.Mzxid, got.Stat.Czxid, q.count, q.mzxid, q.czxid)
		case q.events > 1 && !q.last.Exists && got.Stat.Czxid <= q.mzxid:
			t.Errorf("told instance %#x again, after its removal", got.Stat.Czxid)
		}
		q.czxid, q.mzxid, q.count = got.Stat.Czxid, got.Stat.Mzxid, count
	}
	q.last = got
}

func (st storm) run(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := live(t, st.writer)
	states, lists := watch.Node(ctx, st.reader, st.path), watch.Children(ctx, st.reader, st.path)

	exists := false
	var children []string
	change := func(i int) any {
		data := fmt.Append(nil, i)
		switch {
		case !exists:
			exists = true
			return &zk.CreateRequest{Path: st.path, Data: data}
		case rnd.IntN(8) == 0 && len(children) == 0:
			exists = false
			return &zk.DeleteRequest{Path: st.path, Version: -1}
		case rnd.IntN(4) == 0 && len(children) > 0:
			name := children[0]
			children = children[1:]
			return &zk.DeleteRequest{Path: st.path + "/" + name, Version: -1}
		case rnd.IntN(8) == 0:
			name := fmt.Sprintf("%08d", i)
			children = append(children, name)
			return &zk.CreateRequest{Path: st.path + "/" + name}
		default:
			return &zk.SetDataRequest{Path: st.path, Data: data, Version: -1}
		}
	}

	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := 1; i <= st.changes; {
			var ops []any
			for range 1 + rnd.IntN(st.batch) {
				if ops = append(ops, change(i)); i%st.every == 0 {
					st.fault(rnd)
				}
				i++
			}
			if _, err := s.Multi(ctx, ops...); err != nil {
				t.Error(err)
				return
			}
			st.pause(rnd)
		}
	}()

	var q sequence
	var names []string
	listed := 0
	dozing := rand.New(rand.NewPCG(seed, 2))
	ending := false
	for done := written; !ending; {
		select {
		case got := <-states.Events():
			q.take(t, got)
			st.doze(dozing)
		case names = <-lists.Events():
			listed++
			st.doze(dozing)
		case <-done:
			ending = true
		}
	}
	truth := watch.State{Path: st.path, Exists: exists}
	if exists {
		data, stat, err := s.Get(ctx, st.path)
		must(t, err)
		truth.Data, truth.Stat = data, *stat
	}
	told := func() bool {
		for {
			select {
			case got := <-states.Events():
				q.take(t, got)
			case names = <-lists.Events():
			default:
				return q.last.Stat.Mzxid == truth.Stat.Mzxid && q.last.Exists == truth.Exists &&
					strings.Join(names, " ") == strings.Join(children, " ")
			}
		}
	}
	st.settle(told)
	if !told() {
		t.Errorf("seed %d: the last state told is %+v with children %v, the true one %+v with %v", seed, q.last, names, truth, children)
	}
	t.Logf("%d states and %d lists were told of %d changes", q.events, listed, st.changes)
}

// Node and Children report every state that lasts, and never an older one after a newer one, over connections and
// sessions.
func TestNodeAndChildrenInAStorm(t *testing.T) {
	const seed = 7
	t.Run("zkserver", func(t *testing.T) {
		bounds.Bubble(t, func(t *testing.T) {
			srv := zksynctest.Start(t)
			st := storm{path: "/a", writer: srv.Connect(t), reader: srv.Connect(t), changes: 10_000, batch: 1, every: 150}
			st.fault = func(rnd *rand.Rand) {
				s, err := st.reader.Session(context.Background())
				must(t, err)
				switch rnd.IntN(5) {
				case 0:
					srv.ExpireSession(s.ID()) // it may be over
				case 1:
					srv.Lag(s.ID())
				case 2:
					srv.Partition(s.ID())
					time.AfterFunc(upTo(rnd, 30*time.Second), func() { srv.Heal(s.ID()) })
				case 3:
					srv.HangHandshake(true)
					srv.Disconnect(s.ID())
					time.AfterFunc(upTo(rnd, 5*time.Second), func() { srv.HangHandshake(false) })
				default:
					srv.Disconnect(s.ID())
				}
			}
			st.pause = func(rnd *rand.Rand) { time.Sleep(upTo(rnd, 50*time.Millisecond)) }
			st.doze = func(rnd *rand.Rand) { time.Sleep(upTo(rnd, 500*time.Millisecond)) }
			st.settle = func(func() bool) { time.Sleep(10 * time.Minute) }
			before := heap()
			st.run(t, seed)
			if grown := heap() - before; grown > 24<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
		})
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		onReal(t, func(t *testing.T, srv servers.Server) {
			st := storm{
				path: servers.Path(t), reader: srv.Connect(t, session.WithTimeout(4*time.Second)),
				// Links of its own, which the reader's faults do not touch.
				writer: zksynctest.RealShared(t).Connect(t), changes: bounds.Size(4_000, 10_000), batch: 10, every: 200,
			}
			st.fault = func(rnd *rand.Rand) {
				s, err := st.reader.Session(context.Background())
				must(t, err)
				if rnd.IntN(3) == 0 {
					srv.Expire(t, s.ID())
				} else {
					srv.Disconnect(t, s.ID())
				}
			}
			st.pause = func(*rand.Rand) {}
			st.doze = func(rnd *rand.Rand) {
				if rnd.IntN(10) == 0 {
					time.Sleep(upTo(rnd, 20*time.Millisecond))
				}
			}
			st.settle = func(done func() bool) {
				for limit := time.Now().Add(time.Minute); !done() && time.Now().Before(limit); {
					time.Sleep(10 * time.Millisecond)
				}
			}
			st.run(t, seed)
		})
	})
}

// onReal runs test on a real server alone.
func onReal(t *testing.T, test func(t *testing.T, srv servers.Server)) {
	t.Helper()
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		if strings.HasSuffix(t.Name(), "/ZooKeeper") {
			test(t, srv)
		}
	})
}

func upTo(rnd *rand.Rand, d time.Duration) time.Duration { return time.Duration(rnd.Int64N(int64(d))) }
