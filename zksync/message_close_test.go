package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// An Ack that begins during Close is too late, and its message goes back to the queue.
func TestAckDuringClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 3)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		first, second := next(t, q.Messages(), "0"), next(t, q.Messages(), "1")
		synctest.Wait()
		srv.Inject(zksynctest.Fault{Session: live(t, m).ID(), Op: zkserver.OpMulti, Do: zksynctest.Delay(2 * time.Second)})
		acked := background(t.Context(), first.Ack)
		closing := background(t.Context(), func(context.Context) error { return q.Close() })
		for _, settle := range []func(context.Context) error{second.Ack, second.Nack} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := settle(ctx); !errors.Is(err, zksync.ErrLost) || !errors.Is(err, zksync.ErrQueueClosed) {
				t.Errorf("during Close: %v", err)
			}
			cancel()
		}
		if err := <-acked; err != nil {
			t.Errorf("before Close: %v", err)
		}
		<-closing
		other := newQueue(t, srv)
		takes(t, other, "1")
		takes(t, other, "2")
		closeQueue(t, other)
		wantLeft(t, srv, 0, 0)
	})
}

// An Ack after Close of a message whose session was lost before is ErrLost.
func TestAckAfterCloseOfTheLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		offer(t, srv.Connect(t), queuePath, 0, 1)
		m := srv.Connect(t)
		q := zksync.NewQueue(m, queuePath)
		msg := next(t, q.Messages(), "0")
		srv.ExpireSession(live(t, m).ID())
		time.Sleep(time.Minute)
		closeQueue(t, q)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := msg.Ack(ctx); !errors.Is(err, zksync.ErrLost) {
			t.Errorf("Ack: %v", err)
		}
	})
}

// Close of a consumer takes five seconds without a server, and its messages are free as soon as a server answers. The
// session outlasts the outage.
func TestCloseOfAConsumerWithoutAServer(t *testing.T) {
	for _, how := range []string{"Chan", "Messages", "Ack", "Nack", "Take"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 3)
				m := srv.Connect(t, session.WithTimeout(40*time.Second))
				q := zksync.NewQueue(m, queuePath)
				s := live(t, m)
				settling := make(chan error, 1)
				switch how {
				case "Chan":
					q.Chan()
				case "Messages":
					next(t, q.Messages(), "0")
				case "Take":
					takes(t, q, "0")
				default:
					ack(t, next(t, q.Messages(), "0"))
					msg := next(t, q.Messages(), "1")
					srv.Freeze()
					go func() {
						if how == "Ack" {
							settling <- msg.Ack(t.Context())
						} else {
							settling <- msg.Nack(t.Context())
						}
					}()
				}
				synctest.Wait()
				srv.Freeze()
				if how == "Take" {
					go q.Take(t.Context())
					synctest.Wait()
				}
				began := time.Now()
				closeQueue(t, q)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Close took %v", took)
				}
				if how == "Ack" || how == "Nack" {
					if err := <-settling; !errors.Is(err, zksync.ErrOutcomeUnknown) || !errors.Is(err, zksync.ErrQueueClosed) {
						t.Errorf("%s: %v", how, err)
					}
				}
				srv.Thaw()
				time.Sleep(30 * time.Second)
				if s.Err() != nil {
					t.Fatal("the session was lost, and so shows nothing:", s.Err())
				}
				if _, claims := leftItems(srv, queuePath); len(claims) > 0 {
					t.Errorf("claims are left: %v", claims)
				}
				other := newQueue(t, srv)
				from := 0
				if how == "Ack" || how == "Nack" || how == "Take" {
					from = 1
				}
				if items, _ := leftItems(srv, queuePath); len(items) == 2-from {
					from++ // the call under way has happened
				}
				for i := from; i < 3; i++ {
					takes(t, other, fmt.Sprint(i))
				}
				closeQueue(t, other)
			})
		})
	}
}

// Close gives a message back whose claim is answered only after Close has stopped waiting. Close deletes the claim at
// once.
func TestCloseDuringASlowClaim(t *testing.T) {
	slow := zksynctest.Delay(7 * time.Second)
	for what, faults := range map[string][]zksynctest.Fault{
		"not there yet": {{Op: zkserver.OpMulti, At: zksynctest.BeforeCommit, Do: slow}},
		"there":         {{Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: slow}},
		"looked for": {
			{Op: zkserver.OpMulti, At: zksynctest.AfterCommit, Do: zksynctest.Disconnect},
			{Op: zkserver.OpMultiRead, At: zksynctest.BeforeReply, Do: slow},
		},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zksynctest.Server) {
				offer(t, srv.Connect(t), queuePath, 0, 3)
				m := srv.Connect(t, session.WithTimeout(40*time.Second))
				s := live(t, m)
				if err := s.MakeDir(t.Context(), queuePath+"/zksync-claims"); err != nil {
					t.Fatal(err)
				}
				q := zksync.NewQueue(m, queuePath)
				for _, f := range faults {
					f.Session = s.ID()
					srv.Inject(f)
				}
				q.Chan()
				synctest.Wait()
				time.Sleep(time.Second) // for a new connection
				began := time.Now()
				closeQueue(t, q)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Close took %v", took)
				}
				time.Sleep(3 * time.Second)
				if s.Err() != nil {
					t.Fatal("the session was lost, and so shows nothing:", s.Err())
				}
				wantLeft(t, srv, 3, 0)
			})
		})
	}
}
