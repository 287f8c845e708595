package zksync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const markersPath = queuePath + "/zksync-markers"

// markers are the paths of the markers.
func markers(t testing.TB, srv *zksynctest.Server) []string {
	t.Helper()
	names, _ := srv.Children(markersPath)
	for i, name := range names {
		names[i] = markersPath + "/" + name
	}
	return names
}

// The first Puts succeed when the connection breaks while their marker is created.
func TestPutWhileTheMarkerIsMade(t *testing.T) {
	for _, op := range []zksynctest.OpCode{zkserver.OpCreate, zkserver.OpCreateContainer} {
		for _, at := range []zksynctest.Moment{zksynctest.BeforeCommit, zksynctest.AfterCommit} {
			for nth := 1; nth < 5; nth++ {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					q := newQueue(t, srv)
					srv.Inject(zksynctest.Fault{Op: op, Nth: nth, At: at, Do: zksynctest.Disconnect})
					put(t, q, "first", "second")
					wantMessages(t, srv, "first", "second")
					if got := markers(t, srv); len(got) != 1 {
						t.Errorf("the markers are %v", got)
					}
				})
			}
		}
	}
}

// Somebody writes to a marker while a request is lost, also the data that it has: neither Put nor Take reports a
// success that has not happened (commit: the data in marker.readOutcome).
func TestMarkerIsWrittenToWhileARequestIsLost(t *testing.T) {
	const same = "the same data"
	for _, c := range []struct{ op, data string }{{"Put", "an operator"}, {"Take", "an operator"}, {"Put", ""}, {"Take", ""}, {"Put", same}, {"Take", same}} {
		t.Run(c.op+" "+c.data, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				op := c.op
				m := srv.Connect(t)
				offer(t, srv.Connect(t), queuePath, 0, 2)
				q := zksync.NewQueue(m, queuePath)
				defer closeQueue(t, q)
				put(t, q, "2")
				if _, err := q.Take(t.Context()); err != nil {
					t.Fatal("Take:", err)
				}
				f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: zksynctest.Call(func() {
					for _, path := range markers(t, srv) {
						data := []byte(c.data)
						if c.data == same {
							data, _ = srv.Get(path)
						}
						must(t, srv.Set(path, data))
					}
				})}
				srv.Inject(f)
				f.Do = zksynctest.Disconnect
				srv.Inject(f)
				var err error
				if op == "Put" {
					err = q.Put(t.Context(), []byte("3"))
				} else {
					_, err = q.Take(t.Context())
				}
				if left, _ := leftItems(srv, queuePath); err == nil && len(left) == 2 {
					t.Errorf("%s has succeeded, but nothing has changed: %v", op, left)
				}
			})
		})
	}
}

// A marker that was deleted or changed between Puts is created again, and Close deletes it.
func TestMarkerIsRemovedWhileIdle(t *testing.T) {
	for what, harm := range map[string]func(t *testing.T, srv *zksynctest.Server, marker string) error{
		"removed": func(_ *testing.T, srv *zksynctest.Server, marker string) error { return srv.Delete(marker) },
		"changed": func(_ *testing.T, srv *zksynctest.Server, marker string) error { return srv.Set(marker, []byte("x")) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				q := newQueue(t, srv)
				put(t, q, "first")
				if err := harm(t, srv, markers(t, srv)[0]); err != nil {
					t.Fatal(err)
				}
				put(t, q, "second", "third")
				wantMessages(t, srv, "first", "second", "third")
				q.Close()
				if got := markers(t, srv); len(got) != 0 {
					t.Errorf("left behind: %v", got)
				}
			})
		})
	}
}

// A Put whose marker was deleted or changed and whose answer is lost is ErrOutcomeUnknown.
func TestMarkerIsRemovedInTheMiddle(t *testing.T) {
	for what, harm := range map[string]func(srv *zksynctest.Server, marker string){
		"removed": func(srv *zksynctest.Server, marker string) { srv.Delete(marker) },
		"changed": func(srv *zksynctest.Server, marker string) { srv.Set(marker, []byte("x")) },
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				q := newQueue(t, srv)
				put(t, q, "first")
				marker := markers(t, srv)[0]
				onMulti(srv, zksynctest.AfterCommit, 1, zksynctest.Call(func() { harm(srv, marker) }), zksynctest.Disconnect)
				err := q.Put(t.Context(), []byte("second"))
				if !errors.Is(err, zksync.ErrOutcomeUnknown) || !strings.Contains(err.Error(), queuePath) {
					t.Errorf("Put: %v, want ErrOutcomeUnknown, and the path", err)
				}
				put(t, q, "third")
				wantMessages(t, srv, "first", "second", "third")
				q.Close()
				if got := markers(t, srv); len(got) != 0 {
					t.Errorf("left behind: %v", got)
				}
			})
		})
	}
}

// Markers of processes that died are deleted after a day.
func TestMarkersOfTheDeadAreSwept(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		dead := srv.Connect(t)
		put(t, zksync.NewQueue(dead, queuePath), "first")
		dead.Close()
		old := newQueue(t, srv)
		put(t, old, "second")
		time.Sleep(23 * time.Hour)
		live := newQueue(t, srv)
		put(t, live, "third")
		if got := markers(t, srv); len(got) != 3 {
			t.Errorf("before the day is over the markers are %v", got)
		}
		time.Sleep(2 * time.Hour)
		put(t, newQueue(t, srv), "fourth")
		synctest.Wait() // it is done in the background
		if got := markers(t, srv); len(got) != 2 {
			t.Errorf("after a day the markers are %v", got)
		}
		put(t, old, "fifth") // makes itself another one
		wantMessages(t, srv, "first", "second", "third", "fourth", "fifth")
	})
}

// However many markers producers have left, the first Put of a value does not wait for
// them to be swept, and they go in few requests (commit: background in marker.ensure).
func TestSweepingDoesNotDelayPut(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		first := newQueue(t, srv)
		put(t, first, "first")
		const dead = 3000
		for i := range dead {
			if err := srv.Create(fmt.Sprintf("%s/%08d-0000-0000-0000-000000000000", markersPath, i), nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(25 * time.Hour)
		q := newQueue(t, srv)
		srv.Inject(zksynctest.Fault{Times: -1, Do: zksynctest.Delay(time.Millisecond)})
		srv.ResetOps()
		began := time.Now()
		put(t, q, "second")
		if took := time.Since(began); took > 20*time.Millisecond {
			t.Errorf("the first Put took %v", took)
		}
		time.Sleep(10 * time.Second)
		if left := markers(t, srv); len(left) != 1 {
			t.Errorf("%d markers are left, want one", len(left))
		}
		if ops := requests(srv); len(ops) > 50 {
			t.Errorf("%d requests to sweep %d markers", len(ops), dead)
		}
	})
}
