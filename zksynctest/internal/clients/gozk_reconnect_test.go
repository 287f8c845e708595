//go:build !race

package clients

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"
)

// These tests make go-zookeeper's client reconnect. During a reconnect one goroutine of the client
// reads Conn.lastZxid while another goroutine writes it without a lock. The race detector reports
// this race of the client, so the tests run only without the race detector.

// reconnect breaks the connection and waits for the next one.
func (c *goClient) reconnect() {
	c.t.Helper()
	c.mu.Lock()
	nc := c.nc
	c.mu.Unlock()
	nc.Close()
	c.awaitState(zk.StateDisconnected)
	c.awaitState(zk.StateHasSession)
}

// go-zookeeper's authentication and ACLs work on the embedded server as on a real one.
func TestGoAccess(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		owner, other := connectGo(t, addr), connectGo(t, addr)
		if err := owner.AddAuth("digest", []byte("me:secret")); err != nil {
			t.Fatal(err)
		}
		must(owner.Create("/mine", []byte("x"), 0, zk.AuthACL(zk.PermAll)))(t)
		_, _, err := other.Get("/mine")
		isError(t, err, zk.ErrNoAuth)
		acl, stat, err := owner.GetACL("/mine")
		if err != nil || stat.Aversion != 0 || !slices.Equal(acl, zk.DigestACL(zk.PermAll, "me", "secret")) {
			t.Errorf("%+v, %+v, %v", acl, stat, err)
		}
		owner.reconnect() // a new connection has to authenticate again
		if stat := must(owner.SetACL("/mine", zk.WorldACL(zk.PermRead), 0))(t); stat.Aversion != 1 {
			t.Errorf("%+v", stat)
		}
		if data, _, err := other.Get("/mine"); err != nil || string(data) != "x" {
			t.Errorf("data %q, %v", data, err)
		}
		_, err = other.Set("/mine", nil, -1)
		isError(t, err, zk.ErrNoAuth)
	})
}

// go-zookeeper's watches fire on the embedded server as on a real one.
func TestGoWatches(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		c, writer := connectGo(t, addr), connectGo(t, addr)
		must(c.Create("/a", nil, 0, openACL))(t)
		must(c.Create("/b", nil, 0, openACL))(t)
		watch := func() (data, made, children, gone <-chan zk.Event) {
			t.Helper()
			_, _, data, err := c.GetW("/a")
			if err != nil {
				t.Fatal(err)
			}
			_, _, made, err = c.ExistsW("/made")
			if err != nil {
				t.Fatal(err)
			}
			_, _, children, err = c.ChildrenW("/a")
			if err != nil {
				t.Fatal(err)
			}
			_, _, gone, err = c.ExistsW("/b")
			if err != nil {
				t.Fatal(err)
			}
			return data, made, children, gone
		}
		change := func() {
			t.Helper()
			must(writer.Set("/a", []byte("new"), -1))(t)
			must(writer.Create("/made", nil, 0, openACL))(t)
			must(writer.Create("/a/", nil, zk.FlagSequence, openACL))(t)
			if err := writer.Delete("/b", -1); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(data, made, children, gone <-chan zk.Event) {
			t.Helper()
			for _, w := range []struct {
				ch   <-chan zk.Event
				kind zk.EventType
				path string
			}{
				{data, zk.EventNodeDataChanged, "/a"},
				{made, zk.EventNodeCreated, "/made"},
				{children, zk.EventNodeChildrenChanged, "/a"},
				{gone, zk.EventNodeDeleted, "/b"},
			} {
				if ev := await(t, w.ch); ev.Type != w.kind || ev.Path != w.path || ev.Err != nil {
					t.Errorf("event %+v, want %v of %s", ev, w.kind, w.path)
				}
			}
		}
		data, made, children, gone := watch()
		change()
		expect(data, made, children, gone)

		// These watches are armed again when the client reconnects.
		if err := writer.Delete("/made", -1); err != nil {
			t.Fatal(err)
		}
		must(writer.Create("/b", nil, 0, openACL))(t)
		data, made, children, gone = watch()
		session := c.SessionID()
		c.reconnect()
		if c.SessionID() != session {
			t.Errorf("session %#x, was %#x", c.SessionID(), session)
		}
		must(c.Sync("/"))(t)
		change()
		expect(data, made, children, gone)

		// These watches have missed a change in the meantime.
		if err := writer.Delete("/made", -1); err != nil {
			t.Fatal(err)
		}
		must(writer.Create("/b", nil, 0, openACL))(t)
		data, made, children, gone = watch()
		c.mu.Lock()
		nc := c.nc
		c.mu.Unlock()
		nc.Close()
		change()
		expect(data, made, children, gone)
	})
}

// go-zookeeper's sessions outlive connections on the embedded server as on a real one, and end with their ephemerals.
func TestGoSessions(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		c, other := connectGo(t, addr), connectGo(t, addr)
		must(c.Create("/e", nil, zk.FlagEphemeral, openACL))(t)
		c.reconnect()
		if ok, _, err := other.Exists("/e"); !ok || err != nil {
			t.Fatalf("an ephemeral went with a connection: %v, %v", ok, err)
		}
		_, _, gone, err := other.ExistsW("/e")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if ev := await(t, gone); ev.Type != zk.EventNodeDeleted {
			t.Errorf("event %+v", ev)
		}
	})
}
