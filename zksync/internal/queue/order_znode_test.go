package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A queue whose order znode was deleted, and not the directory around it, goes on with another one.
func TestOrderZnodeIsDeleted(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a, taker := r.open(InOrder, false), r.open(InOrder, false)
		got := receiveAll(a, true, nil)
		time.Sleep(time.Minute)
		name, _ := r.srv.Get("/q/" + claimsName)
		r.must(r.srv.Delete("/q/" + claimsName + "/" + string(name)))
		synctest.Wait()
		r.put(2)
		time.Sleep(time.Minute)
		if len(got) != 3 {
			r.Errorf("%d messages were received, want 3", len(got))
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		if _, ok, err := taker.Take(ctx, false); ok || err != nil {
			r.Errorf("Take: %v, %v, want no message", ok, err)
		}
	})
}

// Consumers go on, and keep their claims, if another client deletes the order znode and creates it again under its name,
// or empties it.
func TestOrderZnodeIsRestored(t *testing.T) {
	for name, again := range map[string]func(r rig, order string){
		"with its data": func(r rig, order string) {
			data, _ := r.srv.Get(order)
			r.must(r.srv.Delete(order))
			r.must(r.srv.Create(order, data))
		},
		"without data": func(r rig, order string) {
			r.must(r.srv.Delete(order))
			r.must(r.srv.Create(order, nil))
		},
		"emptied": func(r rig, order string) { r.must(r.srv.Set(order, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, 4, func(r rig) {
				holder, a, b := r.open(InOrder, true), r.open(InOrder, false), r.open(InOrder, false)
				held := holder.receive(2)
				r.must(held[1].Retry(r.Context(), time.Hour))
				received := receiveAll(a, true, nil)
				time.Sleep(time.Minute)
				order, _ := r.srv.Get("/q/" + claimsName)
				again(r, "/q/"+claimsName+"/"+string(order))
				time.Sleep(time.Minute)
				r.put(4)
				time.Sleep(time.Minute)
				others := receiveAll(b, true, nil)
				time.Sleep(2 * time.Hour)
				if n := len(received) + len(others); n != 4 {
					r.Errorf("%d messages were received beside the one that a consumer has, want 4", n)
				}
				r.must(held[0].Ack(r.Context()))
			})
		})
	}
}

// A consumer does not forget a death that it has read, if the state of the order znode that it read then is older than
// the state that a transaction of its own has left.
func TestDeathReadBesideAWrite(t *testing.T) {
	withRig(t, 2, func(r rig) {
		dead, a := r.open(InOrder, true), r.open(InOrder, true)
		dead.receive(1)
		a.forgetOrder()
		d := a.receive(1)[0]
		dead.die()
		read := a.state() // the answer to this read is handled after the answer to the Nack
		r.must(d.Nack(r.Context()))
		a.v.order.set(read)
		if !a.v.order.known().needsRecovery() {
			r.Error("the death is forgotten")
		}
	})
}

// A message that a living consumer has received is not delivered again when the order znode was deleted.
func TestClaimsOutliveTheOrderZnode(t *testing.T) {
	withRig(t, 2, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, true)
		a.forgetOrder()
		d := a.receive(1)[0]
		name, _ := r.srv.Get("/q/" + claimsName)
		r.must(r.srv.Delete("/q/" + claimsName + "/" + string(name)))
		b.forgetOrder()
		if all := b.receive(2); len(all) != 1 || string(all[0].Data) != "1" {
			r.Errorf("%d messages were delivered, the first of them %q, want 1", len(all), all[0].Data)
		}
		r.must(d.Ack(r.Context()))
	})
}
