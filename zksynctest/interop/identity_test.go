package interop

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/zksync"
)

// Other clients read the IDs of our contenders, and Inspect names the contenders of kazoo and Curator.
func TestIdentities(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		dir, m := servers.Path(t), srv.Connect(t)
		s := live(t, m)
		inspected := func(path string) string {
			t.Helper()
			found, err := zksync.Inspect(t.Context(), m, path)
			must(t, err)
			var all []string
			for _, p := range found.Participants {
				all = append(all, fmt.Sprintf("%s holds=%v", p.Client, p.Holds))
			}
			return fmt.Sprintf("%v: %s", found.Kind, strings.Join(all, ", "))
		}
		want := func(path, want string) {
			t.Helper()
			if got := inspected(path); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		}
		snakes := python.peer(t).connect(t, srv.Address(), alive)
		path := dir + "/kazoo"
		lock := snakes.make(t, "kazoo-lock", path)
		lock.call(t, "acquire")
		mu := zksync.NewMutex(m, path, zksync.WithLayout(zksync.LayoutKazoo), zksync.WithID("ours"))
		waits := start(func() error { return mu.Lock(t.Context()) })
		awaitChildren(t, s, path, 2)
		want(path, "lock: kazoo holds=true, zksync holds=false")
		if got := lock.call(t, "contenders"); !slices.Contains(strings.Split(got, ","), "ours") {
			t.Errorf("kazoo sees the contenders %s", got)
		}
		lock.call(t, "release")
		ended(t, "Lock", waits)
		must(t, mu.Unlock())

		path = dir + "/ksem"
		units := snakes.make(t, "kazoo-semaphore", path, "2", "theirs")
		units.want(t, "true", "try", "0")
		sem := zksync.NewSemaphore(m, path, 2, zksync.WithLayout(zksync.LayoutKazoo), zksync.WithID("ours"))
		must(t, sem.Acquire(t.Context(), 1))
		want(path, "semaphore: kazoo holds=true, zksync holds=true")
		units.want(t, "ours,theirs", "holders")
		must(t, sem.Release(1))
		units.call(t, "release")

		coffee := java.peer(t).connect(t, srv.Address(), alive)
		path = dir + "/curator"
		mutex := coffee.make(t, "curator-mutex", path)
		mutex.call(t, "acquire")
		our := zksync.NewMutex(m, path)
		waits = start(func() error { return our.Lock(t.Context()) })
		awaitChildren(t, s, path, 2)
		want(path, "lock: Curator holds=true, zksync holds=false")
		mutex.call(t, "release")
		ended(t, "Lock", waits)
		must(t, our.Unlock())
		latch := coffee.make(t, "curator-latch", dir+"/latch", "theirs")
		latch.call(t, "start")
		latch.want(t, "true", "await", "30000")
		want(dir+"/latch", "election: zksync or Curator holds=true")
	})
}
