package queue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksynctest"
	"github.com/go-zksync/toolkit/zksynctest/zkserver"
)

// After the order znode was deleted, a message in the ledger of a living consumer stays claimed, even if that consumer
// gives back another one before the recovery.
func TestOrderZnodeDeletedBeforeANack(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.forgetOrder()
		both := a.receive(2)
		r.must(r.srv.Delete(a.state().path))
		r.must(both[0].Nack(r.Context()))
		b.forgetOrder()
		for _, d := range b.receive(2) {
			if d.ID == both[1].ID {
				r.Errorf("%s was delivered to two consumers", d.ID)
			}
		}
	})
}

// After the order znode was deleted, the messages of a consumer that has died are delivered to an idle consumer.
func TestOrderZnodeDeletedBeforeADeath(t *testing.T) {
	for name, later := range map[string]bool{"without messages of Retry": false, "beside the directory of Retry": true} {
		t.Run(name, func(t *testing.T) {
			withRig(t, 1, func(r rig) {
				if later {
					// Without this directory, the proof of its absence makes the consumers list the queue again.
					r.must(r.srv.Create("/q/"+laterName, nil))
				}
				dead, b := r.open(InOrder, true), r.open(InOrder, true)
				dead.forgetOrder()
				dead.receive(1)
				got := receiveAll(b, false, nil)
				time.Sleep(time.Second)
				r.must(r.srv.Delete(dead.state().path))
				dead.die()
				time.Sleep(time.Minute)
				if len(got) != 1 {
					r.Errorf("%d messages were received, want 1", len(got))
				}
			})
		})
	}
}

// The messages that a consumer has received are delivered again after the directory of the claims was deleted, also if a
// settle of one of them finds that out, or a claim of a later message.
func TestClaimsDeletedBesideReceivedMessages(t *testing.T) {
	for name, find := range map[string]func(h harness, d *Delivery){
		"by a settle": func(h harness, d *Delivery) {
			if err := d.Ack(h.Context()); session.ClassOf(err) != session.ClassRemoved {
				h.Errorf("Ack: %v, want ErrRemoved", err)
			}
		},
		"by a claim": func(harness, *Delivery) {},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(h harness) {
				h.put(0, 2)
				ch := h.messages(h.consumer(h.srv.Connect(h), 8, InOrder))
				first := h.next(ch, "0", 1)
				h.next(ch, "1", 1)
				h.deleteClaims()
				synctest.Wait() // the consumer has created another order znode
				h.put(2, 3)
				find(h, first)
				got := make(map[string]bool)
				for range 3 {
					select {
					case d := <-ch:
						got[string(d.Data)] = true
						h.must(d.Ack(h.Context()))
					case <-time.After(time.Hour):
						h.Fatalf("%v were received again, want 3 messages", got)
					}
				}
			})
		})
	}
}

// deleteClaims deletes the directory of the claims and everything in it. Consumers may create znodes there meanwhile, or
// delete them.
func (h harness) deleteClaims() {
	dir := testQueue + "/" + claimsName
	for {
		names, _ := h.srv.Children(dir)
		for _, name := range names {
			if err := h.srv.Delete(dir + "/" + name); err != nil && !errors.Is(err, zkserver.ErrNoNode) {
				h.Fatal(err)
			}
		}
		err := h.srv.Delete(dir)
		if err == nil {
			return
		}
		if !errors.Is(err, zkserver.ErrNotEmpty) {
			h.Fatal(err)
		}
	}
}

// Messages of Retry come although another client deletes the claims while a consumer starts, which has seen no messages of Retry.
func TestRetryWhileAConsumerStarts(t *testing.T) {
	const dir = "/q/" + claimsName
	for name, test := range map[string]struct {
		heldAt zkserver.OpCode
		named  bool // there are claims, and another client has overwritten the name of their order znode
	}{
		"at its look for another order znode": {zkserver.OpGetChildren2, true},
		"at the creation of the order znode":  {zkserver.OpMulti, false},
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, 1, func(r rig) {
				var other *tester
				if test.named {
					other = r.open(InOrder, true)
					r.must(r.srv.Set(dir, []byte("x")))
				}
				a := r.open(InOrder, false)
				goOn := make(chan struct{})
				r.srv.Inject(zksynctest.Fault{Session: a.v.s.ID(), Op: test.heldAt, Do: zksynctest.Hold(goOn)})
				got := receiveAll(a, false, nil)
				synctest.Wait()
				if other == nil {
					other = r.open(InOrder, true)
				}
				r.must(other.receive(1)[0].Retry(r.Context(), time.Second))
				names, _ := r.srv.Children(dir)
				for _, name := range names {
					r.must(r.srv.Delete(dir + "/" + name))
				}
				if !test.named {
					r.must(r.srv.Delete(dir))
				}
				close(goOn)
				time.Sleep(time.Hour)
				if len(got) != 1 {
					r.Errorf("%d messages were received, want the one of Retry", len(got))
				}
			})
		})
	}
}
