package queue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

const remadeDir = "/q/p-005"

// putUrgent creates the directory of a priority with messages.
func (r rig) putUrgent(what ...string) {
	r.Helper()
	r.must(r.srv.Create(remadeDir, nil))
	for i, data := range what {
		r.must(r.srv.Create(remadeDir+"/"+itemName(i), []byte(data)))
	}
}

// remake deletes the directory of a priority, and creates it again with other messages of the same names.
func (r rig) remake(what ...string) {
	r.Helper()
	for i := range what {
		r.must(r.srv.Delete(remadeDir + "/" + itemName(i)))
	}
	r.must(r.srv.Delete(remadeDir))
	r.putUrgent(what...)
}

// offline opens a consumer of priorities. After shut its session opens no other connection until reconnect is called.
func (r rig) offline() (a *tester, shut, reconnect func()) {
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	a = r.open(ByPriority, true, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		select {
		case open := <-gate:
			gate <- open
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return r.srv.Dial(ctx, network, address)
	}))
	shut = func() { <-gate }
	reconnect = func() {
		gate <- struct{}{}
		time.Sleep(time.Second)
		synctest.Wait()
	}
	return a, shut, reconnect
}

// disconnect ends the connection of a consumer.
func (c *tester) disconnect() {
	c.Helper()
	c.must(c.srv.Disconnect(c.v.s.ID()))
	synctest.Wait()
}

// A consumer that was disconnected does not pick messages of a directory that was deleted and created again meanwhile.
func TestPickAfterADirectoryWasRemade(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("old", "old", "old")
		a, shut, reconnect := r.offline()
		d := a.receive(1)[0]
		shut()
		a.disconnect()
		r.remake("new", "new", "new")
		b := r.open(ByPriority, true)
		if n := len(b.receive(3)); n != 3 {
			r.Fatalf("%d messages, want 3", n)
		}
		reconnect()
		if sel := a.pick(3); len(sel.refs) > 0 {
			r.Errorf("%v was picked, which another consumer has", sel.refs[0].Item)
		}
		if err := d.Ack(r.Context()); !errors.Is(err, session.ErrRemoved) {
			r.Errorf("Ack: %v, want ErrRemoved", err)
		}
		b.wantNames(3)
	})
}

// A consumer does not deliver a message that another one has, if the directory was deleted and created again between its own
// claim and the read.
func TestReadInADirectoryThatWasRemade(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("old")
		a := r.open(ByPriority, true)
		sel := a.pick(1)
		c, err := a.ledger.claim(func(*orderState, int) selection { return sel }, nil, &idleLine{v: a.v})
		r.must(err)
		r.remake("new")
		b := r.open(ByPriority, true)
		b.receive(1)
		if found := a.read(c.all); len(found) > 0 {
			r.Errorf("%q was delivered, which another consumer has", found[0].Data)
		}
	})
}

// A consumer does not deliver another message of the same name, if the server does not know multiRead, and the directory was
// deleted and created again between the reads of the directory and of the message.
func TestSingleReadsInADirectoryThatWasRemade(t *testing.T) {
	for range 10 { // the reads go at the same time, in any order
		withRig(t, 0, func(r rig) {
			r.putUrgent("old")
			a := r.open(ByPriority, true)
			sel := a.pick(1)
			c, err := a.ledger.claim(func(*orderState, int) selection { return sel }, nil, &idleLine{v: a.v})
			r.must(err)
			r.srv.Inject(zksynctest.Fault{Op: zkserver.OpMultiRead, Times: 9, Do: zksynctest.Error(zkserver.ErrUnimplemented)})
			r.srv.Inject(zksynctest.Fault{Op: zkserver.OpGetData, Path: remadeDir, At: zksynctest.AfterCommit,
				Do: zkserver.Call(func() { r.remake("new") })})
			if found := a.read(c.all); len(found) > 0 && string(found[0].Data) != "old" {
				r.Errorf("%q was delivered under the claim on another message", found[0].Data)
			}
			if !r.exists(remadeDir + "/" + itemName(0)) {
				r.Error("the new message was removed")
			}
		})
	}
}

// Take does not take a message that another consumer has, if the directory was deleted and created again before the read.
func TestTakeInADirectoryThatWasRemade(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("old")
		a, b := r.open(ByPriority, false), r.open(ByPriority, true)
		sel := a.pick(1)
		r.remake("new")
		if data, _, err := a.v.readMessage(r.Context(), sel.refs[0]); !errors.Is(err, zk.ErrNoNode) {
			r.Errorf("the read of the former message: %q, %v", data, err)
		}
		b.receive(1)
		if data, ok, err := a.Take(r.Context(), false); ok || err != nil {
			r.Errorf("Take: %q, %v, although another consumer has the message", data, err)
		}
	})
}

// An Ack beside the loss of a connection does not remove a message of a directory that was deleted and created again before the
// next connection.
func TestLostAckAndARemadeDirectory(t *testing.T) {
	for _, when := range []string{"before the loss", "during the disconnection", "before the watch event"} {
		t.Run(when, func(t *testing.T) {
			withRig(t, 0, func(r rig) {
				r.putUrgent("old")
				a, shut, reconnect := r.offline()
				d := a.receive(1)[0]
				shut()
				acked := make(chan error)
				ack := func() {
					go func() { acked <- d.Ack(context.Background()) }()
					synctest.Wait()
				}
				if when == "before the loss" {
					r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Do: zksynctest.Disconnect})
					ack()
				} else {
					a.disconnect()
				}
				if when == "during the disconnection" {
					ack()
				}
				r.remake("new")
				r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpSetWatches, Do: zksynctest.Delay(3 * time.Second)})
				reconnect()
				if when == "before the watch event" {
					ack()
				}
				if err := <-acked; !errors.Is(err, session.ErrRemoved) {
					r.Errorf("Ack: %v, want ErrRemoved", err)
				}
				if !r.exists(d.ID) {
					r.Error("the new message was removed")
				}
			})
		})
	}
}

// An Ack whose answer is lost fails with ErrRemoved if the ledger is deleted before the reconnection, also
// in a directory.
func TestLostAckAndADeletedLedger(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("0")
		a, shut, reconnect := r.offline()
		d := a.receive(1)[0]
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		shut()
		acked := make(chan error)
		go func() { acked <- d.Ack(context.Background()) }()
		synctest.Wait()
		r.must(r.srv.Delete(d.l.path))
		reconnect()
		if err := <-acked; !errors.Is(err, session.ErrRemoved) {
			r.Errorf("Ack: %v, want ErrRemoved", err)
		}
	})
}

// An Ack whose answer is lost succeeds after a reconnection.
func TestAckWhoseAnswerIsLost(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("0", "1")
		a := r.open(ByPriority, true)
		all := a.receive(2)
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zksynctest.Disconnect})
		r.must(all[0].Ack(r.Context()))
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Do: zksynctest.Disconnect})
		r.must(all[1].Ack(r.Context()))
		a.wantNames(0)
	})
}

// The first message of a queue that is put off comes again to its only consumer, which may have looked before the
// transaction was answered.
func TestFirstRetryOfAnIdleConsumer(t *testing.T) {
	inBubble(t, func(h harness) {
		h.put(0, 1)
		c := h.consumer(h.srv.Connect(h), 128, InOrder)
		ch := h.messages(c)
		d := h.next(ch, "0", 1)
		h.must(h.srv.Create(testQueue+"/"+laterName, nil))
		time.Sleep(time.Second)
		h.must(h.srv.Create(testQueue+"/"+laterName+"/"+laterPrefix(0, 1)+"0000000000", []byte("later")))
		synctest.Wait() // the consumer sleeps, and watches no message of Retry
		h.must(d.l.do(newChange(func(t *claimTable) { t.later = true })))
		h.must(h.next(ch, "later", 2).Ack(h.Context()))
		h.must(d.Ack(h.Context()))
	})
}

// An Ack that waits for the transaction before it does not remove a message of a directory that was deleted and created again
// meanwhile.
func TestQueuedAckAndARemadeDirectory(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("old", "old")
		a := r.open(ByPriority, true)
		all := a.receive(2)
		r.must(a.v.s.SyncQuorum(r.Context(), "/q"))
		r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, At: zksynctest.BeforeReply, Do: zkserver.Call(func() {
			// The other Ack is queued by now.
			r.must(r.srv.Delete(remadeDir + "/" + itemName(1)))
			r.must(r.srv.Delete(remadeDir))
			r.putUrgent("new", "new")
		})})
		acked := make(chan error, 2)
		for _, d := range all {
			go func() { acked <- d.Ack(context.Background()) }()
			synctest.Wait()
		}
		for range 2 {
			if err := <-acked; err != nil && !errors.Is(err, session.ErrRemoved) {
				r.Errorf("Ack: %v, want success or ErrRemoved", err)
			}
		}
		for i := range 2 {
			if !r.exists(remadeDir + "/" + itemName(i)) {
				r.Errorf("the new message %d was removed", i)
			}
		}
	})
}

// An Ack that a server answers by an internal error, or throttles, does not remove a message of a directory that was deleted and
// created again meanwhile, also if no watch guards the directory.
func TestRefusedAckAndARemadeDirectory(t *testing.T) {
	for _, code := range []zkserver.Code{zkserver.ErrSystem, zkserver.ErrThrottledOp} {
		for _, watched := range []bool{true, false} {
			t.Run(fmt.Sprint(code, watched), func(t *testing.T) {
				withRig(t, 0, func(r rig) {
					r.putUrgent("old")
					a := r.open(ByPriority, true)
					d := a.receive(1)[0]
					if !watched {
						r.must(r.srv.Set(remadeDir, []byte("of another client"))) // it uses the watch up
						synctest.Wait()
					}
					f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Match: deletesItem, Do: zkserver.Call(func() { r.remake("new") })}
					r.srv.Inject(f)
					f.Do = zksynctest.Error(code)
					refused := r.srv.Inject(f)
					if err := d.Ack(r.Context()); !errors.Is(err, session.ErrRemoved) {
						r.Errorf("Ack: %v, want ErrRemoved", err)
					}
					if !r.exists(d.ID) || refused.Count() != 1 {
						r.Errorf("the new message exists: %v, after %d refusals; want it after one", r.exists(d.ID), refused.Count())
					}
				})
			})
		}
	}
}

// An Ack succeeds after an internal error and after throttled requests, also in a directory.
func TestRefusedAckSucceeds(t *testing.T) {
	withRig(t, 0, func(r rig) {
		r.putUrgent("0", "1", "2")
		a := r.open(ByPriority, true)
		all := a.receive(3)
		f := zksynctest.Fault{Session: a.v.s.ID(), Op: zkserver.OpMulti, Match: deletesItem, Do: zksynctest.Error(zkserver.ErrSystem)}
		r.srv.Inject(f)
		r.must(all[0].Ack(r.Context()))
		f.At = zksynctest.AfterCommit
		r.srv.Inject(f)
		r.must(all[1].Ack(r.Context()))
		f.At, f.Times, f.Do = zksynctest.BeforeCommit, 5, zksynctest.Throttle
		r.srv.Inject(f)
		r.must(all[2].Ack(r.Context()))
		a.wantNames(0)
	})
}

func deletesItem(op zksynctest.Op) bool {
	return slices.ContainsFunc(op.Sub, func(sub zksynctest.SubOp) bool {
		return sub.Code == zkserver.OpDelete && strings.Contains(sub.Path, ItemPrefix)
	})
}
