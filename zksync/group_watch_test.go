package zksync_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zksync/toolkit/internal/bounds"
	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
	"github.com/go-zksync/toolkit/zksynctest"
)

// awaitRoll reads lists until one is as wanted.
func awaitRoll(t *testing.T, seen <-chan []zksync.Member, want string) {
	t.Helper()
	last := "nothing"
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for last != want {
		select {
		case all, ok := <-seen:
			if !ok {
				t.Fatalf("the channel was closed behind %q, want %q", last, want)
			}
			last = roll(all)
		case <-limit.C:
			t.Fatalf("saw %q last, want %q", last, want)
		}
	}
}

// Watch reports the members after each change: a reconnect of a member is no change, its end is one, and a lost session
// of the watching Manager only delays the report.
func TestGroupWatch(t *testing.T) {
	servers.Both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		ctx, cancel := context.WithCancel(t.Context())
		watcher := srv.Connect(t)
		seen := zksync.NewGroup(watcher, path).Watch(ctx).Events()
		awaitRoll(t, seen, "")
		a, err := zksync.NewGroup(srv.Connect(t), path).Join(t.Context(), "a", []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		awaitRoll(t, seen, "a=1 ")
		if err := a.Set(t.Context(), []byte("2")); err != nil {
			t.Error(err)
		}
		awaitRoll(t, seen, "a=2 ")
		srv.Expire(t, live(t, watcher).ID())
		m := srv.Connect(t)
		if _, err := zksync.NewGroup(m, path).Join(t.Context(), "b", []byte("3")); err != nil {
			t.Fatal(err)
		}
		awaitRoll(t, seen, "a=2 b=3 ")
		if err := a.Leave(); err != nil {
			t.Error(err)
		}
		awaitRoll(t, seen, "b=3 ")
		m.Close()
		awaitRoll(t, seen, "")
		cancel()
		for range seen {
		}
	})
}

// Watch merges the changes of a large group: while two thousand members join, the receiver gets a few lists, and the
// last one soon. Breaks if follow does not wait for rest.
func TestGroupWatchMergesChanges(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		const members = 2000
		srv := zksynctest.Start(t)
		seen := zksync.NewGroup(srv.Connect(t), "/group").Watch(t.Context()).Events()
		g := zksync.NewGroup(srv.Connect(t), "/group")
		begun := time.Now()
		var wg sync.WaitGroup
		defer wg.Wait()
		for i := range members {
			wg.Go(func() {
				if _, err := g.Join(t.Context(), fmt.Sprint("member-", i), nil); err != nil {
					t.Error(err)
				}
			})
		}
		lists := 0
		for list := range seen {
			if lists++; len(list) == members {
				break
			}
		}
		if took := time.Since(begun); took > 40*time.Millisecond || lists > 100 {
			t.Errorf("all were seen after %v, in list %d", took, lists)
		}
	})
}

// A thousand members over twenty sessions are all seen by ten watchers.
func TestGroupOfAThousand(t *testing.T) {
	bounds.Bubble(t, func(t *testing.T) {
		srv := zksynctest.Start(t)
		var observers []<-chan []zksync.Member
		for range 10 {
			observers = append(observers, zksync.NewGroup(srv.Connect(t), "/members").Watch(t.Context()).Events())
		}
		var all, kept []string
		var managers []*session.Manager
		var dead atomic.Bool
		var wg sync.WaitGroup
		for i := range 20 {
			m := srv.Connect(t, session.WithDialer(func(ctx context.Context, network, address string) (net.Conn, error) {
				if i == 0 && dead.Load() {
					return nil, errors.New("no way out of a dead machine")
				}
				return srv.Dial(ctx, network, address)
			}))
			managers = append(managers, m)
			for j := range 50 {
				id := fmt.Sprintf("%02d-%02d", i, j)
				all = append(all, id)
				if i > 0 {
					kept = append(kept, id)
				}
				wg.Go(func() {
					if _, err := zksync.NewGroup(m, "/members").Join(t.Context(), id, nil); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		converge := func(want []string) {
			t.Helper()
			for i, seen := range observers {
				var got []string
				for !slices.Equal(got, want) {
					select {
					case members, ok := <-seen:
						if !ok {
							t.Fatalf("observer %d ended", i)
						}
						got = got[:0]
						for _, m := range members {
							got = append(got, m.ID)
						}
					case <-time.After(patience):
						t.Fatalf("observer %d has seen %d members in %v, want %d", i, len(got), patience, len(want))
					}
				}
			}
		}
		converge(all)

		// A member that reconnects does not flicker.
		for _, m := range managers[1:] {
			srv.Disconnect(live(t, m).ID())
		}
		time.Sleep(5 * time.Second)
		for i, seen := range observers {
			select {
			case <-seen:
				t.Errorf("observer %d was told of a reconnect", i)
			default:
			}
		}

		// A member that dies leaves the list of every observer when its session ends.
		dead.Store(true)
		srv.Partition(live(t, managers[0]).ID())
		time.Sleep(time.Minute)
		synctest.Wait()
		converge(kept)
	})
}

// Members and Watch list ephemeral znodes alone: other children of the directory are no members.
func TestMembersAreEphemeral(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zksynctest.Server) {
		g := zksync.NewGroup(srv.Connect(t), "/members")
		_, err := g.Join(t.Context(), "a", []byte("1"))
		must(t, err)
		must(t, srv.Create("/members/before", nil))
		seen := g.Watch(t.Context())
		awaitRoll(t, seen.Events(), "a=1 ")
		must(t, srv.Create("/members/after", nil))
		_, err = g.Join(t.Context(), "b", []byte("2"))
		must(t, err)
		awaitRoll(t, seen.Events(), "a=1 b=2 ")
		all, err := g.Members(t.Context())
		if err != nil || roll(all) != "a=1 b=2 " {
			t.Errorf("members %q, %v", roll(all), err)
		}
		for _, name := range []string{"/members/before", "/members/after"} {
			must(t, srv.Delete(name))
		}
	})
}
