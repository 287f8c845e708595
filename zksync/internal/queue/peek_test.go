package queue

import (
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"

	"github.com/go-zksync/toolkit/session"
)

// Peek passes over messages that a living consumer has claimed, returns the message of a consumer that has died, and
// writes nothing.
func TestPeek(t *testing.T) {
	withRig(t, 3, func(r rig) {
		a, b := r.open(InOrder, true), r.open(InOrder, false)
		peek := func(what, want string) {
			t.Helper()
			synctest.Wait() // for the next session of a consumer that has died
			before := r.srv.Zxid()
			data, ok, err := b.Peek(r.Context())
			if string(data) != want || !ok || err != nil {
				r.Errorf("%s: %q, %v, %v, want %s", what, data, ok, err, want)
			}
			if r.srv.Zxid() != before {
				r.Errorf("%s: Peek has written", what)
			}
		}
		peek("before the first claim", "0")
		a.receive(2)
		peek("beside a consumer with two claims", "2")
		a.die()
		peek("after its death", "0")
		r.must(r.srv.Delete(b.state().path))
		peek("after the order znode was deleted", "0")
	})
}

// Peek passes over messages in the ledgers of living consumers also if another client has deleted the order znode, emptied
// it or overwritten its name.
func TestPeekWithoutTheOrderZnode(t *testing.T) {
	for name, harm := range map[string]func(r rig, order string) error{
		"deleted":          func(r rig, order string) error { return r.srv.Delete(order) },
		"emptied":          func(r rig, order string) error { return r.srv.Set(order, nil) },
		"name overwritten": func(r rig, _ string) error { return r.srv.Set("/q/"+claimsName, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			withRig(t, 3, func(r rig) {
				a, b := r.open(InOrder, true), r.open(InOrder, false)
				a.receive(2)
				r.must(harm(r, a.state().path))
				before := r.srv.Zxid()
				if data, ok, err := b.Peek(r.Context()); string(data) != "2" || !ok || err != nil {
					r.Errorf("Peek: %q, %v, %v, want 2", data, ok, err)
				}
				if r.srv.Zxid() != before {
					r.Error("Peek has written")
				}
			})
		})
	}
}

// Peek returns a message that was put before the call, also if its server lags and knows only a message that cannot be read.
func TestPeekBehindAnUnreadableMessage(t *testing.T) {
	withRig(t, 0, func(r rig) {
		s, err := r.srv.Connect(r, session.WithAuth("digest", []byte("other:secret"))).Session(r.Context())
		r.must(err)
		_, err = s.Create(r.Context(), "/q/"+itemName(0), nil, 0, zk.DigestACL(zk.PermAll, "other", "secret")...)
		r.must(err)
		a := r.open(InOrder, false)
		r.srv.Lag(a.v.s.ID())
		r.must(r.srv.Create("/q/"+itemName(1), []byte("1")))
		if data, ok, err := a.Peek(r.Context()); string(data) != "1" || !ok || err != nil {
			r.Errorf("Peek: %q, %v, %v, want 1", data, ok, err)
		}
	})
}
