package interop

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/go-zksync/toolkit/internal/servers"
	"github.com/go-zksync/toolkit/session"
	"github.com/go-zksync/toolkit/zksync"
)

// alive is a session timeout for tests without crashes.
const alive = 10 * time.Second

// families are sets of clients in which every client sees every other client. Curator
// never sees the names of kazoo or of the recipe.
var families = map[string][]side{
	"Curator":              {ours, ours, curator, curator, goZookeeper},
	"kazoo with patterns":  {ours, ours, kazooTold, kazooTold, goZookeeper},
	"kazoo by LayoutKazoo": {oursAsKazoo, oursAsKazoo, kazoo, kazoo},
	"both layouts of ours": {oursAsKazoo, ours, goZookeeper, oursAsKazoo, ours},
	"recipe":               {ours, ours, recipe, recipe},
}

// Contenders of all clients get the lock in the order of their arrival. TestLineOrder makes
// processes in several languages join a line one after another. They must get the lock in that
// order.
func TestLineOrder(t *testing.T) {
	t.Parallel()
	const rounds = 5
	for name, family := range families {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				path := servers.Path(t)
				lasting(t, srv, path)
				s := live(t, srv.Connect(t))
				var line []*handle
				for _, kind := range family {
					line = append(line, kind.in.peer(t).connect(t, srv.Address(), alive).make(t, kind.kind, path, kind.args...))
				}
				for range rounds {
					rand.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
					line[0].call(t, "acquire")
					var granted []<-chan answer
					for i, h := range line[1:] {
						granted = append(granted, h.start("acquire"))
						awaitChildren(t, s, path, i+2)
					}
					last := time.Time{}
					for i, h := range line[1:] {
						for _, g := range granted[i:] {
							unanswered(t, h.kind+" acquire", g)
						}
						line[i].call(t, "release")
						at := inTime(t, h.kind+" acquire", granted[i]).at
						if at.Before(last) {
							t.Errorf("%s was served before its turn", h.kind)
						}
						last = at
					}
					line[len(line)-1].call(t, "release")
					awaitChildren(t, s, path, 0)
				}
			})
		})
	}
}

// A try on a lock that another client holds fails without an error and leaves nothing, in every language.
func TestMutexTry(t *testing.T) {
	t.Parallel()
	for _, kind := range []side{curator, kazooTold, recipe} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				path := servers.Path(t)
				lasting(t, srv, path)
				m := srv.Connect(t)
				mu := zksync.NewMutex(m, path)
				theirs := kind.in.peer(t).connect(t, srv.Address(), alive).make(t, kind.kind, path, kind.args...)
				must(t, mu.Lock(t.Context()))
				theirs.want(t, "false", "try", "50")
				must(t, mu.Unlock())
				theirs.want(t, "true", "try", "10000")
				if ok, err := mu.TryLock(t.Context()); ok || err != nil {
					t.Errorf("TryLock beside %s: %v, %v", kind.name, ok, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if mu.Lock(ctx) == nil {
					t.Errorf("Lock beside %s", kind.name)
				}
				theirs.call(t, "release")
				must(t, mu.Lock(t.Context()))
				must(t, mu.Unlock())
				awaitChildren(t, live(t, m), path, 0)
			})
		})
	}
}

// Clients whose layouts differ do not exclude each other on one path. In each pair the first client
// holds its lock, and the second client still gets its lock.
func TestWhoDoesNotSeeWhom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ holds, tries side }{
		"kazoo that was not told does not see us": {ours, kazoo},
		"nor go-zookeeper":                        {goZookeeper, kazoo},
		"Curator does not see kazoo":              {kazooTold, curator},
		"Curator does not see LayoutKazoo":        {oursAsKazoo, curator},
		"Curator does not see the recipe":         {recipe, curator},
		"the recipe does not see kazoo":           {kazooTold, recipe},
		"the recipe does not see LayoutKazoo":     {oursAsKazoo, recipe},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			both(t, func(t *testing.T, srv servers.Server) {
				path := servers.Path(t)
				lasting(t, srv, path)
				first := c.holds.in.peer(t).connect(t, srv.Address(), alive).make(t, c.holds.kind, path, c.holds.args...)
				second := c.tries.in.peer(t).connect(t, srv.Address(), alive).make(t, c.tries.kind, path, c.tries.args...)
				first.call(t, "acquire")
				second.want(t, "true", "try", "10000")
				second.call(t, "release")
				first.call(t, "release")
			})
		})
	}
}

// A Lock of kazoo that has been used fails after its directory was deleted, as containers are. A
// Mutex with LayoutKazoo prevents the deletion, as TestLayoutKeepsEmptyDirectories of zksync shows.
func TestKazooNeedsItsDirectory(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, srv servers.Server) {
		path := servers.Path(t)
		s := live(t, srv.Connect(t))
		theirs := kazoo.in.peer(t).connect(t, srv.Address(), alive).make(t, kazoo.kind, path)
		theirs.call(t, "acquire")
		theirs.call(t, "release")
		must(t, s.Delete(t.Context(), path, -1))
		if a := <-theirs.start("acquire"); a.err == nil || !strings.Contains(a.err.Error(), "NoNodeError") {
			t.Errorf("acquire without a directory: %q, %v", a.text, a.err)
		}
		must(t, zksync.NewMutex(srv.Connect(t), path, zksync.WithLayout(zksync.LayoutKazoo)).Lock(t.Context()))
		theirs.want(t, "false", "try", "100")
	})
}

func live(t testing.TB, m *session.Manager) *session.Session {
	t.Helper()
	s, err := m.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// awaitChildren waits until a directory has n children.
func awaitChildren(t testing.TB, s *session.Session, path string, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), answerTime)
	defer cancel()
	for {
		names, _, w, err := s.WatchChildren(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == n {
			w.Stop()
			return names
		}
		select {
		case <-w.Events():
		case <-ctx.Done():
			t.Fatalf("%s has %q, want %d", path, names, n)
		}
	}
}
