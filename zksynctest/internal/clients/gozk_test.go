package clients

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Every call of go-zookeeper works on the embedded server as on a real one.
func TestGoCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		c := connectGo(t, addr)
		if p := must(c.Create("/a", []byte("x"), 0, openACL))(t); p != "/a" {
			t.Errorf("created %q", p)
		}
		if p := must(c.Create("/a/s-", nil, zk.FlagSequence|zk.FlagEphemeral, openACL))(t); p != "/a/s-0000000000" {
			t.Errorf("created %q", p)
		}
		if p := must(c.CreateContainer("/a/box", nil, zk.FlagContainer, openACL))(t); p != "/a/box" {
			t.Errorf("created %q", p)
		}
		if p := must(c.CreateTTL("/a/ttl", nil, zk.FlagTTL, openACL, time.Hour))(t); p != "/a/ttl" {
			t.Errorf("created %q", p)
		}
		protected := must(c.CreateProtectedEphemeralSequential("/a/p-", nil, openACL))(t)
		if !strings.HasPrefix(protected, "/a/_c_") || !strings.HasSuffix(protected, "-p-0000000003") {
			t.Errorf("created %q", protected)
		}
		_, err := c.Create("/a", nil, 0, openACL)
		isError(t, err, zk.ErrNodeExists)
		_, err = c.Create("/none/a", nil, 0, openACL)
		isError(t, err, zk.ErrNoNode)
		_, err = c.Create(protected+"/a", nil, 0, openACL)
		isError(t, err, zk.ErrNoChildrenForEphemerals)
		_, err = c.Create("/b", nil, 0, nil)
		isError(t, err, zk.ErrInvalidACL)

		names, stat, err := c.Children("/a")
		slices.Sort(names)
		if err != nil || stat.NumChildren != 4 || !slices.Equal(names[1:], []string{"box", "s-0000000000", "ttl"}) {
			t.Errorf("children %q, %+v, %v", names, stat, err)
		}
		data, stat, err := c.Get("/a")
		if err != nil || string(data) != "x" || stat.Version != 0 || stat.Cversion != 4 || stat.DataLength != 1 {
			t.Errorf("data %q, %+v, %v", data, stat, err)
		}
		if stat := must(c.Set("/a", []byte("yy"), 0))(t); stat.Version != 1 || stat.Mzxid <= stat.Czxid {
			t.Errorf("set: %+v", stat)
		}
		_, err = c.Set("/a", nil, 0)
		isError(t, err, zk.ErrBadVersion)
		ok, stat, err := c.Exists(protected)
		if err != nil || !ok || stat.EphemeralOwner != c.SessionID() {
			t.Errorf("exists %v, %+v, %v", ok, stat, err)
		}
		if ok, _, err := c.Exists("/none"); ok || err != nil {
			t.Errorf("exists %v, %v", ok, err)
		}
		isError(t, c.Delete("/a", -1), zk.ErrNotEmpty)
		isError(t, c.Delete("/a/box", 3), zk.ErrBadVersion)
		isError(t, c.Delete("/none", -1), zk.ErrNoNode)
		if err := c.Delete("/a/box", 0); err != nil {
			t.Error(err)
		}
		if p := must(c.Sync("/a"))(t); p != "/a" {
			t.Errorf("sync of %q", p)
		}
		_, err = c.IncrementalReconfig(nil, []string{"3"}, -1)
		isError(t, err, zk.ErrReconfigDisabled)
		if c.Server() != addr || c.State() != zk.StateHasSession {
			t.Errorf("server %s, state %v", c.Server(), c.State())
		}
	})
}

// go-zookeeper's multi is all or nothing on the embedded server as on a real one.
func TestGoMulti(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		c := connectGo(t, addr)
		got := must(c.Multi(
			&zk.CreateRequest{Path: "/a", Data: []byte("1"), Acl: openACL},
			&zk.CreateRequest{Path: "/a/s-", Acl: openACL, Flags: zk.FlagSequence},
			&zk.SetDataRequest{Path: "/a", Data: []byte("2"), Version: 0},
			&zk.CheckVersionRequest{Path: "/a", Version: 1},
			&zk.DeleteRequest{Path: "/a/s-0000000000", Version: -1},
		))(t)
		if len(got) != 5 || got[0].String != "/a" || got[1].String != "/a/s-0000000000" || got[2].Stat.Version != 1 {
			t.Errorf("%+v", got)
		}
		got, err := c.Multi(
			&zk.SetDataRequest{Path: "/a", Data: []byte("3"), Version: -1},
			&zk.CheckVersionRequest{Path: "/a", Version: 7},
			&zk.DeleteRequest{Path: "/a", Version: -1},
		)
		isError(t, err, zk.ErrBadVersion)
		if len(got) != 3 || got[0].Error != nil || !errors.Is(got[1].Error, zk.ErrBadVersion) || got[2].Error == nil {
			t.Errorf("%+v", got)
		}
		if data, stat, err := c.Get("/a"); err != nil || string(data) != "2" || stat.Cversion != 2 {
			t.Errorf("data %q, %+v, %v", data, stat, err)
		}
	})
}

// go-zookeeper's Lock excludes on the embedded server as on a real one.
func TestGoLock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		const clients, turns = 3, 5
		var (
			wg      sync.WaitGroup
			holders int // without a lock, so that the race detector reports two simultaneous holders
			total   int
		)
		conns := make([]*goClient, clients)
		for i := range conns {
			conns[i] = connectGo(t, addr)
		}
		for _, c := range conns {
			wg.Go(func() {
				l := zk.NewLock(c.Conn, "/lock", openACL)
				for range turns {
					if err := l.LockWithData([]byte("me")); err != nil {
						t.Error(err)
						return
					}
					if holders++; holders != 1 {
						t.Errorf("%d hold the lock", holders)
					}
					total++
					holders--
					if err := l.Unlock(); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		if names, _, err := conns[0].Children("/lock"); total != clients*turns || len(names) != 0 || err != nil {
			t.Errorf("%d turns; left: %q, %v", total, names, err)
		}
	})
}

// go-zookeeper's helpers parse the answers to four-letter words. They cannot read every answer of 3.8 to srvr, so
// the test parses srvr of zkserver alone.
func TestGoFourLetterWords(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, addr string) {
		c := connectGo(t, addr)
		must(c.Create("/a", nil, 0, openACL))(t)
		if ok := zk.FLWRuok([]string{addr}, patience); !slices.Equal(ok, []bool{true}) {
			t.Errorf("ruok: %v", ok)
		}
		// The helper cannot parse the line of its own connection, on any server.
		cons, _ := zk.FLWCons([]string{addr}, patience)
		if len(cons) != 1 {
			t.Fatalf("cons: %+v", cons)
		}
		found := false
		for _, client := range cons[0].Clients {
			found = found || client.SessionID == c.SessionID() && client.Timeout == 20000 && client.Received > 0 && client.Sent > 0
		}
		if !found {
			t.Errorf("cons does not tell of session %#x: %+v", c.SessionID(), cons[0].Clients)
		}
		if !strings.HasSuffix(t.Name(), "/zkserver") {
			return
		}
		srvr, ok := zk.FLWSrvr([]string{addr}, patience)
		if !ok || len(srvr) != 1 || srvr[0].Error != nil {
			t.Fatalf("srvr: %+v, %v", srvr[0], ok)
		}
		if s := srvr[0]; s.Mode != zk.ModeStandalone || s.NodeCount != 6 || s.Counter != 2 || s.Connections < 1 || s.Version == "" || s.BuildTime.IsZero() {
			t.Errorf("srvr: %+v", s)
		}
	})
}
