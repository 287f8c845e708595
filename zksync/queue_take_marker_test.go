package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// withoutMarker loses the answer to the next transaction of a queue, or the
// transaction itself, and has its marker removed before the marker can show the
// outcome. meanwhile runs at the same moment.
func withoutMarker(t testing.TB, srv *zksynctest.Server, id int64, happens bool, meanwhile func()) {
	t.Helper()
	at := zksynctest.BeforeCommit
	if happens {
		at = zksynctest.AfterCommit
	}
	f := zksynctest.Fault{Session: id, Op: zkserver.OpMulti, At: at, Do: zksynctest.Call(func() {
		for _, path := range markers(t, srv) {
			srv.Delete(path)
		}
		meanwhile()
	})}
	srv.Inject(f)
	f.Do = zksynctest.Disconnect
	srv.Inject(f)
}

// If the answer and the marker of a Take are lost, the message itself shows the
// outcome.
func TestTakeWithoutTheMarker(t *testing.T) {
	for _, c := range []struct {
		what      string
		happens   bool
		meanwhile func(srv *zksynctest.Server)
		unknown   bool
	}{
		{"taken by us", true, func(*zksynctest.Server) {}, true},
		{"taken by a client of the recipe", false, func(srv *zksynctest.Server) { srv.Delete(queuePath + "/qn-0000000002") }, true},
		{"still there", false, func(*zksynctest.Server) {}, false},
	} {
		for _, try := range []bool{false, true} {
			t.Run(fmt.Sprint(c.what, " TryTake ", try), func(t *testing.T) {
				bubble(t, func(t *testing.T, srv *zksynctest.Server) {
					m := srv.Connect(t)
					q := zksync.NewQueue(m, queuePath)
					offer(t, srv.Connect(t), queuePath, 0, 3)
					takes(t, q, "0")
					withoutMarker(t, srv, live(t, m).ID(), c.happens, func() { c.meanwhile(srv) })
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					data, ok := []byte(nil), true
					var err error
					if try {
						data, ok, err = q.TryTake(ctx)
					} else {
						data, err = q.Take(ctx)
					}
					// The message comes along, so that it is not lost.
					if string(data) != "1" || !ok {
						t.Errorf("took %q, %v, want 1", data, ok)
					}
					if errors.Is(err, zksync.ErrOutcomeUnknown) != c.unknown || !c.unknown && err != nil {
						t.Errorf("Take: %v, want an unknown outcome: %v", err, c.unknown)
					}
					takes(t, q, "2")
					closeQueue(t, q)
					wantLeft(t, srv, 0, 0)
				})
			})
		}
	}
}

// A Take that is cancelled while its removal is under way returns the data, also if
// the marker does not tell the outcome, and the next Take is correct.
func TestTakeCancelledWithoutTheMarker(t *testing.T) {
	for what, happens := range map[string]bool{"taken": true, "still there": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				offer(t, srv.Connect(t), queuePath, 0, 3)
				takes(t, q, "0")
				ctx, cancel := context.WithCancel(t.Context())
				withoutMarker(t, srv, live(t, m).ID(), happens, func() {
					cancel()
					time.Sleep(time.Second)
				})
				data, err := q.Take(ctx)
				if string(data) != "1" || !errors.Is(err, context.Canceled) || !errors.Is(err, zksync.ErrOutcomeUnknown) {
					t.Errorf("Take: %q, %v", data, err)
				}
				time.Sleep(time.Minute)
				if !happens {
					takes(t, q, "1")
				}
				takes(t, q, "2")
				closeQueue(t, q)
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}

// An Ack or Nack whose answer and marker are lost is resolved by the ledger, whose version shows the outcome, since no
// other client writes to the ledger.
func TestSettlingWithoutTheMarker(t *testing.T) {
	item := queuePath + "/qn-0000000002"
	for _, c := range []struct {
		what      string
		happens   bool
		verb      string
		meanwhile func(srv *zksynctest.Server)
		want      error
		left      int
	}{
		{"removed by us", true, "Ack", func(*zksynctest.Server) {}, nil, 0},
		{"still there", false, "Ack", func(*zksynctest.Server) {}, nil, 0},
		{"removed by a client of the recipe", false, "Ack", func(srv *zksynctest.Server) { srv.Delete(item) }, zksync.ErrLost, 0},
		{"the claim removed by hand", false, "Ack", func(srv *zksynctest.Server) { removeLedgers(srv) }, zksync.ErrLost, 1},
		{"given back by us", true, "Nack", func(*zksynctest.Server) {}, nil, 1},
		{"still ours", false, "Nack", func(*zksynctest.Server) {}, nil, 1},
		{"given back and taken by another", true, "Nack", func(srv *zksynctest.Server) { srv.Delete(item) }, nil, 0},
		{"ours and removed by a client of the recipe", false, "Nack", func(srv *zksynctest.Server) { srv.Delete(item) }, nil, 0},
	} {
		t.Run(c.verb+" "+c.what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
				offer(t, srv.Connect(t), queuePath, 0, 2)
				ack(t, next(t, q.Messages(), "0"))
				msg := next(t, q.Messages(), "1")
				synctest.Wait()
				withoutMarker(t, srv, live(t, m).ID(), c.happens, func() { c.meanwhile(srv) })
				settle := msg.Ack
				if c.verb == "Nack" {
					settle = msg.Nack
				}
				if err := settle(t.Context()); !errors.Is(err, c.want) || errors.Is(err, zksync.ErrOutcomeUnknown) {
					t.Errorf("%s: %v, want %v", c.verb, err, c.want)
				}
				synctest.Wait()
				if _, claims := leftItems(srv, queuePath); len(claims) > c.left {
					t.Errorf("claims are left: %v", claims)
				}
				if c.left == 1 {
					ack(t, next(t, q.Messages(), "1"))
				}
				closeQueue(t, q)
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}

// Close gives a message back also if the answer is lost and the marker is gone. The message is free although the
// session lives on.
func TestGivingBackWithoutTheMarker(t *testing.T) {
	for what, happens := range map[string]bool{"happened": true, "not happened": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				m := srv.Connect(t)
				q := zksync.NewQueue(m, queuePath)
				offer(t, srv.Connect(t), queuePath, 0, 5)
				want(t, receive(t, q.Chan(), 1), numbers(0, 1))
				synctest.Wait()
				withoutMarker(t, srv, live(t, m).ID(), happens, func() {})
				closeQueue(t, q)
				other := newQueue(t, srv)
				for i := 1; i < 5; i++ {
					takes(t, other, fmt.Sprint(i))
				}
				closeQueue(t, other)
				wantLeft(t, srv, 0, 0)
			})
		})
	}
}

// A claim on a message that is gone ends, also if the answer to the request that ends it is lost. The claim does not stay
// for as long as the session.
func TestClaimOnAMessageThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath, zksync.WithPrefetch(1))
		offer(t, srv.Connect(t), queuePath, 0, 4)
		want(t, receive(t, q.Chan(), 1), numbers(0, 1))
		synctest.Wait()
		items, _ := leftItems(srv, queuePath)
		gone := items[1] // is listed, and not claimed yet
		srv.Delete(queuePath + "/" + gone)
		f := zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Match: func(op zksynctest.Op) bool {
			return slices.ContainsFunc(op.Sub, func(s zkserver.SubOp) bool {
				return s.Code == zkserver.OpSetData && strings.Contains(s.Path, "/zksync-claims/ledger-")
			})
		}, Do: zksynctest.Disconnect}
		lost := srv.Inject(f)
		want(t, receive(t, q.Chan(), 2), []string{"1", "3"})
		time.Sleep(time.Minute)
		if lost.Count() == 0 {
			t.Fatal("no request was lost")
		}
		wantLeft(t, srv, 0, 0)
		closeQueue(t, q)
	})
}
